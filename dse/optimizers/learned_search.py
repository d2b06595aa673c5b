"""Search by regressions over all trials: expected hypervolume improvement over the listed space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.stats import norm, qmc

from dse.core.batch import Batch, Column, concatenate_batches
from dse.core.design import Design
from dse.core.pareto import nondominated
from dse.core.problem import Problem
from dse.core.trial import Event, State, Trial
from dse.core.values import Floats, Mask
from dse.errors import PluginError
from dse.optimizers.bayesian.candidates import candidates
from dse.optimizers.bayesian.expected_improvement import open_boxes
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import HasRegression, OptimizerTraits, Regression
from dse.registry import load, make

FEWEST = 20
"""Measured designs before the first regression; space-filling until then."""

_LISTED = 100_000
"""Largest space of which every design is predicted; of a larger one, a pool is drawn."""
_DRAWN = 8_192
_CHUNK = 4_000_000
_OUTCOMES = 32
"""Quasi-random outcomes of the measured metrics, over which the improvement is averaged."""


class LearnedSearch:
    """Optimizer that measures where regressions over all trials expect the largest improvement.

    Each measured metric has the regression of the evaluator ``learned``: the best of gradient
    boosting, extra trees, a Gaussian process, ridge regression and their mean, with the error of
    held-out trials. Attached and imported trials count, so that a table of earlier runs is where
    the search begins. The regressions are fitted again after every ``refit`` trials, and depend on
    the trials alone. The next design is that of largest expected hypervolume improvement over all
    legal designs, or over a pool of a space of more than 100,000.

    Args:
        problem: problem to optimise.
        refit: number of trials between two fits.
        proposals: name of the optimizer that proposes the first 20 designs.

    Raises:
        PluginError: nothing is measured, or ``refit`` is below 1.

    Source:
        Emmerich, Deutz, Klinkenberg: Hypervolume-based expected improvement, CEC 2011.
    """

    traits = OptimizerTraits()

    def __init__(self, problem: Problem, *, refit: int = 2, proposals: str = "sobol") -> None:
        if refit < 1:
            raise PluginError(f"refit is {refit}", hint="write refit: 2", part=["refit"])
        if not problem.measured:
            raise PluginError(
                "no objective or constraint is measured, so that nothing is to be learned",
                hint="optimizer: exhaustive finds the exact front",
            )
        learner = load("evaluators", "learned")
        if not isinstance(learner, HasRegression):
            raise PluginError("the evaluator 'learned' installed here has no regression")
        self._learner = learner
        self._problem, self._refit = problem, refit
        self._inner = make("optimizers", proposals, problem)
        self._finished: list[Trial] = []
        self._fitted: tuple[int, dict[str, Regression]] = (-1, {})
        self._listed: Batch | None = None
        self._draws = norm.ppf(qmc.Sobol(max(len(problem.measured), 1), rng=0).random(_OUTCOMES))

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        taken = {*(trial.design for trial in self._finished), *pending}
        measured = self._list_measured()
        if len({trial.design for trial in measured}) < FEWEST:
            first: list[Design] = self._inner.ask(count, pending)
            return first
        models = self._fit(measured)
        rng = self._problem.rng(len(self._finished), len(pending))
        pool = self._pool(measured, taken, rng)
        found: list[Design] = []
        while len(found) < count and len(pool):
            gains = self._gains(measured, models, pool, [*pending, *found])
            best = int(np.argmax(gains))
            found.append(pool.design(best))
            pool = pool.take(np.delete(np.arange(len(pool)), best))
        return found

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished
        self._inner.tell(finished)

    def events(self) -> list[Event]:
        return list(self._inner.events())

    def _list_measured(self) -> list[Trial]:
        """Return the finished trials with all measured metrics."""
        return [
            trial
            for trial in self._finished
            if trial.state is State.DONE
            and all(np.isfinite(trial.metrics.get(name, np.nan)) for name in self._problem.measured)
        ]

    def _fit(self, measured: Sequence[Trial]) -> dict[str, Regression]:
        """Return each measured metric's regression, fitted to a multiple of ``refit`` trials."""
        size = max(len(measured) - len(measured) % self._refit, FEWEST)
        if self._fitted[0] != size:
            batch = self._problem.space.batch([trial.design for trial in measured[:size]])
            found = dict[str, Regression]()
            for name in sorted(self._problem.measured):
                read = self._problem.reads(name)
                inputs = {one: values for one, values in batch.columns.items() if one in read}
                values = np.array([trial.metrics[name] for trial in measured[:size]])
                found[name] = self._learner.regress(Batch(inputs, len(batch)), values)
            self._fitted = size, found
        return self._fitted[1]

    def _pool(
        self, measured: Sequence[Trial], taken: set[Design], rng: np.random.Generator
    ) -> Batch:
        """Return the designs among which to choose the next: all, or a pool in a large space."""
        space = self._problem.space
        total = space.count()
        if total is None or total > _LISTED:
            elite = self._front(measured)
            drawn = fresh(space, _DRAWN, rng, taken)
            bred = candidates(self._problem, elite, taken.union(drawn), rng)
            return space.batch([*drawn, *bred])
        if self._listed is None:
            self._listed = concatenate_batches(space.enumerate(_DRAWN))
        gone = space.indices(space.batch([one for one in taken if space.knows(one)]))
        return self._listed.take(np.setdiff1d(np.arange(len(self._listed)), gone))

    def _front(self, measured: Sequence[Trial]) -> list[Design]:
        losses, feasible = self._problem.judged(measured)
        rows = np.flatnonzero(feasible)
        rows = rows[nondominated(losses[rows])] if len(rows) else np.arange(len(measured))[-16:]
        return [measured[row].design for row in rows.tolist()]

    def _gains(
        self,
        measured: Sequence[Trial],
        models: dict[str, Regression],
        pool: Batch,
        waiting: Sequence[Design],
    ) -> Floats:
        """Return the expected hypervolume improvement of each design of the pool, (n,).

        Pending designs (``waiting``) count with their predicted metrics. While no design is
        feasible, the result is each design's probability of being feasible instead.
        """
        outcomes = _Outcomes(self._problem, models, pool)
        losses, feasible = self._problem.judged(measured)
        archive = self._problem.on_scales(losses[feasible])
        archive = archive[np.isfinite(archive).all(axis=1)]
        if not len(archive):
            return np.mean([outcomes.draw(one)[1] for one in self._draws], axis=0)
        reference = self._reference(archive)
        if waiting:
            batch = self._problem.space.batch(waiting)
            more, fine = _Outcomes(self._problem, models, batch).draw(np.zeros(len(models)))
            archive = np.vstack([archive, more[fine]])
        archive = archive[nondominated(archive)]
        lower, upper = open_boxes(archive, reference)
        gains = np.zeros(len(pool))
        for one in self._draws:
            own, fine = outcomes.draw(one)
            gains[fine] += _improvements(own[fine], lower, upper)
        return gains / len(self._draws)

    def _reference(self, archive: Floats) -> Floats:
        """Return the reference point: the user's, or a tenth beyond the worst of all trials."""
        if self._problem.fixed_reference is not None:
            signs = np.array([one.sign for one in self._problem.objectives])
            return self._problem.on_scales(signs * np.array(self._problem.fixed_reference))
        span = np.ptp(archive, axis=0)
        return np.asarray(archive.max(axis=0) + np.where(span > 0, 0.1 * span, 1e-9))


