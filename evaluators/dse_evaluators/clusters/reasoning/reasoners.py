"""Table of reasoning models: weight counts and the parameters of an assumed accuracy curve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dse_evaluators.clusters.training.memory import block_weights
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer


class Reasoner(NamedTuple):
    """Weight count and assumed accuracy curve of a model of :data:`TRANSFORMERS`.

    ``ceiling`` is the share of problems that one answer of unlimited length solves; ``midpoint``
    is the logarithm of the tokens at which an answer solves half of that share.
    """

    stored: float
    """Weights in the published files; those of 0.6B and 1.7B hold the tied embedding twice."""
    ceiling: float
    midpoint: float


# Ceilings are the AIME24 scores of the models, quoted from memory; midpoints are assumed.
REASONERS: Mapping[str, Reasoner] = {
    "qwen3-0.6b": Reasoner(0.752e9, 0.107, 9.60),
    "qwen3-1.7b": Reasoner(2.03e9, 0.483, 9.51),
    "qwen3-4b": Reasoner(4.02e9, 0.738, 9.42),
    "qwen3-8b": Reasoner(8.19e9, 0.760, 9.33),
    "qwen3-14b": Reasoner(14.77e9, 0.793, 9.24),
    "qwen3-32b": Reasoner(32.76e9, 0.814, 9.15),
}

COUNTS = ("multiplied", "stored")
"""Ways to count weights: those multiplied for each token, or those stored in the files."""


def weights(name: str, counted: str) -> float:
    """Return the number of weights of a reasoning model, counted as one of ``COUNTS``.

    Source:
        Kaplan et al.: Scaling Laws for Neural Language Models, 2020, with the LM head added.
    """
    if counted == "stored":
        return REASONERS[name].stored
    model = model_of(name)
    return block_weights(model) * model.layers + float(model.vocabulary * model.hidden)


def model_of(name: str) -> Transformer:
    """Return the architecture of a reasoning model."""
    return TRANSFORMERS[name]
