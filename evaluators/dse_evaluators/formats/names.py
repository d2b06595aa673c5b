"""Parsing of the name of a number format, such as ``int4:group=32,asym``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from dse.errors import SpecError, nearest
from dse_evaluators.formats.families import FAMILIES, INTEGER_BITS, FormatFamily
from dse_evaluators.formats.format import Format
from dse_evaluators.formats.request import FormatSpec

ALIASES: Mapping[str, str] = {
    "fp32": "fp:e8m23",
    "fp16": "fp:e5m10",
    "bf16": "fp:e8m7",
    "tf32": "fp:e8m10",
    "fp8_e5m2": "fp:e5m2",
    "fp8_e4m3": "fp:e4m3",
    "fp8_e3m4": "fp:e3m4",
    "fp6_e3m2": "fp:e3m2",
    "fp6_e2m3": "fp:e2m3",
    "fp4_e2m1": "fp:e2m1",
    "mxfp8": "mx:e4m3",
    "mxfp6": "mx:e2m3",
    "mxfp4": "mx:e2m1",
    "mxint8": "mx:int8",
    "msfp12": "bfp:m3,b16",
    "msfp16": "bfp:m7,b16",
}
"""Common format names and the texts that they abbreviate; options may follow a colon."""

_COMMON = ("tail", "rounding", "seed")
_SEEDS = (0, 2**31 - 1)


@lru_cache(maxsize=1024)
def format_of(text: str) -> Format:
    """Return the number format of a name such as ``int4:group=32,asym``.

    Raises:
        SpecError: the family is unknown, or an item or option is invalid; the hint suggests the
            nearest valid text.
    """
    name = re.sub(r"\s", "", text).lower()
    family = _family(name)
    full = _expand_alias(name)
    request = FormatSpec.of(full, firsts=family.firsts, known=(*family.options, *_COMMON))
    grid, scaling = family.made(request)
    return Format(
        name=name,
        grid=grid,
        scaling=scaling,
        short=_is_short(request),
        seed=_seed(request, family),
    )


def _expand_alias(name: str) -> str:
    """Return a format name with its alias expanded, ``mxfp4`` to ``mx:e2m1``; options are kept."""
    head, _, rest = name.partition(":")
    if head not in ALIASES:
        return name
    return f"{ALIASES[head]},{rest}" if rest else ALIASES[head]


def _family(name: str) -> FormatFamily:
    """Return the format family that a format name begins with, such as ``int`` or ``fp``.

    Raises:
        SpecError: there is no such family, or integers cannot have that width.
    """
    head = _expand_alias(name).partition(":")[0]
    bits = re.fullmatch(r"int(\d{1,9})", head)
    if bits is None and head in FAMILIES and head != "int":
        return FAMILIES[head]
    low, high = INTEGER_BITS
    if bits is None:
        widths = [f"int{width}" for width in range(low, high + 1)]
        valid = [*(row.example for row in FAMILIES.values()), *ALIASES, *widths]
        heads = {text.partition(":")[0]: text for text in reversed(valid)}
        hint = nearest(head, heads)
        close = re.findall("'([^']*)'", hint)
        if close:
            hint = f"did you mean {' or '.join(repr(heads[one]) for one in close)}?"
        first, comma, rest = name.partition(",")
        if comma and first in heads:
            hint = f"settings follow a colon: {first}:{rest}"
        raise SpecError(f"there is no number format {name!r}", hint=hint)
    if not low <= int(bits[1]) <= high:
        width = min(max(int(bits[1]), low), high)
        raise SpecError(
            f"there is no number format {name!r}",
            hint=f"integers have {low} to {high} bits; did you mean 'int{width}'?",
        )
    return FAMILIES["int"]


def _is_short(request: FormatSpec) -> bool:
    """Return whether the option ``tail=short`` allows the last block of a row to be shorter."""
    return request.word("tail", ("error", "short"), "error") == "short"


def _seed(request: FormatSpec, family: FormatFamily) -> int | None:
    """Return the seed of stochastic rounding, or ``None`` for rounding to nearest."""
    if request.word("rounding", ("nearest", "stochastic"), "nearest") == "nearest":
        if "seed" in request.options:
            raise SpecError(
                f"the format {request.text!r} has a seed but rounds to nearest",
                hint="add rounding=stochastic, or remove the seed",
            )
        return None
    if not family.has_chance:
        raise SpecError(
            f"the format {request.text!r} does not support stochastic rounding",
            hint="leave rounding=stochastic out",
        )
    return request.number("seed", _SEEDS, 0)
