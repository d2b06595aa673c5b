"""Multi-fidelity optimizer: screen a new design or promote one, by expected gain per second."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.design import Design
from dse.core.pareto import reference
from dse.core.problem import Problem
from dse.core.trial import Event, State, Trial
from dse.errors import PluginError
from dse.optimizers.bayesian.fidelity_calibration import FEWEST
from dse.optimizers.bayesian.promotion_value import PromotionValue
from dse.protocols import OptimizerTraits
from dse.registry import make

_RECENT = 10
"""Number of latest screened designs whose expected gains estimate that of a new design."""


class Ladder:
    """Optimizer that evaluates designs at a cheap fidelity and promotes the promising ones.

    The gain of a screened design is the hypervolume that it is expected to add, given its
    calibrated low-fidelity metrics; that of a new design is the mean of this gain over the latest
    screened ones. The option with more gain per second is evaluated. Without two measured
    fidelities of a metric it behaves as the optimizer ``proposals``.

    Args:
        problem: problem to optimise.
        proposals: name of the optimizer that proposes new designs.

    Raises:
        PluginError: a measured metric has no fidelity ladder although another has one.
    """

    traits = OptimizerTraits(multi_fidelity=True)

    def __init__(self, problem: Problem, *, proposals: str = "sobol") -> None:
        self._problem = problem
        _check(problem)
        self._inner = make("optimizers", proposals, problem)
        self._finished: list[Trial] = []
        self._promised: dict[int, float | None] = {}

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        chosen: list[Design] = []
        while len(chosen) < count:
            more = self._next([*pending, *chosen])
            if not more:
                break
            chosen += more
        return chosen

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished += finished
        self._inner.tell([trial for trial in finished if trial.state is not State.SCREENED])

    def events(self) -> list[Event]:
        return list(self._inner.events())

    def _next(self, pending: Sequence[Design]) -> list[Design]:
        """Return the design to evaluate next, in a list: a screened one or a new one.

        The list is empty if no design is left.
        """
        open_ = [trial for trial in self._list_open_trials() if trial.design not in set(pending)]
        best = self._choose_promotion(open_)
        if best is not None:
            return [best]
        waiting = {trial.design for trial in self._list_open_trials()}
        new: list[Design] = self._inner.ask(1, [*pending, *waiting.difference(pending)])
        return new or [trial.design for trial in open_[:1]]

    def _list_open_trials(self) -> list[Trial]:
        """Return the latest trial of each design not yet evaluated at the top fidelity."""
        latest = {trial.design: trial for trial in self._finished}
        return [trial for trial in latest.values() if trial.state is State.SCREENED]

    def _choose_promotion(self, open_: Sequence[Trial]) -> Design | None:
        """Return the screened design to evaluate at its next fidelity, or ``None`` for a new one.

        While too few designs have both fidelities to calibrate the lower one, all are promoted.
        """
        if not open_:
            return None
        if not self._ripe(self._finished):
            return open_[0].design
        gains = self._gains(self._finished, open_)
        screening_s, promotion_s = self._prices()
        best = int(np.argmax(gains))
        new = self._newcomers() / (screening_s + promotion_s)
        return open_[best].design if gains[best] > 0 and gains[best] / promotion_s >= new else None

    def _ripe(self, finished: Sequence[Trial]) -> bool:
        done = [trial for trial in finished if trial.state is State.DONE]
        return len(done) > FEWEST and reference(self._problem, done) is not None

    def _gains(self, finished: Sequence[Trial], screened: Sequence[Trial]) -> list[float]:
        value = PromotionValue(self._problem, finished)
        return [value.of(trial) for trial in screened]

    def _newcomers(self) -> float:
        """Return the expected gain of a new design: the mean over the latest screened designs.

        The gain of a screened design is estimated from the trials before that design.
        """
        places = [p for p, trial in enumerate(self._finished) if trial.state is State.SCREENED]
        for place in places[-_RECENT:]:
            if place not in self._promised:
                trial, before = self._finished[place], self._finished[:place]
                ripe = self._ripe(before) and trial.measured > 0
                self._promised[place] = self._gains(before, [trial])[0] if ripe else None
        found = [self._promised[place] for place in places[-_RECENT:]]
        known = [gain for gain in found if gain is not None]
        return float(np.mean(known)) if known else 0.0

    def _prices(self) -> tuple[float, float]:
        """Return the mean evaluation times of a screening and of a promotion, in seconds.

        A screening is an evaluation at low fidelity, a promotion is one at a higher fidelity.
        """
        screened = [t for t in self._finished if t.state is State.SCREENED and t.measured]
        designs = {trial.design for trial in screened}
        done = [t for t in self._finished if t.state is State.DONE and t.design in designs]
        return _mean_s(screened), _mean_s(done)


def _mean_s(trials: Sequence[Trial]) -> float:
    return max(float(np.mean([trial.cost_s for trial in trials])), 1e-9) if trials else 1e-9


def _check(problem: Problem) -> None:
    """Raise PluginError if only some measured metrics have a fidelity ladder.

    Without a cheap fidelity of each metric, the gain of a screened design cannot be estimated.
    """
    lacking = sorted(problem.measured - problem.ladders.keys()) if problem.ladders else []
    if lacking:
        raise PluginError(
            f"'ladder' cannot estimate the gain of a design: {lacking[0]} has no lower fidelity",
            hint=f"fidelities: {{{lacking[0]}: [..., {lacking[0]}]}}, or another optimizer",
        )
