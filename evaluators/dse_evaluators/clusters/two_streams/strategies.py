"""Parallel layouts of weights over devices, with one level or two nested levels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from dse.core.values import Floats

Ways = tuple[str, ...]
"""Kind of parallelism of each level, from the devices of a node outwards."""

# Hsia et al., ISCA 2024: FSDP is used only as the first level, and no level repeats another.
DENSE: Mapping[str, Ways] = {
    "-".join(ways): ways
    for ways in (
        ("fsdp",),
        ("ddp",),
        ("tp",),
        ("tp", "ddp"),
        ("ddp", "tp"),
        ("fsdp", "ddp"),
        ("fsdp", "tp"),
    )
}
"""Layouts of layers: fully sharded (``fsdp``), data (``ddp``) and tensor parallel (``tp``)."""

EMBEDDING: Mapping[str, Ways] = {
    "-".join(ways): ways for ways in (("mp",), ("ddp",), ("mp", "ddp"))
}
"""Layouts of embedding tables: model parallel, i.e. sharded (``mp``), or replicated (``ddp``)."""

_COPIES = frozenset({"ddp", "fsdp"})
_SHARDS = frozenset({"tp", "fsdp", "mp"})


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """Parallel layout on n clusters: kind of parallelism and number of devices of each level."""

    ways: Ways
    degrees: tuple[Floats, ...]  # each (n,)

    @staticmethod
    def of(ways: Ways, inner: Floats, devices: Floats) -> ParallelLayout:
        """Build a layout with one level, or with two: the first over ``inner`` devices."""
        degrees = (devices,) if len(ways) == 1 else (inner, devices / inner)
        return ParallelLayout(ways, degrees)

    @property
    def copies(self) -> Floats:
        """Number of data-parallel groups that the samples are split over, (n,)."""
        return self._product(_COPIES)

    @property
    def shards(self) -> Floats:
        """Number of shards into which the weights are split, (n,)."""
        return self._product(_SHARDS)

    def degree(self, way: str) -> Floats:
        """Return the degree of a kind of parallelism such as ``tp``, (n,); 1 if it is not used."""
        return self._product(frozenset({way}))

    def shards_beyond(self, way: str) -> Floats:
        """Return the number of weight shards of the levels outside of kind ``way``, (n,)."""
        after = self.ways.index(way) + 1
        return ParallelLayout(self.ways[after:], self.degrees[after:]).shards * np.ones_like(
            self.degrees[0]
        )

    def outermost(self, way: str) -> bool:
        """Return whether the kind of parallelism ``way`` is the outermost level, across nodes."""
        return self.ways[-1] == way

    def _product(self, ways: frozenset[str]) -> Floats:
        pairs = zip(self.ways, self.degrees, strict=True)
        one = np.ones(1) if not self.degrees else np.ones_like(self.degrees[0])
        return prod((degree for way, degree in pairs if way in ways), start=one)
