"""LRU cache of compressed layers, so that a search does not compress the same layer twice."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from dse_evaluators.formats.arrays import Single


class Shelf:
    """Least-recently-used cache of weights, by layer and recipe.

    Args:
        room_bytes: capacity for all arrays together; at least one array is kept in any case.
    """

    def __init__(self, room_bytes: int) -> None:
        self._room = room_bytes
        self._used = 0
        self._arrays: OrderedDict[tuple[str, str], Single] = OrderedDict()

    def found(self, layer: str, recipe: str, make: Callable[[], Single]) -> Single:
        """Return the cached weights, calling ``make`` if they are missing."""
        key = (layer, recipe)
        if key in self._arrays:
            self._arrays.move_to_end(key)
            return self._arrays[key]
        made = self._arrays[key] = make()
        self._used += made.nbytes
        while self._used > self._room and len(self._arrays) > 1:
            self._used -= self._arrays.popitem(last=False)[1].nbytes
        return made
