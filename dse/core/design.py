"""One point of a space: an immutable mapping from active parameters to their values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping

from dse.core.values import Value


class Design(Mapping[str, Value]):
    """The values of all active parameters; an inactive parameter is absent, never null."""

    __slots__ = ("_values", "key")

    def __init__(self, values: Mapping[str, Value]) -> None:
        self._values = dict(sorted(values.items()))
        self.key = key_of(self._values)

    def __getitem__(self, name: str) -> Value:
        return self._values[name]

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


def key_of(values: Mapping[str, Value]) -> str:
    """Sixteen hex digits that are equal for equal values, in every process and on every machine."""
    text = json.dumps(dict(values), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
