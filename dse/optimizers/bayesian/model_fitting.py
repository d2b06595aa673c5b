"""Fitting of Gaussian processes to finished trials, one for each measured quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.expression import Expression
from dse.core.objective import Limit, Objective
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.gaussian_process import Hyper
from dse.optimizers.bayesian.library_agreement import LibraryAgreement
from dse.optimizers.bayesian.library_prior import MemberWeights
from dse.optimizers.bayesian.low_fidelity_prior import (
    Columns,
    LowFidelityInputs,
    LowFidelityPrior,
    agrees,
    is_without_fidelity,
)
from dse.optimizers.bayesian.measured_settings import MeasuredSplit, firsts, keys
from dse.optimizers.bayesian.metric_model import (
    Encoder,
    Guess,
    Inputs,
    Predictor,
    Surrogate,
    kinds_of,
)
from dse.optimizers.bayesian.output_transform import LARGE, Kind, OutputTransform
from dse.optimizers.bayesian.prior_mean_model import PriorMeanInputs, PriorMeanPredictor
from dse.optimizers.bayesian.transfer_prior import PriorMean, weight
from dse.optimizers.separable.separable_model import key_of_formula
from dse.optimizers.separable.sum_or_process import ProcessModel, SumOrProcess

Learnt = tuple[Encoder, Surrogate]

MOST = 300
"""Most training values; of more, the best half and an even sample of the rest are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Quantity:
    """Learnt quantity: its formula, its text in events, and the sign that makes it a loss."""

    text: str
    expression: Expression
    sign: float


