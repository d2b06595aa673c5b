"""Table of reasoning models: weight counts, and an assumed curve of the problems they solve.

The curve is not fitted to data; it only indicates the direction of an effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import gammaln, ndtr

from dse.core.values import Floats
from dse_evaluators.clusters.reasoning.query_cost import Query, SparseAttention
from dse_evaluators.clusters.training.device_memory import block_weights
from dse_evaluators.csv_files.csv_records import read_records
from dse_evaluators.workloads.transformer_configs import PLAIN_TRANSFORMERS, Transformer

_WIDTH = 0.55
"""Standard deviation of the logarithm of the tokens that a problem needs: assumed."""

_ALIKE = 1.0
"""Concentration of the beta distribution of success probabilities over problems: assumed.

At this value most problems are either easy or hard.
"""

_HALF = 64.0
"""Token budget at which sparse attention solves about half of what dense attention does: assumed.

The half is reached when the context is much longer than the budget.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoner:
    """Weight count and assumed accuracy curve of a reasoning model.

    ``ceiling`` is the share of problems that one answer of unlimited length solves; ``midpoint``
    is the logarithm of the tokens at which an answer solves half of that share.
    """

    stored: float
    """Weights in the published files; those of 0.6B and 1.7B hold the tied embedding twice."""
    ceiling: float
    midpoint: float


REASONERS: Mapping[str, Reasoner] = read_records(
    Path(__file__).with_name("reasoners.csv"), Reasoner
)

COUNTS = ("multiplied", "stored")
"""Ways to count weights: those multiplied for each token, or those stored in the files."""


def weights(name: str, counted: str) -> float:
    """Return the number of weights of a reasoning model, counted as one of ``COUNTS``.

    Source:
        Kaplan et al.: Scaling Laws for Neural Language Models, 2020, with the LM head added.
    """
    if counted == "stored":
        return REASONERS[name].stored
    return count_multiplied(model_of(name))


def count_multiplied(model: Transformer) -> float:
    """Return the number of weights that are multiplied for each token of a model."""
    return block_weights(model) * model.layers + float(model.vocabulary * model.hidden)


def model_of(name: str) -> Transformer:
    """Return the transformer architecture of a reasoning model, given its name."""
    return PLAIN_TRANSFORMERS[name]


def compute_solved_share(
    *, ceiling: Floats, midpoint: Floats, query: Query, sparse: SparseAttention
) -> Floats:
    """Return the share of problems that at least one of the answers solves, (n,).

    Source:
        None: functional forms and constants are assumed. The share for N answers is the mean of
        ``1 - (1 - p)^N`` over a beta distribution of p; Brown et al.: Large Language Monkeys,
        2024, observe such distributions.
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
    # Four terms of similar size cancel, so rounding may make the result slightly negative.
    return np.where(right > 0, np.maximum(-np.expm1(none), 0.0), 0.0)
