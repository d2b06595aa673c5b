"""Optuna study of a problem: it receives all finished trials and proposes one design at a time."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)
from optuna.samplers import TPESampler
from optuna.trial import FrozenTrial, TrialState

from dse.core.batch import Column
from dse.core.design import Design
from dse.core.legal_set.variable_order import dependence_order
from dse.core.parameter import Parameter, Real
from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.core.values import Value
from dse.optimizers.adapters.encoded_points import EncodedPoint, axes, encode_design, has_no_order
from dse.optimizers.support.constraints import trial_violations
from dse.optimizers.support.quiet_library import quiet

_FAILED = {"failed": 1e300}
"""Violated constraint of a trial without metrics; larger than the violation of any limit."""


class TpeStudy:
    """Optuna study that holds the finished trials of a problem and proposes designs.

    The temporary trial of each proposal is marked as failed; Optuna ignores failed trials, so that
    a proposal does not affect later ones. Parameters have the names and the encoding of
    :mod:`dse.optimizers.adapters.encoded_points`.

    Args:
        problem: problem to optimise.
        candidates: number of candidates drawn for each parameter, of which the best is taken.
        multivariate: whether all parameters are sampled jointly; ``None`` is Optuna's default.
    """

    def __init__(self, problem: Problem, *, candidates: int, multivariate: bool | None) -> None:
        self._problem = problem
        self._candidates = candidates
        self._multivariate = multivariate
        self._names = {p.name: name for name, p in axes(problem.space).items()}
        self._axes = {name: _axis(p) for name, p in axes(problem.space).items()}
        with _silence_optuna():
            self._study = optuna.create_study(directions=["minimize"] * len(problem.objectives))

    def tell(self, trials: Sequence[Trial]) -> None:
        """Add finished trials to the Optuna study; failures get the largest constraint violation.

        A trial without metrics is a failure. TPE counts failures among the bad trials, so that it
        proposes fewer designs near them.
        """
        losses = self._problem.trial_losses(trials)
        slacks = self._problem.slacks(self._problem.columns(trials), len(trials))
        done = np.isfinite(trial_violations(self._problem, trials))
        with _silence_optuna():
            for row, trial in enumerate(trials):
                if not done[row]:
                    self._study.add_trial(
                        self._trial(trial.design, state=TrialState.PRUNED, constraints=_FAILED)
                    )
                    continue
                limits = {f"limit{at}": -float(slack) for at, slack in enumerate(slacks[row])}
                self._study.add_trial(
                    self._trial(trial.design, values=losses[row].tolist(), constraints=limits)
                )

    def suggest_point(self, pending: Sequence[Design], seed: int) -> EncodedPoint:
        """Return the point that Optuna proposes next while ``pending`` are being evaluated."""
        with _silence_optuna():
            self._study.sampler = TPESampler(
                n_startup_trials=0,
                n_ei_candidates=self._candidates,
                multivariate=self._multivariate,
                seed=seed,
            )
            first = len(self._study.get_trials(deepcopy=False))
            for design in pending:
                self._study.add_trial(self._trial(design, state=TrialState.RUNNING))
            asked = self._study.ask()
            point = self._suggest_parameters(asked)
            for number in range(first, asked.number + 1):
                self._study.tell(number, state=TrialState.FAIL)
            return point

    def _suggest_parameters(self, asked: optuna.Trial) -> EncodedPoint:
        """Request a value of each parameter from Optuna, except of parameters that are inactive.

        A parameter comes after those that its condition reads.
        """
        space = self._problem.space
        columns = {parameter.name: Column.of([None]) for parameter in space.parameters}
        point: dict[str, float | int | str] = {}
        for own in dependence_order(list(space.by_name), space.conditions):
            rule = space.conditions.get(own)
            if rule is not None and not rule.holds(columns, 1, unknown=False)[0]:
                continue
            name = self._names.get(own, "")
            if name:
                point[name] = _suggestion(asked, name, self._axes[name])
            columns[own] = Column.of([_value(space.by_name[own], point.get(name, 0))])
        return point

    def _trial(self, design: Design, **outcome: Any) -> FrozenTrial:
        active = {self._names[own] for own in design if own in self._names}
        point = encode_design(self._problem.space, design)
        return optuna.create_trial(
            params={name: point[name] for name in point if name in active},
            distributions={name: self._axes[name] for name in point if name in active},
            **outcome,
        )


def _axis(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Real):
        return FloatDistribution(0.0, 1.0)
    size = len(parameter.values)
    if has_no_order(parameter):
        return CategoricalDistribution([f"v{code}" for code in range(size)])
    return IntDistribution(0, size - 1)


def _suggestion(asked: optuna.Trial, name: str, axis: BaseDistribution) -> float | int | str:
    match axis:
        case FloatDistribution():
            share: float = asked.suggest_float(name, axis.low, axis.high)
            return share
        case IntDistribution():
            rank: int = asked.suggest_int(name, axis.low, axis.high)
            return rank
        case _:
            assert isinstance(axis, CategoricalDistribution)
            return str(asked.suggest_categorical(name, axis.choices))


def _value(parameter: Parameter, suggested: float | str) -> Value:
    """Return the parameter value that a proposed value of Optuna's distribution encodes."""
    if isinstance(parameter, Real):
        return float(parameter.at(np.array([float(suggested)]))[0])
    code = int(suggested.removeprefix("v")) if isinstance(suggested, str) else int(suggested)
    return parameter.values[code]


@contextmanager
def _silence_optuna() -> Iterator[None]:
    """Silence Optuna's log output and its warnings about experimental features."""
    with quiet("optuna"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
