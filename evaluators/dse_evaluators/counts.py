"""Validation of evaluator options that are counts."""

from __future__ import annotations

from dse.errors import PluginError


def check_count(name: str, value: object, *, least: int) -> None:
    """Raise PluginError unless the value of an option is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PluginError(f"{name} cannot be {value!r}", hint=f"a whole number, at least {least}")
