"""Rules of a space, checked."""
