"""Compressed layers that are kept while there is room, so that none is made twice in a search."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from dse_evaluators.formats.arrays import Single


class Shelf:
    """Weights by layer and recipe; what was not used for longest goes first.

    Args:
        room_bytes: of all arrays together; one is kept in any case.
    """

    def __init__(self, room_bytes: int) -> None:
        self._room = room_bytes
        self._used = 0
        self._arrays: OrderedDict[tuple[str, str], Single] = OrderedDict()

    def found(self, layer: str, recipe: str, make: Callable[[], Single]) -> Single:
        """The weights, made where they are not there."""
        key = (layer, recipe)
        if key in self._arrays:
            self._arrays.move_to_end(key)
            return self._arrays[key]
        made = self._arrays[key] = make()
        self._used += made.nbytes
        while self._used > self._room and len(self._arrays) > 1:
            self._used -= self._arrays.popitem(last=False)[1].nbytes
        return made
