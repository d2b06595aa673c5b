"""With many ordered parameters, the first two designs have them at their lowest and highest."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.support.extreme_designs import draw_extremes, has_many_ordered
from dse.optimizers.support.level_coverage import first_parts
from dse.testing.known import Known, played, problem_of

WIDTHS = tuple(Ordinal(name=f"w{k}", values=(64, 128, 256)) for k in range(10))
LAYER = Choice(name="kind", values=("a", "b", "c"))
DEPTH = Integer(name="depth", low=0, high=3)
SPACE = DesignSpace(
    parameters=(DEPTH, LAYER, *WIDTHS),
    conditions={"w9": parse("depth > 0")},
    constraints=(parse("w0 + w1 <= 256"), parse("w2 * w3 >= 16384")),
)


def known(space: DesignSpace) -> Known:
    def truth(batch: Batch) -> Metrics:
        return Metrics(columns={"loss": batch["w4"].astype(float)})

    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    return Known(problem=problem, truth=truth, front=np.zeros((1, 1)), reference=np.ones(1))


def rank_sum(design) -> int:
    return sum((64, 128, 256).index(design[w.name]) for w in WIDTHS if w.name in design)


def test_the_ends_obey_rules_and_conditions() -> None:
    low, high = draw_extremes(SPACE, np.random.default_rng(0)).designs()
    assert low in SPACE
    assert high in SPACE
    assert (low["depth"], high["depth"]) == (0, 3)
    assert "w9" not in low
    assert high["w9"] == 256
    assert {low[name] for name in ("w0", "w1", "w4", "w8")} == {64}
    assert {low["w2"], low["w3"]} in ({128}, {64, 256})  # either has the least sum of ranks
    assert {high[name] for name in ("w2", "w3", "w4", "w8")} == {256}
    assert rank_sum({name: high[name] for name in ("w0", "w1")}) == 2


def test_the_ends_are_the_first_two_designs_and_take_no_more_trials() -> None:
    one = known(SPACE)
    count = first_parts(SPACE, frozenset(SPACE.by_name))
    trials = played(one, GreyBox(one.problem), count)
    ends = draw_extremes(SPACE, one.problem.rng(0, 4)).designs()
    assert [trial.design for trial in trials[:2]] == ends
    assert len({trial.design for trial in trials}) == count
    kinds = [trial.design["kind"] for trial in trials]
    assert min(kinds.count(kind) for kind in "abc") >= 2
    assert GreyBox(one.problem).ask(count)[:2] == ends


@pytest.mark.parametrize(
    "space",
    [
        DesignSpace(parameters=WIDTHS[:9]),
        DesignSpace(parameters=(*WIDTHS[:9], LAYER)),
        DesignSpace(parameters=(*WIDTHS, Real(name="x", low=0.0, high=1.0))),
    ],
)
def test_few_ordered_parameters_or_a_real_one_leave_the_first_designs_alone(space) -> None:
    assert not has_many_ordered(space)
    assert has_many_ordered(SPACE)
