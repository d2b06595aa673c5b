"""Ax by its client with default settings: centre, Sobol, then modular BoTorch."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.exceptions.generation_strategy import GenerationStrategyRepeatedPoints
from case import Case
from playing import Step, played

from dse.core.design import Design
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.trial import Trial
from dse.core.values import Value

TRIES = 3
"""Few: each costs seconds."""


def run(case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The peer's record on the seeded case."""
    torch.set_num_threads(1)
    return played(case, AxClient(case, seed), seed=seed, trials=trials, tries=TRIES)


class AxClient:
    """A client told of each trial; what is illegal is abandoned, so that it is not asked again.

    The space is flat: values of inactive parameters are ignored, and told at the middle of the
    domain for designs from outside.
    """

    def __init__(self, case: Case, seed: int, first: Sequence[Design] | None = None) -> None:
        logging.getLogger("ax").setLevel(logging.CRITICAL)
        for handler in logging.getLogger("ax").handlers:
            handler.setLevel(logging.CRITICAL)
        self._problem = case.problem
        self._names = {p.name: f"p{k}" for k, p in enumerate(case.problem.space.parameters)}
        self._client = Client(random_seed=seed)
        self._client.configure_experiment([self._axis(p) for p in case.problem.space.parameters])
        losses = ", ".join(f"-loss{k}" for k in range(len(case.problem.objectives)))
        rules = [f"excess{k} <= 0" for k in range(len(case.problem.limits))]
        self._client.configure_optimization(losses, rules)
        self._waiting = case.first() if first is None else list(first)
        self._index: int | None = None

    def ask(self) -> Mapping[str, Value] | None:
        if self._waiting:
            design = self._waiting.pop(0)
            self._index = self._client.attach_trial(self._stated(design))
            return dict(design)
        try:
            found = self._client.get_next_trials(1)
        except GenerationStrategyRepeatedPoints:
            return None
        if not found:
            return None
        ((self._index, values),) = found.items()
        return {name: values[own] for name, own in self._names.items()}

    def refuse(self) -> None:
        if self._index is not None:
            self._client.mark_trial_abandoned(self._index)
        self._index = None

    def tell(self, trial: Trial) -> None:
        index, self._index = self._index, None
        if index is None:
            index = self._client.attach_trial(self._stated(trial.design))
        losses = self._problem.trial_losses([trial])[0]
        slacks = self._problem.slacks(self._problem.columns([trial]), 1)[0]
        if not np.isfinite(losses).all():
            self._client.mark_trial_abandoned(index)
            return
        found = {f"loss{k}": float(value) for k, value in enumerate(losses)}
        found |= {f"excess{k}": float(-value) for k, value in enumerate(slacks)}
        self._client.complete_trial(index, found)

    def _axis(self, parameter: Parameter) -> RangeParameterConfig | ChoiceParameterConfig:
        name = self._names[parameter.name]
        match parameter:
            case Real():
                bounds = (parameter.low, parameter.high)
                return RangeParameterConfig(name, bounds, "float", scaling=parameter.scale)
            case Integer() if parameter.step == 1:
                bounds = (parameter.low, parameter.high)
                return RangeParameterConfig(name, bounds, "int", scaling=parameter.scale)
            case Integer() | Ordinal():
                return ChoiceParameterConfig(name, *_typed(parameter.values), is_ordered=True)
            case Choice():
                return ChoiceParameterConfig(name, *_typed(parameter.values), is_ordered=False)

    def _stated(self, design: Design) -> dict[str, Any]:
        return {
            self._names[p.name]: design.get(p.name, _middle(p))
            for p in self._problem.space.parameters
        }


def _typed(values: tuple[Value, ...]) -> tuple[list[Any], Any]:
    """The values of one type, and its name in Ax."""
    for kind, name in ((bool, "bool"), (str, "str")):
        if all(isinstance(value, kind) for value in values):
            return list(values), name
    if all(isinstance(value, int) for value in values):
        return list(values), "int"
    return [float(value) for value in values], "float"


def _middle(parameter: Parameter) -> Value:
    if isinstance(parameter, Real):
        return float(parameter.at(np.array([0.5]))[0])
    return parameter.values[(len(parameter.values) - 1) // 2]
