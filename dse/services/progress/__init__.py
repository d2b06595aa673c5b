"""A running study on the terminal."""
