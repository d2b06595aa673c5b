"""Number of problems that answers might solve: a curve assumed to give claims a direction."""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln, ndtr

from dse.core.values import Floats
from dse_evaluators.clusters.reasoning.query_cost import Query, SparseAttention

_WIDTH = 0.55
"""Of the logarithm of the tokens that problems need: assumed."""

_ALIKE = 1.0
"""Problems differ by a beta law of this concentration, most are either easy or hard: assumed."""

_HALF = 64.0
"""Tokens at which a sparse answer of any length solves half of what a dense one does: assumed."""


def compute_solved_share(
    *, ceiling: Floats, midpoint: Floats, query: Query, sparse: SparseAttention
) -> Floats:
    """Return the share of problems that at least one of the answers solves, (n,).

    Source:
        None: forms and numbers are assumed. That of several answers is the mean of
        ``1 - (1 - p)^N`` over a beta law: Brown et al.: Large Language Monkeys, 2024, find
        such laws.
    """
    unseen = np.clip(1.0 - sparse.budget / (query.prompt + query.written), 0.0, None)
    kept = 1.0 / (1.0 + np.where(sparse.some, _HALF / sparse.budget * unseen, 0.0))
    chance = ceiling * ndtr((np.log(query.written) - midpoint) / _WIDTH) * kept
    right, wrong = _ALIKE * chance, _ALIKE * (1.0 - chance)
    none = (
        gammaln(wrong + query.trials)
        - gammaln(wrong)
        + gammaln(_ALIKE)
        - gammaln(_ALIKE + query.trials)
    )
    # Four logarithms of about the same size: what is left may be below zero by their rounding.
    return np.where(right > 0, np.maximum(-np.expm1(none), 0.0), 0.0)
