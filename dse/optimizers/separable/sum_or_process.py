"""Choice, per objective, between a sum of parts and a Gaussian process without that prior."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Mask
from dse.optimizers.bayesian.metric_model import Encoder, Predictor, Surrogate
from dse.optimizers.bayesian.output_transform import Kind
from dse.optimizers.separable.separable_model import SeparableModel
from dse.optimizers.separable.sum_model import SumPredictor

FEWEST = 6
"""Measurements beyond the probes that are needed to compare the two models."""
_MARGIN = 3.0
"""Log density by which the Gaussian process must be better, as the declaration is evidence too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """Comparison of both models of an objective by leave-one-out log density.

    ``compared`` counts the measurements that both predict; probes are left out, as the sensitivity
    of a part cannot be predicted without its probe.
    """

    is_sum: bool
    sum_score: float = 0.0
    process_score: float = 0.0
    compared: int = 0

    @property
    def text(self) -> str:
        """Description of the choice and its reason, for a recorded event."""
        model = "a sum of parts" if self.is_sum else "a Gaussian process without the declared parts"
        if self.compared < FEWEST:
            return f"is learnt as {model}, as declared; {FEWEST} measurements will test it"
        scores = f"{self.sum_score:.1f} for the sum and {self.process_score:.1f} without it"
        return (
            f"is learnt as {model}: the leave-one-out log density of {self.compared} measurements "
            f"is {scores}"
        )


class SumOrProcess:
    """Fitter of sums of parts, which are dropped where leave-one-out scores contradict them."""

    def __init__(self, model: SeparableModel) -> None:
        self.model = model
        self.choices: dict[int, ModelScores] = {}
        """Last comparison for the index of each separable objective."""
        self._last: dict[int, tuple[SumPredictor, ModelScores]] = {}

    def choose(
        self,
        place: int,
        batch: Batch,
        losses: Floats,
        plain: tuple[Encoder, Predictor],
        *,
        kinds: Sequence[Kind],
        spread: Floats | None,
        refit: bool,
    ) -> tuple[Encoder, Surrogate]:
        """Return the surrogate of an objective: a sum of parts, or the given Gaussian process.

        Args:
            place: index of the objective.
            batch: n measured designs.
            losses: (n,), their losses.
            plain: Gaussian process that was fitted to the same losses, with its inputs.
            kinds: output transforms to try.
            spread: (n,), standard errors of the losses.
            refit: whether to fit hyperparameters and compare, instead of keeping the last result.
        """
        inputs = self.model.inputs[place]
        points = inputs.points(batch)
        last = self._last.get(place)
        if not refit and last is not None and last[0].warp.kind in kinds:
            predictor, choice = last[0].taught(points, losses, spread=spread), last[1]
        else:
            predictor = SumPredictor.fit(points, losses, inputs.layout, kinds, spread=spread)
            choice = self._compare(batch, predictor, plain[1])
            if refit:
                self._last[place] = predictor, choice
        self.choices[place] = choice
        return (inputs, predictor) if choice.is_sum else plain

    def _compare(self, batch: Batch, one: SumPredictor, other: Predictor) -> ModelScores:
        rows = ~self._are_probes(batch)
        compared = int(rows.sum())
        scores = float(one.densities[rows].sum()), float(other.densities[rows].sum())
        is_sum = compared < FEWEST or scores[0] + _MARGIN >= scores[1]
        return ModelScores(
            is_sum=is_sum, sum_score=scores[0], process_score=scores[1], compared=compared
        )

    def _are_probes(self, batch: Batch) -> Mask:
        space = self.model.space
        probes = {row.tobytes() for row in space.rows_of(self.model.probes)}
        return np.array([row.tobytes() in probes for row in space.rows_of(batch)], dtype=bool)