class ModelFitter:
    """Fitter of one Gaussian process per measured objective or limit.

    The inputs of a process are the parameters that the quantity depends on, modelled metrics of
    these parameters, and predictions from other studies (``Problem.priors``), weighted by their
    rank agreement with the values measured here. At most ``most`` values are fitted.
    """

    def __init__(
        self,
        problem: Problem,
        split: MeasuredSplit,
        probe: Batch,
        sums: SumOrProcess | None = None,
        *,
        library: LibraryAgreement | None = None,
        most: int = MOST,
    ) -> None:
        self._problem = problem
        self._sums = sums
        self._split = split
        self._probe = probe
        self._most = most
        self._last: dict[str, Predictor] = {}
        self._priors = [PriorMean.of(problem, one) for one in problem.priors if not one.library]
        self._library = library or LibraryAgreement.of(problem, split)
        self._fidelities = LowFidelityPrior.of(problem, split)
        self._last_hyper: dict[str, Hyper] = {}
        self.weights: dict[str, MemberWeights] = {}
        """Weights of the members of a library at the last fit, by objective or limit."""

    def objective(
        self,
        objective: Objective,
        done: Sequence[Trial],
        losses: Floats,
        *,
        scale: float = 1.0,
        refit: bool,
    ) -> Learnt:
        """Fit a Gaussian process, or an additive model, to an objective's losses.

        Args:
            objective: objective to model.
            done: n trials that are done.
            losses: (n,), the objective's losses on its scale, divided by ``scale``.
            scale: divisor of the losses.
            refit: whether to fit the hyperparameters, instead of keeping the last ones.
        """
        expression = objective.expression
        spread = _spread(self._problem, expression, objective.scale * scale, done)
        several = len(self._problem.objectives) > 1
        kinds = kinds_of(losses[np.isfinite(losses)], objective.unit, several=several)
        if objective.log:
            kinds = ("plain",)
            spread = None if spread is None else spread * scale / np.exp(objective.sign * losses)
        sign = 1.0 if objective.goal == "minimize" else -1.0
        rows, there = self._choose_trials(expression, done, losses)
        own = None if spread is None else spread[rows]
        plain = self._taught(
            expression, there, losses[rows], kinds=kinds, spread=own, sign=sign, refit=refit
        )
        about = _Quantity(text=objective.expression.text, expression=expression, sign=sign)
        found = self._use_library(
            about, done, (there, losses[rows]), plain, spread=own, refit=refit
        )

        def losses_of(columns: Columns, size: int) -> Floats:
            values = objective.sign * objective.values(columns, size)
            return objective.on_scale(values) / scale

        found = self._use_low_fidelity(
            about, losses_of, (there, losses[rows]), found, own, refit=refit
        )
        if objective.log or isinstance(found[0], LowFidelityInputs):
            return found  # a sum has no logarithm that is a sum
        return self._sum_or(expression, there, losses[rows], found, kinds, own, refit=refit)

    def limit(self, limit: Limit, done: Sequence[Trial], excess: Floats, *, refit: bool) -> Learnt:
        """Fit a surrogate to the violations of a limit on a measured metric.

        Args:
            limit: limit to model.
            done: n trials that are done.
            excess: the limit's violations, (n,), at most 0 where it is satisfied.
            refit: whether to fit the hyperparameters, instead of keeping the last ones.
        """
        rows, there = self._choose_trials(limit.slack, done, excess)
        kinds: tuple[Kind, ...] = ("plain",)
        plain = self._taught(limit.slack, there, excess[rows], kinds=kinds, refit=refit)
        about = _Quantity(text=limit.text, expression=limit.slack, sign=-1.0)
        found = self._use_library(about, done, (there, excess[rows]), plain, refit=refit)
        return self._sum_or(limit.slack, there, excess[rows], found, kinds, None, refit=refit)

    def _sum_or(
        self,
        expression: Expression,
        there: Batch,
        losses: Floats,
        plain: ProcessModel,
        kinds: tuple[Kind, ...],
        spread: Floats | None,
        *,
        refit: bool,
    ) -> Learnt:
        """Return a sum of terms if the formula may be one and the sum fits well, else ``plain``."""
        if self._sums is None:
            return plain
        key = key_of_formula(expression)
        if key not in self._sums.model.inputs:
            return plain
        return self._sums.choose(key, there, losses, plain, kinds=kinds, spread=spread, refit=refit)

    def success(
        self, measured_parameters: frozenset[str], trials: Sequence[Trial], *, refit: bool
    ) -> list[Learnt]:
        """Fit a Gaussian process to whether measurements succeed: -1 for success, 1 for failure.

        The result is a list of one surrogate; it is empty while all measurements succeeded.
        """
        done = np.array([trial.state is State.DONE for trial in trials])
        batch = self._problem.space.batch([trial.design for trial in trials])
        rows = firsts(keys(batch, sorted(measured_parameters)))[-self._most :]
        if done[rows].all():
            return []
        inputs = Inputs(self._problem, measured_parameters, self._probe)
        values = np.where(done[rows], -1.0, 1.0)
        points = inputs.points(batch.take(rows))
        return [
            (
                inputs,
                self._fit_predictor("success", inputs, points, values, ("plain",), refit=refit),
            )
        ]

    def _taught(
        self,
        expression: Expression,
        there: Batch,
        losses: Floats,
        *,
        kinds: tuple[Kind, ...],
        spread: Floats | None = None,
        sign: float = 1.0,
        refit: bool,
    ) -> tuple[Inputs, Predictor]:
        """Fit a model to the losses of these designs, (n,)."""
        guesses = self._guesses(expression, there, sign * losses)
        inputs = Inputs(self._problem, self._split.behind(expression), self._probe, guesses)
        name = repr(expression.node)  # both halves of a chained limit have the same text
        return inputs, self._fit_predictor(
            name, inputs, inputs.points(there), losses, kinds, spread, refit=refit
        )

    def _use_library(
        self,
        about: _Quantity,
        done: Sequence[Trial],
        known: tuple[Batch, Floats],
        plain: tuple[Inputs, Predictor],
        *,
        spread: Floats | None = None,
        refit: bool,
    ) -> ProcessModel:
        """Return a model with the library's prior mean, or the given model if that fits better.

        A library that does not agree with the trials that are done is not used at all.
        """
        if self._library is None:
            return plain
        there, losses = known
        name = repr(about.expression.node)
        last = self._last_hyper.pop(name, None) if refit else self._last_hyper.get(name)
        library = self._library.mean_of(about.expression, about.sign)
        if library is None:
            return plain
        inputs, predictor = plain
        chosen = library.weigh(library.members(there), losses)
        self.weights[about.text] = chosen
        if not (chosen.trust > 0 and self._library.is_used(done)):
            return plain
        mean = PriorMeanInputs(inputs=inputs, library=library, chosen=chosen)
        found = PriorMeanPredictor.fit(
            mean.points(there),
            losses,
            predictor,
            chosen.trust,
            spread=spread,
            hyper=None if refit else last,
        )
        if refit:
            self._last_hyper[name] = found.process.hyper
        return (mean, found) if found.is_better_than(predictor) else plain

    def _use_low_fidelity(
        self,
        about: _Quantity,
        losses_of: Callable[[Columns, int], Floats],
        known: tuple[Batch, Floats],
        plain: ProcessModel,
        spread: Floats | None,
        *,
        refit: bool,
    ) -> ProcessModel:
        """Return a model with a lower fidelity as prior mean, or the given model if it is better.

        A lower fidelity that does not rank the measured designs as the measurements do is not used.
        """
        if self._fidelities is None:
            return plain
        name = f"fidelity {about.expression.node!r}"
        last = self._last_hyper.pop(name, None) if refit else self._last_hyper.get(name)
        inputs, predictor = plain
        there, losses = known
        if not (isinstance(inputs, Inputs) and isinstance(predictor, Predictor)):
            return plain  # a library is the prior mean already
        if not self._fidelities.covers(about.expression) or is_without_fidelity(len(losses)):
            return plain
        columns, _ = self._fidelities.columns(there)
        low = losses_of(columns, len(there))
        if not agrees(low, losses):
            return plain
        every = np.concatenate([low[np.isfinite(low)], losses])
        one_sign = every.min() > 0 or every.max() < 0
        warp = OutputTransform.of(losses, "log") if one_sign else predictor.warp
        mean = LowFidelityInputs(
            inputs=inputs, fidelities=self._fidelities, losses_of=losses_of, warp=warp
        )
        found = PriorMeanPredictor.fit(
            mean.points(there),
            losses,
            predictor,
            1.0,
            spread=spread,
            hyper=None if refit else last,
            warp=warp,
        )
        if refit:
            self._last_hyper[name] = found.process.hyper
        return (mean, found) if found.is_better_than(predictor) else plain

    def _choose_trials(
        self, expression: Expression, done: Sequence[Trial], losses: Floats
    ) -> tuple[Ints, Batch]:
        """Return the trials to fit to, by index, (k,), and their designs.

        There is one trial for each combination of values of the parameters that the formula depends
        on.
        """
        names = self._split.behind(expression)
        batch = self._problem.space.batch([trial.design for trial in done])
        rows = np.flatnonzero(np.isfinite(losses))
        rows = rows[firsts(keys(batch.take(rows), sorted(names)))]
        rows = rows[_choose_rows(losses[rows], self._most)]
        return rows, batch.take(rows)

    def _fit_predictor(
        self,
        name: str,
        inputs: Inputs,
        points: Floats,
        losses: Floats,
        kinds: tuple[Kind, ...],
        spread: Floats | None = None,
        *,
        refit: bool,
    ) -> Predictor:
        last = self._last.get(name)
        if not refit and last is not None and last.warp.kind in kinds:
            return last.taught(points, losses, spread=spread)
        found = Predictor.fit(
            points, losses, inputs.owners, kinds, alone=inputs.alone, spread=spread
        )
        if refit:  # other fits are not kept, as a resumed study would not have them
            self._last[name] = found
        return found

    def _guesses(self, expression: Expression, batch: Batch, values: Floats) -> tuple[Guess, ...]:
        """Return other studies' predictions of the metric, each with a trust from rank agreement.

        The list is empty unless the expression reads a single metric.
        """
        if len(expression.names) != 1:
            return ()
        metric = next(iter(expression.names))
        found = []
        for mean in self._priors:
            if metric in mean.learnt:
                trust = weight(mean(batch)[metric], values)
                found.append(Guess(mean=mean, metric=metric, trust=trust))
        return tuple(found)


