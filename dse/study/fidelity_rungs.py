"""Fidelity-ladder rungs of trials, for multi-fidelity optimizers."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dse.core.design import Design
from dse.core.trial import Trial
from dse.study.history import TrialHistory


class TrialFidelities:
    """Fidelity level (rung) of each trial: the number of earlier trials with the same design.

    Args:
        ledger: the driver's copy of the study's trials.
        stages: the lowest rung at which each evaluator runs, by its label; empty if the study has
            only one fidelity.
        whole: designs that are evaluated in full the first time, such as baselines.
    """

    def __init__(
        self, ledger: TrialHistory, stages: Mapping[str, int], *, whole: Collection[Design]
    ) -> None:
        self.highest = max(stages.values(), default=0)
        self._ledger = ledger
        self._stages = stages
        self._whole = frozenset(whole)

    def labels(self, trial: Trial) -> frozenset[str] | None:
        """Return the labels of the evaluators that run on the trial's rung; ``None`` means all."""
        if not self._stages or trial.design in self._whole:
            return None
        rung = self._ledger.numbers[trial.design].index(trial.number)
        if rung >= self.highest:
            return None
        return frozenset(label for label, stage in self._stages.items() if stage <= rung)
