"""Worker scripts, each run as a self-contained file by the Python of its model's environment."""
