"""Grouped convolutions: how well they fill an array, and what they move."""
