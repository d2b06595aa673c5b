"""Table of reasoning models: weight counts and the parameters of an assumed accuracy curve."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.clusters.training.memory import block_weights
from dse_evaluators.csv_records import read_records
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer


@dataclass(frozen=True, slots=True, kw_only=True)
class Reasoner:
    """Weight count and assumed accuracy curve of a model of :data:`TRANSFORMERS`.

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
    model = model_of(name)
    return block_weights(model) * model.layers + float(model.vocabulary * model.hidden)


def model_of(name: str) -> Transformer:
    """Return the architecture of a reasoning model."""
    return TRANSFORMERS[name]
