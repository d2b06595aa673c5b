"""From space files to the space."""
