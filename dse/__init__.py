"""A design-space-exploration engine for ML systems."""

__version__ = "0.1.0"
