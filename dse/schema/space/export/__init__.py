"""Spaces written as files."""
