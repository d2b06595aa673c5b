"""HTML pages of the live view."""