def _choose_rows(losses: Floats, most: int) -> Ints:
    """Return the indices of the values to fit: all, or a subset if there are more than ``most``.

    Half of the subset are the lowest losses, the rest an even sample of the others.
    """
    if len(losses) <= most:
        return np.arange(len(losses))
    order = np.argsort(losses, kind="stable")
    rest = order[most // 2 :]
    some = rest[np.linspace(0, len(rest) - 1, most - most // 2).round().astype(int)]
    return np.sort(np.concatenate([order[: most // 2], some]))


def _spread(
    problem: Problem, expression: Expression, scale: float, done: Sequence[Trial]
) -> Floats | None:
    """Return the standard errors of an expression's values, divided by ``scale``; else ``None``.

    They are known if the expression is a single metric, possibly times a unit factor, and every
    trial has the metric's standard error.
    """
    names = expression.names
    if len(names) != 1:
        return None
    name = next(iter(names))
    if not all(name in trial.spread for trial in done):
        return None
    values = problem.columns(done)[name].values
    factor = expression.values({name: problem.columns(done)[name]}, len(done)).values
    with np.errstate(all="ignore"):
        ratio = np.nan_to_num(np.abs(factor / values), nan=1.0)
    with np.errstate(over="ignore"):
        spread = np.array([trial.spread[name] for trial in done]) * ratio / scale
    return np.minimum(spread, LARGE)
