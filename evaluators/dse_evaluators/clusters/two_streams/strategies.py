"""Layout of weights over devices, level by level, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from dse.core.values import Floats

Ways = tuple[str, ...]
"""What each level does, from the devices of a node outwards."""

# Hsia et al., ISCA 2024: FSDP is the first level where it is one, and no level repeats another.
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
"""Of layers: fully sharded (``fsdp``), data (``ddp``) and tensor parallel (``tp``)."""

EMBEDDING: Mapping[str, Ways] = {
    "-".join(ways): ways for ways in (("mp",), ("ddp",), ("mp", "ddp"))
}
"""Of tables: dealt out among devices (``mp``), or copied (``ddp``)."""

_COPIES = frozenset({"ddp", "fsdp"})
_SHARDS = frozenset({"tp", "fsdp", "mp"})


@dataclass(frozen=True, slots=True)
class ParallelLayout:
    """A strategy on n clusters: what each level does, and among how many devices."""

    ways: Ways
    degrees: tuple[Floats, ...]  # each (n,)

    @staticmethod
    def of(ways: Ways, inner: Floats, devices: Floats) -> ParallelLayout:
        """One level over all devices, or one over ``inner`` neighbours and one over the rest."""
        degrees = (devices,) if len(ways) == 1 else (inner, devices / inner)
        return ParallelLayout(ways, degrees)

    @property
    def copies(self) -> Floats:
        """Among how many the samples are dealt out, (n,)."""
        return self._product(_COPIES)

    @property
    def shards(self) -> Floats:
        """Among how many the weights are dealt out, (n,)."""
        return self._product(_SHARDS)

    def degree(self, way: str) -> Floats:
        """Return the number of devices that share in ``way``, (n,); 1 without it."""
        return self._product(frozenset({way}))

    def shards_beyond(self, way: str) -> Floats:
        """Among how many the weights are dealt out by the levels outside of that one, (n,)."""
        after = self.ways.index(way) + 1
        return ParallelLayout(self.ways[after:], self.degrees[after:]).shards * np.ones_like(
            self.degrees[0]
        )

    def outermost(self, way: str) -> bool:
        """Return whether the level of ``way`` spans nodes."""
        return self.ways[-1] == way

    def _product(self, ways: frozenset[str]) -> Floats:
        pairs = zip(self.ways, self.degrees, strict=True)
        one = np.ones(1) if not self.degrees else np.ones_like(self.degrees[0])
        return prod((degree for way, degree in pairs if way in ways), start=one)
