"""Which part of the front was found when, against what can be read off by hand."""

import numpy as np
import pytest

from dse.analysis.runs import Run, stages
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Integer
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial

# Ten trials of one measurement each; the front after 1, 3, 5 and 10 of them is known by sight.
FOUND = [(5, 5), (6, 6), (3, 7), (8, 8), (7, 3), (9, 9), (4, 4), (5, 4), (1, 9), (6, 6)]


def run_of(found, measured: int = 1) -> Run:
    names = ("a", "b")
    asked = Problem(
        space=DesignSpace(parameters=(Integer(name="x", low=0, high=99),)),
        sources={
            name: Source(metric=Metric(name=name), kind="measured", reads=frozenset({"x"}))
            for name in names
        },
        objectives=tuple(Objective(expression=parse(name), goal="minimize") for name in names),
    )
    trials = [
        Trial(number=number, design=Design({"x": number})).finished(
            Outcome(
                state=State.DONE,
                metrics=dict(zip(names, map(float, pair), strict=True)),
                measured=measured,
            )
        )
        for number, pair in enumerate(found)
    ]
    return Run.of("s", asked, trials)


def fronts(run: Run) -> list[tuple[float, list[list[float]]]]:
    return [(one.spent, one.losses[np.argsort(one.losses[:, 0])].tolist()) for one in stages(run)]


def test_a_stage_is_the_front_of_what_was_known_by_then() -> None:
    assert fronts(run_of(FOUND)) == [
        (1.0, [[5, 5]]),
        (3.0, [[3, 7], [5, 5]]),
        (5.0, [[3, 7], [5, 5], [7, 3]]),
        (10.0, [[1, 9], [3, 7], [4, 4], [7, 3]]),
    ]


def test_a_front_that_did_not_change_is_told_once_with_the_least_that_it_took() -> None:
    (one,) = stages(run_of([(1, 1), *FOUND[1:]]))
    assert (one.spent, one.share) == (1.0, 0.1)


@pytest.mark.parametrize(("measured", "currency"), [(1, "measurements"), (0, "trials")])
def test_what_is_free_is_counted_in_trials(measured: int, currency: str) -> None:
    assert {one.currency for one in stages(run_of(FOUND, measured))} == {currency}


def test_a_study_without_an_answer_has_no_stage() -> None:
    assert stages(run_of([])) == []
