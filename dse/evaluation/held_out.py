"""Pipeline of a study with its evaluators on the test split, and the results that it yields."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from dse.core.judged_trials import JudgedTrial
from dse.core.trial import Outcome, State, Trial
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import MeasurementCache, Pipeline
from dse.protocols import RESAMPLE, Task, find_test_evaluator


class HeldOutPipeline:
    """Pipeline of a study's evaluators, each of which measures on its test split if it has one.

    Metrics that do not depend on the test split keep the values of the trial.

    Args:
        pipeline: the evaluators as the search uses them.
        asked: the metrics that objectives and limits read; resamples of other metrics are not kept.
    """

    def __init__(self, pipeline: Pipeline, asked: Collection[str]) -> None:
        self._asked = asked
        bound = [_bind_test(one) for one in pipeline.bound]
        self._kept, self.remeasured = _partition(pipeline.bound, bound)
        self.pipeline = Pipeline(bound)
        self.pipeline.may_start = True
        self._known = MeasurementCache(self.pipeline)

    def task(self, trial: Trial) -> Task:
        """Return the evaluation task of a trial, with the metrics that need no measurement."""
        kept = {
            name: trial.metrics.get(name, np.nan) for one in self._kept for name in one.provides
        }
        spread = {name: error for name, error in trial.spread.items() if name in kept}
        known = self._known.task(trial)
        return replace(known, given={**known.given, **kept}, spread={**known.spread, **spread})

    def read(self, trial: Trial, outcome: Outcome) -> JudgedTrial:
        """Return the trial's result on the test split, and cache it for other trials.

        Args:
            trial: the trial.
            outcome: the outcome of its task.
        """
        if outcome.state is not State.DONE:
            failure = outcome.failure
            reason = outcome.state.value if failure is None else f"{failure.kind}: {failure.reason}"
            return JudgedTrial(number=trial.number, failure=reason)
        self._known.learn(trial.finished(outcome))
        whole = {name: v for name, v in outcome.metrics.items() if RESAMPLE not in name}
        resamples = _gather_resamples(outcome.metrics, self._asked)
        errors = {name: float(np.std(row, ddof=1)) for name, row in resamples.items()}
        spread = {name: e for name, e in outcome.spread.items() if RESAMPLE not in name}
        return JudgedTrial(
            number=trial.number,
            metrics=whole,
            spread={**spread, **errors},
            resamples=resamples,
            remeasured=self.remeasured,
        )


def has_test_split(pipeline: Pipeline) -> bool:
    """Return whether any evaluator can measure on a test split."""
    return any(find_test_evaluator(one.evaluator) is not None for one in pipeline.bound)


def _bind_test(bound: Bound) -> Bound:
    evaluator = find_test_evaluator(bound.evaluator)
    return bound if evaluator is None else replace(bound, evaluator=evaluator)


def _partition(
    searched: Collection[Bound], tested: Collection[Bound]
) -> tuple[list[Bound], tuple[str, ...]]:
    """Return the evaluators that do not depend on the test split, and the metrics that do.

    Args:
        searched: the evaluators in dependency order.
        tested: the same evaluators, on the test split where they have one.
    """
    kept: list[Bound] = []
    remeasured: set[str] = set()
    for old, new in zip(searched, tested, strict=True):
        if new is not old or old.reads & remeasured:
            remeasured |= old.provides.keys()
        else:
            kept.append(old)
    return kept, tuple(sorted(remeasured))


def _gather_resamples(
    metrics: Mapping[str, float], asked: Collection[str]
) -> dict[str, tuple[float, ...]]:
    """Return the resamples of each metric in order; leave out metrics that lack a resample."""
    found: dict[str, dict[int, float]] = {}
    for full, value in metrics.items():
        name, mark, rest = full.partition(RESAMPLE)
        number, _, scenario = rest.partition("@")
        name = f"{name}@{scenario}" if scenario else name
        if mark and number.isdecimal() and name in asked:
            found.setdefault(name, {})[int(number)] = value
    most = max((len(row) for row in found.values()), default=0)
    return {
        name: tuple(row[place] for place in range(most))
        for name, row in found.items()
        if row.keys() == set(range(most)) and most > 1
    }
