"""The first designs cover every level, and small branches are drawn although uniform draws miss."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.parser import parse
from dse.core.metric import Metrics
from dse.core.parameter import Choice, Integer
from dse.core.space import DesignSpace
from dse.optimizers.bayesian.candidates import candidates
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.support.level_coverage import LevelCoverage, count_first_settings
from dse.testing.known import Known, played, problem_of

SWITCHES = tuple(Choice(name=f"s{k}", values=("on", "off")) for k in range(9))
KINDS = Choice(name="kind", values=tuple("abcde"))
WIDE = tuple(Integer(name=f"w{k}", low=0, high=9) for k in range(5))
SMALL = Integer(name="v", low=0, high=9)
BRANCHES = DesignSpace(
    parameters=(Choice(name="mode", values=("wide", "small")), *WIDE, SMALL),
    conditions={
        **{p.name: parse("mode == 'wide'") for p in WIDE},
        "v": parse("mode == 'small'"),
    },
)
"""A space whose branch ``small`` has 10 of 100,010 designs."""


def known(space: DesignSpace) -> Known:
    """A problem whose loss is better where the first parameter has its first value."""
    first = space.parameters[0]
    assert isinstance(first, Choice)
    table = {value: float(place) for place, value in enumerate(first.values)}

    def truth(batch: Batch) -> Metrics:
        return Metrics(columns={"loss": batch.lookup(first.name, table)})

    problem = problem_of(space, {"loss": "measured"}, {"loss": "minimize"}, truth)
    return Known(problem=problem, truth=truth, front=np.zeros((1, 1)), reference=np.ones(1))


def test_each_level_is_seen_twice_in_the_first_designs() -> None:
    rare = parse("kind != 'e' or (s0 == 'on' and s1 == 'on' and s2 == 'on' and s3 == 'on')")
    space = DesignSpace(parameters=(*SWITCHES, KINDS), constraints=(rare,))
    one = known(space)
    count = count_first_settings(space, frozenset(space.by_name))
    trials = played(one, GreyBox(one.problem), count)
    coverage = LevelCoverage(space, space.by_name, np.random.default_rng(0))
    seen = coverage.marks(space.batch([trial.design for trial in trials])).sum(axis=0)
    assert count == 10
    assert seen.min() >= 2


def test_the_first_designs_grow_with_dimension_and_levels() -> None:
    many = DesignSpace(parameters=tuple(Integer(name=f"x{k}", low=0, high=3) for k in range(14)))
    assert count_first_settings(many, frozenset(many.by_name)) == 14
    assert count_first_settings(many, frozenset({"x0"})) == 6


def test_a_branch_of_few_designs_is_asked_at_once_and_drawn_as_a_candidate() -> None:
    one = known(BRANCHES)
    trials = played(one, GreyBox(one.problem), 8)
    assert sum(trial.design["mode"] == "small" for trial in trials) >= 2
    rng = np.random.default_rng(0)
    best = [trial.design for trial in trials if trial.design["mode"] == "wide"]
    drawn = candidates(one.problem, best, set(), rng)
    assert sum(design["mode"] == "small" for design in drawn) >= 5


def test_a_level_seen_once_gets_every_other_design_until_it_is_seen_twice() -> None:
    one = known(DesignSpace(parameters=(SWITCHES[0], *WIDE)))
    optimizer = GreyBox(one.problem, initial=6)
    designs = one.problem.space.sample(64, np.random.default_rng(0)).designs()
    on = [design for design in designs if design["s0"] == "on"][:7]
    off = [design for design in designs if design["s0"] == "off"][:1]
    optimizer.tell(one.finished(on + off))
    asked = []
    for number in range(2):
        asked += optimizer.ask(1)
        optimizer.tell(one.finished(asked[-1:], 8 + number))
    assert [design["s0"] for design in asked].count("off") == 1


def test_a_space_without_rare_levels_draws_none() -> None:
    space = DesignSpace(parameters=(*SWITCHES, KINDS))
    coverage = LevelCoverage(space, space.by_name, np.random.default_rng(0))
    assert len(coverage.sample_rare(64, np.random.default_rng(1))) == 0
