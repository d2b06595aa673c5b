"""N:M sparsity: N of every M weights along a filter stay, each stored with its index in the M."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.values import Floats, Value

# Names of patterns as in Pool and Yu: Channel Permutations for N:M Sparsity, 2021; 2:4 is that of
# A. Mishra et al., Accelerating Sparse Deep Neural Networks, 2021.
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
    """Return how many weights of a filter N:M pruning keeps: N per block, up to N of the last."""
    place = n_m.astype(np.intp)
    kept, block = _KEPT[place], _BLOCK[place]
    whole = np.floor(elements / block)
    return kept * whole + np.minimum(kept, elements - block * whole)


def inputs_per_row(n_m: Floats) -> Floats:
    """Return how many inputs an array row receives per kept weight, to select from: M / N."""
    place = n_m.astype(np.intp)
    return _BLOCK[place] / _KEPT[place]


def stored_bits(bits: Floats, n_m: Floats, sparsity: Floats) -> Floats:
    """Return the mean bits to store or move one weight that the pattern keeps.

    These include ``log2 M`` bits for its index in the block. If some kept weights are zero
    (``sparsity``), only nonzeros are stored, with one bitmap bit per weight, if that is smaller.
    """
    word = bits + np.log2(_BLOCK[n_m.astype(np.intp)])
    return np.minimum(word, (1.0 - sparsity) * word + 1.0)
