"""The models that reason, as rows: how many weights are counted, and how much they might solve."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dse_evaluators.clusters.training.memory import block_weights
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer


class Reasoner(NamedTuple):
    """A model of :data:`TRANSFORMERS`, what its files hold, and an assumed curve.

    ``ceiling`` is the share of problems that one answer of any length solves, ``midpoint`` the
    logarithm of the tokens at which it solves half of that.
    """

    stored: float
    """Weights in the published files: those of 0.6B and 1.7B hold the tied table twice."""
    ceiling: float
    midpoint: float


# Ceilings are the AIME24 scores of the models, recalled and not looked up; midpoints are assumed.
REASONERS: Mapping[str, Reasoner] = {
    "qwen3-0.6b": Reasoner(0.752e9, 0.107, 9.60),
    "qwen3-1.7b": Reasoner(2.03e9, 0.483, 9.51),
    "qwen3-4b": Reasoner(4.02e9, 0.738, 9.42),
    "qwen3-8b": Reasoner(8.19e9, 0.760, 9.33),
    "qwen3-14b": Reasoner(14.77e9, 0.793, 9.24),
    "qwen3-32b": Reasoner(32.76e9, 0.814, 9.15),
}

COUNTS = ("multiplied", "stored")
"""Weights that each token is multiplied with, or all that the published files hold."""


def weights(name: str, counted: str) -> float:
    """The weights of a reasoner.

    Source:
        Kaplan et al.: Scaling Laws for Neural Language Models, 2020, and the head.
    """
    if counted == "stored":
        return REASONERS[name].stored
    model = model_of(name)
    return block_weights(model) * model.layers + float(model.vocabulary * model.hidden)


def model_of(name: str) -> Transformer:
    """The sizes of a reasoner."""
    return TRANSFORMERS[name]
