"""The pages of the live view."""