class _Outcomes:
    """Losses of n designs for drawn values of the measured metrics."""

    def __init__(self, problem: Problem, models: dict[str, Regression], batch: Batch) -> None:
        self._problem, self._size = problem, len(batch)
        known = problem.known(batch)
        self._columns = dict(batch.columns)
        self._columns |= {name: Column(values) for name, values in known.columns.items()}
        self._fine = np.ones(len(batch), dtype=bool)
        self._fine[list(known.failures)] = False
        self._predictions = {name: model(batch) for name, model in models.items()}

    def draw(self, standard: Floats) -> tuple[Floats, Mask]:
        """Return losses on the objectives' scales, (n, m), and which designs are feasible, (n,).

        Args:
            standard: deviation of each metric from its mean, in standard deviations.
        """
        columns = dict(self._columns)
        for (name, prediction), one in zip(self._predictions.items(), standard, strict=True):
            columns[name] = Column(prediction.at(float(one)))
        losses = self._problem.on_scales(self._problem.losses(columns, self._size))
        slacks = self._problem.slacks(columns, self._size)
        fine = self._fine & np.isfinite(losses).all(axis=1) & (slacks >= 0).all(axis=1)
        return losses, fine


def _improvements(
    losses: Floats,  # (n, m)
    lower: Floats,  # (boxes, m)
    upper: Floats,  # (boxes, m)
) -> Floats:
    """Return the hypervolume that each point adds, (n,): its share of each non-dominated box."""
    found = np.zeros(len(losses))
    step = max(1, _CHUNK // max(len(lower), 1))
    for start in range(0, len(losses), step):
        own = losses[start : start + step]
        volume = np.ones((len(own), len(lower)))
        for place in range(own.shape[1]):
            height = upper[None, :, place] - np.maximum(lower[None, :, place], own[:, None, place])
            volume *= np.maximum(height, 0.0)
        found[start : start + step] = volume.sum(axis=1)
    return found
