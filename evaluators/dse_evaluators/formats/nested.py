"""Double quantization: the scales of the blocks are themselves stored as 8-bit codes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, peaks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.scaling import Field, Sides
from dse_evaluators.formats.stored import inverse
from dse_evaluators.formats.tables import dynamic_tree

_GROUP = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Nested:
    """Scaling by largest magnitudes; each scale is stored as its 8-bit offset from the mean.

    Groups of 256 scales share one float32 factor; the mean is stored once, in float32.

    Source:
        Dettmers et al., QLoRA, 2023, section 3, "Double Quantization".
    """

    span: Span

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        groups = -(-blocks // _GROUP)
        return (
            Field(name="scale", part="scale", bits=8, count=blocks),
            Field(name="group", part="scale", bits=32, count=groups),
            Field(name="mean", part="scale", bits=32, count=1),
        )

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        scale = peaks(blocks) / np.float32(grid.top)
        mean = np.array([scale.mean(dtype=np.float64)], dtype=np.float32)
        rest = np.pad(scale - mean, (0, -len(scale) % _GROUP)).reshape(-1, _GROUP)
        group = peaks(rest)
        tree = dynamic_tree()
        relative = rest * inverse(group)[:, None]
        tree.snap(relative, None)
        sides = {
            "scale": tree.codes(relative).ravel()[: len(scale)],
            "group": group.view(np.uint32),
            "mean": mean.view(np.uint32),
        }
        _, fine = sides, self.read(sides, grid)
        # Codes are chosen with the exact scales; only decoding uses the quantized ones.
        return sides, Plain(grid=grid, into=inverse(scale)[:, None], back=fine.back)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        codes = sides["scale"]
        group = np.repeat(sides["group"].view(np.float32), _GROUP)[: len(codes)]
        scale = dynamic_tree().values(codes) * group + sides["mean"].view(np.float32)
        return Plain(grid=grid, back=scale[:, None])
