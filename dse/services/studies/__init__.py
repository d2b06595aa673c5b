"""Services for stored studies."""
