"""An Optuna study played one trial at a time, defined by run."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import optuna
from case import Case
from optuna.study import StudyDirection
from optuna.trial import TrialState
from peers.coding import rank, ranked

from dse.core.design import Design
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.trial import Trial
from dse.core.values import Value


class OptunaStudy:
    """A study with this sampler; what is illegal is pruned, limits are its constraints.

    Conditional parameters are suggested only where they exist. An ordinal is suggested by its
    rank, so that the sampler knows the order.
    """

    def __init__(
        self,
        case: Case,
        sampler: optuna.samplers.BaseSampler,
        first: Sequence[Design] | None = None,
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self._problem = case.problem
        directions = [StudyDirection.MINIMIZE] * len(case.problem.objectives)
        self._study = optuna.create_study(sampler=sampler, directions=directions)
        self._asked: optuna.Trial | None = None
        for design in case.first() if first is None else first:
            self._enqueue(design)

    def use(self, sampler: optuna.samplers.BaseSampler) -> None:
        """Go on with another sampler."""
        self._study.sampler = sampler

    def ask(self) -> Mapping[str, Value]:
        self._asked = self._study.ask()
        return self._suggested(self._asked)

    def refuse(self) -> None:
        assert self._asked is not None
        self._study.tell(self._asked, state=TrialState.PRUNED)
        self._asked = None

    def tell(self, trial: Trial) -> None:
        if self._asked is None:
            self._enqueue(trial.design)
            self.ask()
        asked, self._asked = self._asked, None
        assert asked is not None
        losses = self._problem.trial_losses([trial])[0]
        if not np.isfinite(losses).all():
            self._study.tell(asked, state=TrialState.FAIL)
            return
        slacks = self._problem.slacks(self._problem.columns([trial]), 1)[0]
        for place, slack in enumerate(slacks):
            asked.set_constraint(f"limit{place}", -slack)
        self._study.tell(asked, losses.tolist())

    def _enqueue(self, design: Design) -> None:
        space = self._problem.space
        self._study.enqueue_trial({n: _stated(space.by_name[n], v) for n, v in design.items()})

    def _suggested(self, asked: optuna.Trial) -> dict[str, Value]:
        space, values = self._problem.space, dict[str, Value]()
        for parameter in space.parameters:
            rule = space.conditions.get(parameter.name)
            row = space.batch([values]).columns if rule else {}
            if rule is None or rule.holds(row, 1, unknown=False)[0]:
                values[parameter.name] = _value(asked, parameter)
        return values


def _value(asked: optuna.Trial, parameter: Parameter) -> Value:
    name = parameter.name
    match parameter:
        case Real():
            log = parameter.scale == "log"
            return asked.suggest_float(name, parameter.low, parameter.high, log=log)
        case Integer():
            log = parameter.scale == "log" and parameter.step == 1
            step = parameter.step
            return asked.suggest_int(name, parameter.low, parameter.high, step=step, log=log)
        case Ordinal():
            return ranked(parameter, asked.suggest_int(name, 0, len(parameter.values) - 1))
        case Choice():
            chosen: Value = asked.suggest_categorical(name, parameter.values)  # type: ignore[assignment]
            return chosen


def _stated(parameter: Parameter, value: Value) -> Any:
    """The value as the study knows it."""
    return rank(parameter, value) if isinstance(parameter, Ordinal) else value
