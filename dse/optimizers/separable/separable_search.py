"""Part of the grey-box search that uses sums of terms: first designs, surrogates, candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.problem import Problem
from dse.core.trial import Event
from dse.core.values import Floats
from dse.optimizers.bayesian.conditional_fronts import ConditionalFrontCache
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.bayesian.metric_model import Encoder, Surrogate
from dse.optimizers.bayesian.posterior import Posterior
from dse.optimizers.separable.predicted_front import PredictedFront
from dse.optimizers.separable.separable_model import (
    SeparableModel,
    key_of_formula,
    learnt_formulas,
)
from dse.optimizers.separable.sum_model import SumInputs, SumPredictor
from dse.optimizers.separable.sum_or_process import SumOrProcess


class SeparableSearch:
    """Search with additive surrogates, each a sum of one term per parameter group.

    Args:
        problem: problem to optimise.
        split: the problem's objectives and limits, split into measured and modelled ones.
        front_cache: fronts over the parameters that no measurement reads.
        found: inputs of the additive surrogates, or the reason why the declared ones are ignored.
    """

    def __init__(
        self,
        problem: Problem,
        split: MeasuredSplit,
        front_cache: ConditionalFrontCache,
        found: SeparableModel | str,
    ) -> None:
        self._problem = problem
        self._split = split
        self._found = found
        self._model = found if isinstance(found, SeparableModel) else None
        self.sums = None if self._model is None else SumOrProcess(self._model)
        """Fitter of the additive surrogates; ``None`` if no parameter groups are known."""
        self._front = (
            None if self._model is None else PredictedFront(self._model.space, front_cache)
        )
        self._reported: dict[str, bool | str] = {}

    @staticmethod
    def of(
        problem: Problem, split: MeasuredSplit, front_cache: ConditionalFrontCache, *, find: bool
    ) -> SeparableSearch | None:
        """Return the search for a problem, which evaluates models; ``None`` if no sum is known.

        Args:
            problem: problem to optimise.
            split: the problem's objectives and limits, split into measured and modelled ones.
            front_cache: fronts over the parameters that no measurement reads.
            find: whether sums that were not declared are tried, too.
        """
        found = SeparableModel.of(problem, split, find=find)
        return SeparableSearch(problem, split, front_cache, found) if found else None

    @property
    def usable(self) -> bool:
        """Whether an objective or a limit is declared additive, and its terms can be listed."""
        return self._model is not None and bool(self._model.declared)

    @property
    def is_trusted(self) -> bool:
        """Whether the present surrogate of an objective or a limit is additive."""
        choices = {} if self.sums is None else self.sums.choices
        return any(one.is_sum for one in choices.values())

    def open_ends(self, attempted: Batch) -> Batch:
        """Return designs at the expected ends of the front whose values are not known yet.

        Args:
            attempted: designs that were or are being measured.
        """
        if self._model is None:
            return attempted.take(np.arange(0))
        return self._model.open_ends(attempted)

    def candidates(self, known: Posterior) -> Batch | None:
        """Return the designs on the predicted front; ``None`` if no surrogate is additive.

        Args:
            known: surrogates of the objectives and limits.
        """
        objectives, limits = _sums_in(known.objectives), _sums_in(known.limits)
        if self._front is None or not (objectives or limits):
            return None
        effects = [inputs.term_effects(one.process) for inputs, one in objectives]
        for inputs, one in limits:
            own = inputs.term_effects(one.process)
            # the excess over a limit on an objective's metric adds nothing to the front
            if not any(
                inputs is other and _rise_together(own, effect)
                for (other, _), effect in zip(objectives, effects, strict=False)
            ):
                effects.append(own)
        return self._front.candidates(effects, known.chances if known.limits else None)

    def events(self, finished: int) -> list[Event]:
        """Return events on the surrogates that were chosen since the last call, and why.

        Args:
            finished: number of finished trials.
        """
        reports: dict[str, tuple[bool | str, str]] = {}
        if finished and isinstance(self._found, str):
            reports["ignored"] = self._found, f"declared terms are ignored: {self._found}"
        choices = {} if self.sums is None else self.sums.choices
        formulas = learnt_formulas(self._problem, self._split) if choices else {}
        for text, formula in formulas.items():
            choice = choices.get(key_of_formula(formula))
            if choice is not None:
                reports[text] = choice.is_sum, f"{text} {choice.text}"
            if choice is not None and not choice.declared:
                self._reported.setdefault(text, False)  # the usual model is no news
        new = {key: own for key, own in reports.items() if self._reported.get(key) != own[0]}
        self._reported |= {key: state for key, (state, _) in new.items()}
        return [Event(kind="model", text=text, told=finished) for _, text in new.values()]


def _sums_in(
    surrogates: Sequence[tuple[Encoder, Surrogate]],
) -> list[tuple[SumInputs, SumPredictor]]:
    return [
        (inputs, one)
        for inputs, one in surrogates
        if isinstance(inputs, SumInputs) and isinstance(one, SumPredictor)
    ]


def _rise_together(effects: Sequence[Floats], others: Sequence[Floats]) -> bool:
    """Return whether two sums of terms rise with the same rows, as their correlation shows."""
    pairs = zip(effects, others, strict=True)
    return sum(float((one - one.mean()) @ (two - two.mean())) for one, two in pairs) > 0
