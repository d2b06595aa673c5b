"""Number formats as a device multiplies them: bytes of operands, and whose rate counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmRecipe:
    """One way to multiply; the results have ``result_bytes`` each.

    ``rate`` is the format of a sheet under which the units for it are told.
    """

    rate: str
    operand_bytes: float
    result_bytes: float = 2.0
    converts: bool = False
    """Left-hand sides come in 16 bits and are narrowed by a kernel of their own."""


# fp8: one scale a tensor, or (block) one in fp32 for 128 x 128 weights and for 128 activations;
# static: the scale of the activations is known beforehand. nvfp4: an e4m3 scale for 16 numbers.
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
