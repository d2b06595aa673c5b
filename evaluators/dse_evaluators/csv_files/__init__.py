"""Read CSV files: tables that are shipped with their sources, and files that users wrote."""
