"""The indexes that were built last, kept for designs that differ only in how they are searched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import psutil

from dse.errors import InfeasibleError
from dse.units.units import shown
from dse_evaluators.retrieval.index_kinds import KINDS, BuiltIndex, build_index
from dse_evaluators.retrieval.vector_data import SearchData

_MOST = 8


class IndexCache:
    """Cache of at most 8 vector indexes within a memory limit; drops the oldest first.

    A copy in another process begins empty.

    Args:
        limit: the most bytes; ``None`` for the memory that is free when an index is built.
        threads: threads that build an index.
    """

    def __init__(self, limit: float | None, threads: int) -> None:
        self._limit, self._threads = limit, threads
        self._kept = OrderedDict[tuple[Any, ...], BuiltIndex]()

    def __getstate__(self) -> tuple[float | None, int]:
        return self._limit, self._threads

    def __setstate__(self, state: tuple[float | None, int]) -> None:
        self.__init__(*state)  # type: ignore[misc]  # as a new one

    def __len__(self) -> int:
        return len(self._kept)

    def clear(self) -> None:
        """Drop all built vector indexes from memory."""
        self._kept.clear()

    def get(self, data: SearchData, knobs: Mapping[str, Any]) -> BuiltIndex:
        """Return the vector index of a design; build it if it is not cached.

        Raises:
            InfeasibleError: it would take more memory than there is; it is not built.
        """
        kind = KINDS[knobs["index"]]
        key = (knobs["index"], *(knobs[name] for name in kind.built_with))
        if key not in self._kept:
            count, width = data.vectors.shape
            self._make_room(kind.size(count, width, knobs), str(knobs["index"]))
            self._kept[key] = build_index(data, knobs, self._threads)
        self._kept.move_to_end(key)
        return self._kept[key]

    def _make_room(self, size: float, name: str) -> None:
        held = sum(index.size for index in self._kept.values())
        limit = self._limit
        if limit is None:  # what is kept can be dropped
            limit = float(psutil.virtual_memory().available) + held
        if size > limit:
            raise InfeasibleError(
                f"the index {name} would take {shown(size, 'B')}, and there is memory for "
                f"{shown(limit, 'B')}; it was not built"
            )
        while self._kept and (len(self._kept) >= _MOST or held + size > limit):
            held -= self._kept.popitem(last=False)[1].size
