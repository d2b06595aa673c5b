"""What packages bring in tables, such as assets: found by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dse.errors import PluginError, nearest
from dse.registry import Group, load, names

One = TypeVar("One")


def brought(group: Group, kind: str) -> Mapping[str, Any]:
    """The entries of the tables of every package that brings some, by name.

    Raises:
        PluginError: a table cannot be imported, or two tables have one name.
    """
    found: dict[str, Any] = {}
    for table in names(group):
        for name, one in load(group, table).items():
            if found.setdefault(name, one) != one:
                raise PluginError(f"two packages bring an {kind} {name!r}", where=table)
    return found


def chosen(
    wanted: Sequence[str] | None,
    known: Mapping[str, One],
    kind: str,
    hints: Mapping[str, str],
) -> list[One]:
    """The entries of these names, or all.

    Raises:
        PluginError: there is none of a name; the hint is that of ``hints``, or the nearest name.
    """
    for name in wanted or ():
        if name not in known:
            hint = hints.get(name) or nearest(name, known)
            raise PluginError(f"there is no {kind} {name!r}", hint=hint)
    return [known[name] for name in dict.fromkeys(wanted or known)]
