"""Binary grid: plus and minus one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single, Words


@dataclass(frozen=True, slots=True, kw_only=True)
class Signs:
    """Grid of the sign alone, in one bit; zero, of either sign, rounds to plus one.

    Source:
        Rastegari et al., XNOR-Net, 2016, section 3.1.
    """

    bits: int = 1
    top: float = 1.0
    has_nan: bool = False

    def snap(self, values: Single, chance: Single | None) -> None:  # noqa: ARG002
        np.multiply(values >= 0, np.float32(2), out=values)
        values -= np.float32(1)

    def codes(self, snapped: Single) -> Words:
        return (snapped < 0).astype(np.uint32)

    def values(self, codes: Words) -> Single:
        return np.float32(1) - np.float32(2) * codes.astype(np.float32)
