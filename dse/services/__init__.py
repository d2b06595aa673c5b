"""Functions behind both the command line and the Python API, some also behind the live view."""
