"""Surrogate of a separable metric: inputs with features, a process and its output transform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.encoding import blocks, encoded
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.gaussian_process import ALONE, owners_of
from dse.optimizers.bayesian.metric_model import Prediction, leave_one_out_densities
from dse.optimizers.bayesian.output_transform import Kind, OutputTransform
from dse.optimizers.separable.additive_space import AdditiveSpace
from dse.optimizers.separable.sum_process import SumLayout, SumProcess


@dataclass(frozen=True, kw_only=True)
class SumInputs:
    """Encoding of designs for an additive surrogate: measured parameters, then features.

    Attributes:
        space: the parameter groups and the value combinations of each.
        places: index of the group of each feature, (features,).
        tables: values of each feature in the rows of its group.
        monotone: whether the metric changes in one direction with each feature.
    """

    space: AdditiveSpace
    places: Ints
    tables: tuple[Floats, ...]
    monotone: bool = True

    @cached_property
    def layout(self) -> SumLayout:
        """Parameter, group or feature that each column of the encoding belongs to."""
        own = blocks(self.space.problem.space, self.space.split.measured_parameters)
        widths = [block.stop - block.start for block in own]
        homes = [
            next((i for i, at in enumerate(self.places) if name in self.space.terms[at].names), -1)
            for name in (block.parameter.name for block in own)
        ]
        return SumLayout(
            owners=owners_of(widths),
            alone=np.full(len(own), ALONE),
            parents=np.array(homes, dtype=np.int64),
            features=len(self.tables),
        )

    def points(self, batch: Batch) -> Floats:
        """Encode designs as model inputs, (n, c + features)."""
        rows = self.space.rows_of(batch)
        own = encoded(self.space.problem.space, batch, self.space.split.measured_parameters)
        return np.column_stack([own, self.features(rows)])

    def features(
        self,
        rows: Ints,  # (n, terms)
    ) -> Floats:
        """Return the features of designs given by a row index per group, (n, features)."""
        found = [
            table[rows[:, place]] for place, table in zip(self.places, self.tables, strict=True)
        ]
        return np.column_stack(found) if found else np.zeros((len(rows), 0))

    def term_effects(self, process: SumProcess) -> list[Floats]:
        """Return the posterior mean of each group's term in each of its rows.

        If the metric is declared monotone, the term is made monotone in the group's feature, in the
        direction of the common sensitivity.
        """
        own = blocks(self.space.problem.space, self.space.split.measured_parameters)
        found: list[Floats] = []
        for place, term in enumerate(self.space.terms):
            start, stop = self.space.starts[place], self.space.starts[place + 1]
            mine = np.flatnonzero(self.places == place)
            features = np.zeros((stop - start, len(self.tables)))
            for column in mine:
                features[:, column] = self.tables[column]
            numbers = [at for at, block in enumerate(own) if block.parameter.name in term.names]
            effect = process.term_effects(
                features, self.space.points[start:stop], np.array(numbers, dtype=np.int64)
            )
            if self.monotone and len(mine) == 1:
                effect = _monotone(effect, self.tables[mine[0]], float(process.trend[1]))
            found.append(effect)
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class SumPredictor:
    """Fitted additive surrogate of a loss, with the output transform of the loss."""

    process: SumProcess
    warp: OutputTransform
    densities: Floats
    """Leave-one-out log density of each loss: each is predicted from all others."""

    @property
    def score(self) -> float:
        """Sum of the leave-one-out log densities of all losses, by which models are compared."""
        return float(self.densities.sum())

    @staticmethod
    def fit(
        points: Floats,
        losses: Floats,
        layout: SumLayout,
        kinds: Sequence[Kind],
        *,
        spread: Floats | None = None,
    ) -> SumPredictor:
        """Fit an additive surrogate with each output transform; return the best one.

        The best has the highest leave-one-out log density.

        Args:
            points: (n, c + features), inputs.
            losses: (n,).
            layout: layout of the inputs.
            kinds: output transforms to try.
            spread: (n,), standard errors of the losses.
        """
        found = [_fit(points, losses, layout, kind, spread) for kind in kinds]
        return max(found, key=lambda one: one.score)

    def taught(
        self, points: Floats, losses: Floats, *, spread: Floats | None = None
    ) -> SumPredictor:
        """Return a predictor refitted to new values, with equal output transform and variances."""
        process = self.process
        return _fit(points, losses, process.layout, self.warp.kind, spread, hyper=process.hyper)

    def condition(self, points: Floats, losses: Floats) -> SumPredictor:
        """Return the predictor conditioned on additional losses, with unchanged variances.

        Args:
            points: (k, c + features), the added points.
            losses: (k,), their losses.
        """
        old = self.process
        every = np.vstack([old.points, points])
        values = np.append(old.values, self.warp.learnt(losses))
        process = SumProcess.at(every, values, old.layout, old.hyper)
        return SumPredictor(process=process, warp=self.warp, densities=self.densities)

    def at(self, points: Floats) -> Prediction:
        """Return the predictive distribution of a new measurement, noise included, at k points."""
        means, deviations = self.process.moments(points)
        noise = self.process.amplitude * np.exp(self.process.hyper[3])
        return Prediction(means=means, deviations=np.sqrt(deviations**2 + noise), warp=self.warp)


def _fit(
    points: Floats,
    losses: Floats,
    layout: SumLayout,
    kind: Kind,
    spread: Floats | None,
    *,
    hyper: Floats | None = None,
) -> SumPredictor:
    """Fit a sum to transformed losses; given variances are kept."""
    warp = OutputTransform.of(losses, kind)
    values, slope = warp.learnt(losses), warp.slope(losses)
    variances = None if spread is None else (spread * slope) ** 2
    if hyper is None:
        process = SumProcess.fit(points, values, layout, variances=variances)
    else:
        process = SumProcess.at(points, values, layout, hyper, variances=variances)
    densities = leave_one_out_densities(values, *process.left_out(values), slope)
    return SumPredictor(process=process, warp=warp, densities=densities)


def _monotone(effect: Floats, feature: Floats, direction: float) -> Floats:
    """Return the isotonic regression of an effect, (r,), on a feature, rising or falling.

    Source:
        Best, Chakravarti: Active Set Algorithms for Isotonic Regression, 1990 (pool adjacent
        violators).
    """
    sign = 1.0 if direction >= 0 else -1.0
    order = np.argsort(feature, kind="stable")
    means: list[float] = []
    sizes: list[int] = []
    for value in sign * effect[order]:
        means.append(float(value))
        sizes.append(1)
        while len(means) > 1 and means[-2] > means[-1]:
            size = sizes[-2] + sizes[-1]
            means[-2] = (means[-2] * sizes[-2] + means[-1] * sizes[-1]) / size
            sizes[-2] = size
            del means[-1], sizes[-1]
    found = np.empty(len(effect))
    found[order] = sign * np.repeat(means, sizes)
    return found
