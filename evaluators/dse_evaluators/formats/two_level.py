"""Two-level scaling of NVFP4: an 8-bit float per block and one float32 for the tensor."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, peaks
from dse_evaluators.formats.grid import Grid
from dse_evaluators.formats.lattice import Lattice, Plain
from dse_evaluators.formats.layout import Span
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.scaling import Field, Sides

_SCALE = Minifloat(exponent=4, mantissa=3, bias=7, specials="nan")

_LEAST = np.float32(2.0**-120)  # times the least block scale, its inverse is still finite


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoLevel:
    """Scaling by an e4m3 scale per block and a float32 tensor scale that makes use of e4m3's range.

    A block's scale is at least ``least``, by default the smallest normal e4m3 number. Without
    ``global_`` the tensor's scale is one and is not stored.

    Source:
        NVIDIA, Pretraining Large Language Models with NVFP4, 2025, section 2 and appendix B.
    """

    span: Span = 16
    least: float = 2.0**-6
    global_: bool = True

    def fields(self, blocks: int, grid: Grid) -> tuple[Field, ...]:  # noqa: ARG002
        whole = Field(name="tensor", part="scale", bits=32, count=1)
        block = Field(name="block", part="scale", bits=8, count=blocks)
        return (block, whole) if self.global_ else (block,)

    def fit(self, blocks: Single, grid: Grid) -> tuple[Sides, Lattice]:
        largest = peaks(blocks)
        wanted = largest / np.float32(grid.top)
        sides = {}
        if self.global_:
            whole = largest.max(keepdims=True) / np.float32(_SCALE.top * grid.top)
            whole = np.maximum(whole, _LEAST)
            wanted /= whole
            sides["tensor"] = whole.view(np.uint32)
        np.clip(wanted, np.float32(self.least), np.float32(_SCALE.top), out=wanted)
        _SCALE.snap(wanted, None)
        sides["block"] = _SCALE.codes(wanted)
        return sides, self.read(sides, grid)

    def read(self, sides: Sides, grid: Grid) -> Lattice:
        block = _SCALE.values(sides["block"])[:, None]
        whole = sides["tensor"].view(np.float32)[0] if self.global_ else np.float32(1)
        into = np.divide(np.float32(1) / whole, block, dtype=np.float32)
        return Plain(grid=grid, into=into, back=block * whole)
