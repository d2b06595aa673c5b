"""Choice, per objective, between a sum of terms and a Gaussian process without that structure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.metric_model import Encoder, Predictor, Surrogate
from dse.optimizers.bayesian.output_transform import Kind
from dse.optimizers.bayesian.prior_mean_model import PriorMeanPredictor
from dse.optimizers.separable.separable_model import SeparableModel
from dse.optimizers.separable.sum_model import SumInputs, SumPredictor

ProcessModel = tuple[Encoder, Predictor | PriorMeanPredictor]
"""Gaussian process with its inputs, with or without the prior mean of a library."""

FEWEST = 6
"""Measurements beyond the first two that are needed to compare the two models."""
_MARGIN = 3.0
"""Log density by which the Gaussian process must be better, as the declaration is evidence too."""
FEWEST_FOUND = 10
"""Measurements that are needed before a sum that was not declared is compared."""
_FOUND_MARGIN = 3.0
"""Log density by which a sum that was not declared must be better, as it is one of several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """Leave-one-out log densities of an objective under an additive model and a Gaussian process.

    ``compared`` counts the measurements that both models predict. The first two measurements, with
    all features at their least or largest, are left out, because predicting them is extrapolation.
    ``declared`` states whether the user or the evaluator declared the sum.
    """

    is_sum: bool
    declared: bool = True
    sum_score: float = 0.0
    process_score: float = 0.0
    compared: int = 0

    @property
    def text(self) -> str:
        """Description of the chosen surrogate and the reason, for a recorded event."""
        process = "a Gaussian process" + (" without the declared terms" if self.declared else "")
        model = "a sum of terms" if self.is_sum else process
        if self.declared and self.compared < FEWEST:
            return f"is learnt as {model}, as declared; {FEWEST} measurements will test it"
        scores = f"{self.sum_score:.1f} for the sum and {self.process_score:.1f} without it"
        return (
            f"is learnt as {model}: the leave-one-out log density of {self.compared} measurements "
            f"is {scores}"
        )


class SumOrProcess:
    """Fitter that chooses an additive model or a Gaussian process by leave-one-out score."""

    def __init__(self, model: SeparableModel) -> None:
        self.model = model
        self.choices: dict[str, ModelScores] = {}
        """Last comparison for each objective or limit, by its key in the model's inputs."""
        self._last: dict[str, tuple[SumInputs, SumPredictor, ModelScores]] = {}

    def choose(
        self,
        key: str,
        batch: Batch,
        losses: Floats,
        plain: ProcessModel,
        *,
        kinds: Sequence[Kind],
        spread: Floats | None,
        refit: bool,
    ) -> tuple[Encoder, Surrogate]:
        """Return an additive surrogate, or the given Gaussian process if that fits better.

        Args:
            key: key of the objective or limit in the model's inputs.
            batch: n measured designs.
            losses: (n,), their losses.
            plain: Gaussian process that was fitted to the same losses, with its inputs.
            kinds: output transforms to try.
            spread: (n,), standard errors of the losses.
            refit: whether to fit hyperparameters and compare, instead of keeping the last result.
        """
        last = self._last.get(key)
        if key not in self.model.declared and len(batch) < FEWEST_FOUND:
            return plain
        if not refit and last is not None and last[1].warp.kind in kinds:
            inputs, predictor, choice = last
            predictor = predictor.taught(inputs.points(batch), losses, spread=spread)
        else:
            inputs, predictor = self._fit(key, batch, losses, kinds, spread)
            choice = self._compare(key, batch, predictor, plain[1])
            if refit:
                self._last[key] = inputs, predictor, choice
        self.choices[key] = choice
        return (inputs, predictor) if choice.is_sum else plain

    def _fit(
        self, key: str, batch: Batch, losses: Floats, kinds: Sequence[Kind], spread: Floats | None
    ) -> tuple[SumInputs, SumPredictor]:
        """Return the candidate inputs that fit best by leave-one-out density, and the fit."""
        fits = [
            SumPredictor.fit(one.points(batch), losses, one.layout, kinds, spread=spread)
            for one in self.model.inputs[key]
        ]
        best = max(range(len(fits)), key=lambda place: fits[place].score)
        return self.model.inputs[key][best], fits[best]

    def _compare(
        self, key: str, batch: Batch, one: SumPredictor, other: Predictor | PriorMeanPredictor
    ) -> ModelScores:
        rows = ~self._are_ends(batch)
        compared, declared = int(rows.sum()), key in self.model.declared
        scores = float(one.densities[rows].sum()), float(other.densities[rows].sum())
        is_better = scores[0] >= scores[1] + (-_MARGIN if declared else _FOUND_MARGIN)
        return ModelScores(
            is_sum=is_better or (declared and compared < FEWEST),
            declared=declared,
            sum_score=scores[0],
            process_score=scores[1],
            compared=compared,
        )

    def _are_ends(self, batch: Batch) -> Mask:
        space = self.model.space
        ends = {row.tobytes() for row in space.rows_of(self.model.ends)}
        return np.array([row.tobytes() in ends for row in space.rows_of(batch)], dtype=bool)
