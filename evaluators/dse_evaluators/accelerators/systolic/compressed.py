"""N:M sparsity: N of M consecutive weights of a filter are kept, each stored with its index."""

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
    """Return the number of weights of a filter that N:M pruning keeps: at most N per block of M."""
    place = n_m.astype(np.intp)
    kept, block = _KEPT[place], _BLOCK[place]
    whole = np.floor(elements / block)
    return kept * whole + np.minimum(kept, elements - block * whole)


def inputs_per_row(n_m: Floats) -> Floats:
    """Return M / N: inputs that an array row receives per kept weight, of which it selects one."""
    place = n_m.astype(np.intp)
    return _BLOCK[place] / _KEPT[place]


def stored_bits(bits: Floats, n_m: Floats, sparsity: Floats) -> Floats:
    """Return the mean number of bits to store or move a weight that N:M pruning keeps.

    The bits include ``log2 M`` for the weight's index in the block. If a fraction ``sparsity`` of
    the kept weights is zero, only nonzeros are stored, with one bitmap bit per weight, where that
    is smaller.
    """
    word = bits + np.log2(_BLOCK[n_m.astype(np.intp)])
    return np.minimum(word, (1.0 - sparsity) * word + 1.0)
