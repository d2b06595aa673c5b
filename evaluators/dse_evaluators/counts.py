"""Options that count something."""

from __future__ import annotations

from dse.errors import PluginError


def check_count(name: str, value: object, *, least: int) -> None:
    """Nothing, if the value is a whole number of that size.

    Raises:
        PluginError: it is not.
    """
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise PluginError(f"{name} cannot be {value!r}", hint=f"a whole number, at least {least}")
