"""A design-space-exploration engine for ML systems."""

__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    """``dse.report``, imported when it is first called."""
    if name == "report":
        from importlib import import_module

        return import_module("dse.report")
    raise AttributeError(f"module 'dse' has no attribute {name!r}")
