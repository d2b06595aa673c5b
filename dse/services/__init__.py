"""Services shared by the command line, Python and the live view."""
