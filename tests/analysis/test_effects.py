"""Effects: those of a textbook, and what can and cannot be told where rules cut designs out."""

from __future__ import annotations

from itertools import product

import pytest

from dse.analysis.effects import Effects, estimate_effects
from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Choice, Ordinal
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import State, Trial
from dse.errors import StudyError


def effects(problem, trials, name, **options) -> Effects:
    (found,) = estimate_effects(problem, trials, [name], **options)
    return found


def problem_of(*parameters) -> Problem:
    source = Source(metric=Metric(name="y", unit="s"), kind="modelled", reads=frozenset())
    return Problem(
        space=DesignSpace(parameters=parameters),
        sources={"y": source},
        objectives=(Objective(expression=parse("y * 2"), goal="minimize", unit="s"),),
    )


def trials_of(*rows) -> list[Trial]:
    return [
        Trial(number=number, design=Design(design), state=State.DONE, metrics={"y": float(y)})
        for number, (design, y) in enumerate(rows)
    ]


# Montgomery: Design and Analysis of Experiments, example 6.2, the pilot plant: filtration rates in
# the order (1), a, b, ab, c ... abcd, and table 6.12: effects and percent contributions.
RATES = (45, 71, 48, 65, 68, 60, 80, 65, 43, 100, 45, 104, 75, 86, 70, 96)
PLANT = problem_of(*(Ordinal(name=name, values=(-1, 1)) for name in "ABCD"))
PLANT_TRIALS = trials_of(
    *(
        (dict(zip("DCBA", levels, strict=True)), rate)
        for levels, rate in zip(product((-1, 1), repeat=4), RATES, strict=True)
    )
)
EFFECTS = {
    "A": (21.625, 32.6397),
    "B": (3.125, 0.681608),
    "C": (9.875, 6.80626),
    "D": (14.625, 14.9288),
}
PAIRS = {("A", "C"): 22.9293, ("A", "D"): 19.2911, ("A", "B"): 0.00109057}


@pytest.mark.parametrize("name", EFFECTS)
def test_main_effects_are_those_of_the_textbook(name):
    found = {one.parameter: one for one in effects(PLANT, PLANT_TRIALS, "y").main}
    effect, percent = EFFECTS[name]
    low, high = found[name].levels
    assert high.mean - low.mean == pytest.approx(effect)
    assert found[name].span == pytest.approx(effect)
    assert 100 * found[name].share == pytest.approx(percent, rel=1e-5)


@pytest.mark.parametrize("pair", PAIRS)
def test_interactions_are_those_of_the_textbook(pair):
    found = {one.parameters: one.share for one in effects(PLANT, PLANT_TRIALS, "y").interactions}
    told = {tuple(sorted(names)): share for names, share in found.items()}
    assert 100 * told[pair] == pytest.approx(PAIRS[pair], rel=1e-5)


def test_the_largest_effects_come_first():
    found = effects(PLANT, PLANT_TRIALS, "y")
    assert [one.parameter for one in found.main] == ["A", "D", "C", "B"]
    assert set(found.interactions[0].parameters) == {"A", "C"}


ODD = problem_of(Ordinal(name="rows", values=(1, 2, 3)), Ordinal(name="cols", values=(1, 2, 3)))
SUM = trials_of(
    *(({"rows": r, "cols": c}, 10 * r + c) for r, c in product((1, 2, 3), repeat=2) if r + c < 6)
)


def test_what_adds_up_is_found_exactly_though_a_rule_cut_a_design_out():
    found = effects(ODD, SUM, "y")
    means = {one.parameter: [level.mean for level in one.levels] for one in found.main}
    assert found.additive == pytest.approx(1.0)
    assert means["rows"] == pytest.approx([12.0, 22.0, 32.0])
    assert means["cols"] == pytest.approx([21.0, 22.0, 23.0])
    assert found.interactions[0].share == pytest.approx(0.0, abs=1e-12)


NESTED = problem_of(
    Choice(name="format", values=("int8", "int4")), Ordinal(name="group", values=(32, 64))
)
ROWS = trials_of(
    ({"format": "int8"}, 1),
    ({"format": "int4", "group": 32}, 3),
    ({"format": "int4", "group": 64}, 5),
)


def test_what_cannot_be_told_from_another_parameter_has_no_share():
    found = {one.parameter: one for one in effects(NESTED, ROWS, "y").main}
    assert found["format"].share is None
    assert found["group"].share is not None
    assert [(one.value, one.trials) for one in found["group"].levels] == [
        (32, 1),
        (64, 1),
        (None, 1),
    ]


WIDE = problem_of(Ordinal(name="x", values=tuple(range(100))))


def test_many_values_are_cut_into_groups():
    found = effects(WIDE, trials_of(*(({"x": x}, x) for x in range(100))), "y")
    levels = found.main[0].levels
    assert len(levels) == 8
    assert (levels[0].value, levels[0].to, levels[-1].to) == (0, 12, 99)


def test_a_compound_objective_has_effects_and_so_has_what_it_reads():
    names = [one.name for one in estimate_effects(PLANT, PLANT_TRIALS)]
    assert names == ["y * 2", "y"]
    assert effects(PLANT, PLANT_TRIALS, "y * 2").mean == 2 * effects(PLANT, PLANT_TRIALS, "y").mean


def test_a_metric_that_never_varies_has_effects_of_nothing():
    found = effects(ODD, trials_of(({"rows": 1, "cols": 1}, 3), ({"rows": 2, "cols": 1}, 3)), "y")
    assert [(one.share, one.span) for one in found.main] == [(0.0, 0.0)]


def test_an_unknown_metric_is_answered_with_the_nearest():
    with pytest.raises(StudyError, match="no metric 'z'"):
        effects(PLANT, PLANT_TRIALS, "z")


def test_of_one_trial_no_effect_is_told():
    with pytest.raises(StudyError, match="no effect can be estimated"):
        effects(PLANT, PLANT_TRIALS[:1], "y")
