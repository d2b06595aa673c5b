"""Protections of stored codes against bit flips: what they detect and correct, what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dse.errors import SpecError, nearest
from dse_evaluators.faults.code_bits import CodeBits

Masks = NDArray[np.uint64]
"""Flipped bits of words, one bit of a mask for each bit of a word."""

_ENDS, _COPIES, _SINGLE_BITS = 2, 3, 32
_DETECTED = 2  # flips


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadWords:
    """Words that a protected memory returns after bit flips.

    ``flips`` are the bits that stay flipped, (k,), and ``zeroed`` marks words in which an error was
    detected, (k,), and which are read as zero.
    """

    flips: Masks
    zeroed: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Protection:
    """Protection of the stored words (weights) of a layer against bit flips.

    Attributes:
        name: name of the protection in a study.
        about: effect of the protection, for documentation.
        copies: function from a code's bits to masks of the bits of each stored copy; their numbers
            of bits are the additional storage.
        read: function from the flipped bits of the code, (k,), the flipped bits of each copy,
            (copies, k), and the code's bits to the word as it is read.
        operations: operations on a word whenever it is read.
        outside: what is read in place of a value outside of the range of the layer's weights: the
            value itself, the nearest end of the range, or zero. The ends have three copies.
        needs_exponent: whether only formats with an exponent can have the protection.
    """

    name: str
    about: str
    copies: Callable[[CodeBits], tuple[int, ...]]
    read: Callable[[Masks, Masks, CodeBits], ReadWords]
    operations: int
    outside: Literal["kept", "end", "zero"] = "kept"
    needs_exponent: bool = False

    def check_bits(self, code: CodeBits) -> int:
        """Return the number of bits that are stored in addition to a code."""
        return sum(mask.bit_count() for mask in self.copies(code))

    @property
    def layer_bits(self) -> int:
        """Number of bits that are stored for a layer as a whole, besides its words."""
        return 0 if self.outside == "kept" else _ENDS * _COPIES * _SINGLE_BITS


def protection_of(name: str) -> Protection:
    """Return the protection against bit flips with this name.

    Raises:
        SpecError: there is no protection of this name.
    """
    if name not in PROTECTIONS:
        raise SpecError(f"there is no protection {name!r}", hint=nearest(name, PROTECTIONS))
    return PROTECTIONS[name]


def check_protection(name: str, code: CodeBits) -> None:
    """Raise SpecError unless there is a protection of this name, and it fits the codes."""
    found = protection_of(name)
    if found.needs_exponent and not code.exponent:
        others = [one.name for one in PROTECTIONS.values() if not one.needs_exponent]
        raise SpecError(
            f"{code.name} has no exponent, which {found.name} protects",
            hint=f"{', '.join(others)} protect any format; fp8_e4m3, bf16 and fp32 have an "
            "exponent",
        )


def _read_plain(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:  # noqa: ARG001
    return ReadWords(flips=flips, zeroed=np.zeros(flips.shape, dtype=np.bool_))


def _read_parity(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:  # noqa: ARG001
    odd = (np.bitwise_count(flips) + np.bitwise_count(copies[0])) % 2 == 1
    return ReadWords(flips=flips, zeroed=odd)


def _read_exponent_parity(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:
    kept = flips & np.uint64(code.sign | code.exponent)
    return ReadWords(flips=flips, zeroed=_read_parity(kept, copies, code).zeroed)


def _read_corrected(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:  # noqa: ARG001
    """Return words with one flip corrected; two are detected, and more are not corrected."""
    count = np.bitwise_count(flips) + np.bitwise_count(copies[0])
    return ReadWords(flips=np.where(count == 1, np.uint64(0), flips), zeroed=count == _DETECTED)


def _hamming_bits(code: CodeBits) -> tuple[int, ...]:
    """Return the mask of a word's check bits: those of a Hamming code, and a parity bit."""
    checks = next(number for number in range(code.bits + 1) if 2**number > code.bits + number)
    return ((2 << checks) - 1,)


def _read_duplicate(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:
    differs = (flips & np.uint64(code.sign | code.exponent)) != copies[0]
    return ReadWords(flips=flips, zeroed=differs)


def _read_majority(flips: Masks, copies: Masks, code: CodeBits) -> ReadWords:  # noqa: ARG001
    one, other = copies
    voted = (flips & one) | (flips & other) | (one & other)
    return ReadWords(flips=voted, zeroed=np.zeros(flips.shape, dtype=np.bool_))


PROTECTIONS: Mapping[str, Protection] = {
    row.name: row
    for row in (
        Protection(
            name="none",
            about="no protection",
            copies=lambda _: (),
            read=_read_plain,
            operations=0,
        ),
        Protection(
            name="clip",
            about="weights outside of the layer's range are set to its ends",
            copies=lambda _: (),
            read=_read_plain,
            operations=2,  # a comparison with each end
            outside="end",
        ),
        Protection(
            name="range-zero",
            about="weights outside of the layer's range are read as zero",
            copies=lambda _: (),
            read=_read_plain,
            operations=2,  # a comparison with each end
            outside="zero",
        ),
        Protection(
            name="parity",
            about="a word with an odd number of flips is read as zero",
            copies=lambda _: (1,),
            read=_read_parity,
            operations=2,  # parity of a word, selection
        ),
        Protection(
            name="exponent-parity",
            about="a word with an odd number of flips in sign and exponent is read as zero",
            copies=lambda _: (1,),
            read=_read_exponent_parity,
            operations=2,  # parity of a part of a word, selection
            needs_exponent=True,
        ),
        Protection(
            name="duplicate",
            about="a word whose two signs and exponents differ is read as zero",
            copies=lambda code: (code.sign | code.exponent,),
            read=_read_duplicate,
            operations=2,  # comparison, selection
            needs_exponent=True,
        ),
        Protection(
            name="ecc",
            about="one flip of a word is corrected, two are detected and read as zero",
            copies=_hamming_bits,
            read=_read_corrected,
            operations=9,  # seven parities of a word of 32 bits, look-up, correction
        ),
        Protection(
            name="tmr",
            about="each bit is the majority of three copies",
            copies=lambda code: (code.all, code.all),
            read=_read_majority,
            operations=5,  # (a and b) or (a and c) or (b and c)
        ),
    )
}
"""Protections by name.

Source:
    Chen et al.: A Low-cost Fault Corrector for Deep Neural Networks through Range Restriction, DSN
    2021 (``clip`` and ``range-zero``); Hamming: Error Detecting and Error Correcting Codes, 1950
    (``ecc``: seven check bits for a word of 32).
"""
