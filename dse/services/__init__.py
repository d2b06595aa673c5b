"""Application services shared by the command line, the Python API and the live view."""
