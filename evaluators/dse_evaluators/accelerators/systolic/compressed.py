"""N:M sparsity: of every M weights along a filter N stay, each with its place among the M."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.values import Floats, Value

# Pool and Yu: Channel Permutations for N:M Sparsity, 2021, calls a pattern by these words; 2:4 is
# that of A. Mishra et al., Accelerating Sparse Deep Neural Networks, 2021.
PATTERNS: Mapping[str, tuple[int, int]] = {
    "dense": (1, 1),
    "1:2": (1, 2),
    "1:4": (1, 4),
    "2:4": (2, 4),
    "1:8": (1, 8),
    "2:8": (2, 8),
    "4:8": (4, 8),
}

N_M_CODES: Mapping[Value, float] = {word: float(code) for code, word in enumerate(PATTERNS)}

_KEPT, _BLOCK = np.array(list(PATTERNS.values()), dtype=np.float64).T


def kept_elements(elements: Floats, n_m: Floats) -> Floats:
    """Return how many elements of a filter stay: N of each full block, up to N of the rest."""
    place = n_m.astype(np.intp)
    kept, block = _KEPT[place], _BLOCK[place]
    whole = np.floor(elements / block)
    return kept * whole + np.minimum(kept, elements - block * whole)


def inputs_per_row(n_m: Floats) -> Floats:
    """Inputs among which each multiplier chooses, for each weight that it is given: M / N."""
    place = n_m.astype(np.intp)
    return _BLOCK[place] / _KEPT[place]


def stored_bits(bits: Floats, n_m: Floats, sparsity: Floats) -> Floats:
    """Bits of one weight that stays, as it travels and is kept.

    With its place in the block, ``log2 M`` bits; where there are zeros among what stays, as the
    nonzeros and one bit of map for each weight, if that is smaller.
    """
    word = bits + np.log2(_BLOCK[n_m.astype(np.intp)])
    return np.minimum(word, (1.0 - sparsity) * word + 1.0)
