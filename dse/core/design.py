"""Design, a point of a space: an immutable mapping from active parameters to their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from dse.core.values import Value

_JSON = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class Design(Mapping[str, Value]):
    """Point of the design space: the values of all active parameters, by name.

    An inactive parameter is absent from the mapping, never ``None``.
    """

    __slots__ = ("_key", "_values")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(sorted(values.items()))
        self._key = ""

    @property
    def key(self) -> str:
        """Hash of the design's values, which identifies the design: see :func:`key_of`."""
        if not self._key:  # computed on demand: most designs of a large study never need it
            self._key = key_of(self._values)
        return self._key

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

    def __contains__(self, name: object) -> bool:
        return name in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Design) and self.key == other.key

    def __repr__(self) -> str:
        return f"Design({self._values})"

    def __reduce__(self) -> tuple[type[Design], tuple[dict[str, Value]]]:
        return Design, (self._values,)


def base(name: str) -> str:
    """Return the name of the parameter list that a member is in: ``bits`` for ``bits[3]``.

    The name of a parameter outside lists is returned unchanged.
    """
    return name.partition("[")[0] if name.endswith("]") else name


def nest_members(values: Mapping[str, Value | None]) -> dict[str, Any]:
    """Return the values with the members of each list grouped under the list's name.

    Numbered members become a list, with ``None`` for an inactive one in between; named members
    become a mapping: ``{"bits": [4, 8], "kept": {"conv1": True}}``.
    """
    plain: dict[str, Any] = {}
    for name, value in values.items():
        own = base(name)
        if own == name:
            plain[name] = value
        else:
            plain.setdefault(own, {})[name[len(own) + 1 : -1]] = value
    return {
        name: _in_order(value) if isinstance(value, dict) else value
        for name, value in plain.items()
    }


def _in_order(members: Mapping[str, Value | None]) -> Any:
    if not all(key.isdigit() for key in members):
        return dict(members)
    places = {int(key): value for key, value in members.items()}
    return [places.get(place) for place in range(max(places) + 1)]


def key_of(values: Mapping[str, Value]) -> str:
    """Return 16 hex digits that identify parameter values, the same on every machine."""
    return hashlib.sha256(_JSON.encode(dict(values)).encode()).hexdigest()[:16]
