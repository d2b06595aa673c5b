"""Permutation importance of the inputs of a learned metric, on held-out runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse.protocols import InputImportance
from dse_evaluators.learned.held_out_report import ONE_SPLIT, relative_errors
from dse_evaluators.learned.metric_model import MetricModel, folds_of
from dse_evaluators.learned.regressors import fit_candidates
from dse_evaluators.learned.run_features import Encoder
from dse_evaluators.learned.training_set import TrainingSet

_PERMUTATIONS = 5
"""Permutations of the values of an input in each fold."""


def measure_importance(
    runs: TrainingSet, encoder: Encoder, model: MetricModel, metric: str
) -> tuple[InputImportance, ...]:
    """Return how much the error on held-out runs rises if an input's values are permuted.

    The chosen candidate is fitted to the other runs of each fold. Inputs that are correlated share
    their importance, so that each of them can seem unimportant.

    Args:
        runs: the runs.
        encoder: the map of their columns to features.
        model: the fit to all runs, whose candidate is used.
        metric: name of the metric.

    Returns:
        The importance of each input that is not constant, largest first.

    Source:
        Breiman: Random Forests, 2001, section 10; Fisher, Rudin, Dominici: All Models are Wrong,
        but Many are Useful, 2019.
    """
    known = ~np.isnan(runs.targets[metric])
    target = runs.targets[metric][known]
    values = {name: column[known] for name, column in runs.values.items()}
    features = encoder.encode(values)  # (n, f)
    directions = encoder.directions(runs.settings.directions)
    scaled = np.log(target) if model.is_logarithmic else target
    name = model.regressor.name
    rises = dict[str, list[list[float]]]()
    for fold, out in enumerate(folds_of(runs.groups[known])):
        part = fit_candidates(features[~out], scaled[~out], directions, [name])[name]
        held = _HeldOut(
            model=replace(model, regressor=part),
            encoder=encoder,
            values={name: column[out] for name, column in values.items()},
            target=target[out],
        )
        for one in encoder.columns:
            rises.setdefault(one.name, []).append(held.rises(one.name, seed=fold))
        if len(target) > ONE_SPLIT:
            break
    found = [_summarize(name, folds) for name, folds in rises.items()]
    return tuple(sorted(found, key=lambda one: (-one.rise, one.name)))


@dataclass(frozen=True, kw_only=True)
class _HeldOut:
    """Runs of one fold, and a model that was fitted to the runs of the other folds."""

    model: MetricModel
    encoder: Encoder
    values: Mapping[str, Any]  # each (n,)
    target: Floats  # (n,)

    def rises(self, name: str, *, seed: int) -> list[float]:
        """Return the increase of the error in each permutation of an input's values."""
        rng = np.random.default_rng([2, seed])
        plain = self._error(self.values)
        own = self.values[name]
        return [
            self._error({**self.values, name: rng.permutation(own)}) - plain
            for _ in range(_PERMUTATIONS)
        ]

    def _error(self, values: Mapping[str, Any]) -> float:
        predicted, _, _ = self.model.predict(self.encoder.encode(values))
        return float(relative_errors(self.target, predicted).mean())


def _summarize(name: str, folds: Sequence[Sequence[float]]) -> InputImportance:
    """Return the mean, with its standard error over folds; of one fold, over permutations."""
    one = np.array(folds)
    spots = one.mean(axis=1) if len(one) > 1 else one[0]
    stderr = float(spots.std(ddof=1) / math.sqrt(len(spots)))
    return InputImportance(name=name, rise=float(one.mean()), stderr=stderr)
