"""Part of the grey-box search that uses declared sums of parts: probes, surrogates, candidates."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.problem import Problem
from dse.core.trial import Event
from dse.optimizers.bayesian.conditional_fronts import ConditionalFronts
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.bayesian.metric_model import Encoder, Surrogate
from dse.optimizers.separable.belief_front import BeliefFront
from dse.optimizers.separable.separable_model import SeparableModel
from dse.optimizers.separable.sum_model import SumInputs, SumPredictor
from dse.optimizers.separable.sum_or_process import SumOrProcess


class SeparableSearch:
    """Declared sums of parts of a problem; without a usable declaration it does nothing.

    Args:
        problem: problem to optimise.
        roles: its split into measured and modelled metrics.
        stairs: its conditional fronts.
    """

    def __init__(self, problem: Problem, roles: MeasuredSplit, stairs: ConditionalFronts) -> None:
        self._problem = problem
        self._roles = roles
        self._stairs = stairs
        self._reported: dict[int | str, bool | str] = {}

    @cached_property
    def _found(self) -> SeparableModel | str:
        """Parts of the problem, or the reason why there are none; it evaluates models."""
        return SeparableModel.of(self._problem, self._roles)

    @property
    def _model(self) -> SeparableModel | None:
        return self._found if isinstance(self._found, SeparableModel) else None

    @cached_property
    def sums(self) -> SumOrProcess | None:
        """Fitter of the surrogates; ``None`` without a usable declaration."""
        return None if self._model is None else SumOrProcess(self._model)

    @cached_property
    def _front(self) -> BeliefFront | None:
        return None if self._model is None else BeliefFront(self._model.space, self._stairs)

    @property
    def usable(self) -> bool:
        """Whether an objective is declared separable, and its parts can be listed."""
        return self._model is not None

    @property
    def is_trusted(self) -> bool:
        """Whether an objective is learnt as a sum of parts at present."""
        choices = {} if self.sums is None else self.sums.choices
        return any(one.is_sum for one in choices.values())

    def open_probes(self, attempted: Batch) -> Batch:
        """Return first designs from which unknown sensitivities can be learnt.

        Args:
            attempted: designs that were or are being measured.
        """
        return (
            attempted.take(np.arange(0))
            if self._model is None
            else self._model.open_probes(attempted)
        )

    def candidates(self, surrogates: Sequence[tuple[Encoder, Surrogate]]) -> Batch | None:
        """Return the front of the belief; ``None`` if no objective is learnt as a sum."""
        effects = [
            inputs.part_effects(one.process)
            for inputs, one in surrogates
            if isinstance(inputs, SumInputs) and isinstance(one, SumPredictor)
        ]
        return self._front.candidates(effects) if self._front is not None and effects else None

    def events(self, told: int) -> list[Event]:
        """Return events on the models that were chosen since the last call, and why.

        Args:
            told: number of finished trials.
        """
        reports: dict[int | str, tuple[bool | str, str]] = {}
        if told and isinstance(self._found, str) and self._found:
            reports["ignored"] = self._found, f"declared parts are ignored: {self._found}"
        for place, choice in ({} if self.sums is None else self.sums.choices).items():
            formula = self._problem.objectives[place].expression.text
            reports[place] = choice.is_sum, f"{formula} {choice.text}"
        new = {key: own for key, own in reports.items() if self._reported.get(key) != own[0]}
        self._reported |= {key: state for key, (state, _) in new.items()}
        return [Event(kind="model", text=text, told=told) for _, text in new.values()]
