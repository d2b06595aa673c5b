"""Number formats in which devices run GEMMs: bytes per operand, and the peak rate that applies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmRecipe:
    """Number format of a GEMM: bytes per element of its operands and results.

    ``rate`` is the number format whose peak rate on the device's data sheet applies.
    """

    rate: str
    operand_bytes: float
    result_bytes: float = 2.0
    converts: bool = False
    """Whether left-hand operands come in 16 bits and a separate kernel converts them."""


# fp8: one scale per tensor, or (block) one in fp32 per 128 x 128 weights and per 128 activations;
# static: the scale of the activations is known beforehand. nvfp4: one e4m3 scale per 16 numbers.
RECIPES: Mapping[str, GemmRecipe] = {
    "fp32": GemmRecipe(rate="fp32", operand_bytes=4.0, result_bytes=4.0),
    "tf32": GemmRecipe(rate="tf32", operand_bytes=4.0, result_bytes=4.0),
    "bf16": GemmRecipe(rate="bf16", operand_bytes=2.0),
    "fp16": GemmRecipe(rate="fp16", operand_bytes=2.0),
    "int8": GemmRecipe(rate="int8", operand_bytes=1.0, converts=True),
    "fp8": GemmRecipe(rate="fp8", operand_bytes=1.0, converts=True),
    "fp8_block": GemmRecipe(rate="fp8", operand_bytes=1.0, converts=True),
    "fp8_static": GemmRecipe(rate="fp8", operand_bytes=1.0, converts=True),
    "nvfp4": GemmRecipe(rate="fp4", operand_bytes=0.5 + 1 / 16, converts=True),
}
