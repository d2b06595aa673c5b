"""Table of standard number formats: widths, and the exponent and mantissa bits of floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberFormat:
    """Standard number format: an integer, or a float with exponent and mantissa bits.

    ``exponent`` and ``mantissa`` are zero for integers. ``dtype`` is the type's name in numpy or
    ml_dtypes, empty if neither has it.
    """

    name: str
    kind: Literal["int", "float"]
    bits: int
    exponent: int = 0
    mantissa: int = 0
    dtype: str = ""


def _int(bits: int) -> NumberFormat:
    return NumberFormat(name=f"int{bits}", kind="int", bits=bits)


def _float(name: str, exponent: int, mantissa: int, dtype: str) -> NumberFormat:
    bits = 1 + exponent + mantissa
    return NumberFormat(
        name=name, kind="float", bits=bits, exponent=exponent, mantissa=mantissa, dtype=dtype
    )


# Floats: IEEE 754-2019; OCP 8-bit Floating Point Specification (OFP8) 1.0, table 1; e3m4, fp6 and
# fp4: ml_dtypes and OCP Microscaling Formats (MX) 1.0, section 5.3. Saturation and special values
# follow each format's ``dtype``.
FORMATS: Mapping[str, NumberFormat] = {
    row.name: row
    for row in (
        _float("fp32", 8, 23, "float32"),
        _float("fp16", 5, 10, "float16"),
        _float("bf16", 8, 7, "bfloat16"),
        _float("fp8_e5m2", 5, 2, "float8_e5m2"),
        _float("fp8_e4m3", 4, 3, "float8_e4m3fn"),
        _float("fp8_e3m4", 3, 4, "float8_e3m4"),
        _float("fp6_e3m2", 3, 2, "float6_e3m2fn"),
        _float("fp6_e2m3", 2, 3, "float6_e2m3fn"),
        _float("fp4_e2m1", 2, 1, "float4_e2m1fn"),
        *(_int(bits) for bits in range(2, 17)),
    )
}
