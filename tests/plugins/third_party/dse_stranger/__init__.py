"""Plug-ins of a stranger, who knows the engine only by its protocols."""
