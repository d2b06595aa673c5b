"""What a space says of itself, held against trying all combinations: slow and surely right."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch, Column
from dse.core.compound_parameters import Permutation
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.inspection.rule_check import obstacle, sides, why
from dse.core.inspection.rule_conflicts import Rule, contradiction, narrow_space
from dse.core.inspection.rule_effects import Portions
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import DesignError
from dse.testing.strategies import spaces


def all_combinations(space: DesignSpace) -> Batch:
    """Every parameter at every value, and absent if it has a condition."""
    axes = [range(-1 if p.name in space.conditions else 0, len(p.values)) for p in space.parameters]
    codes = np.array(list(itertools.product(*axes)), dtype=np.int32)
    columns = {p.name: Column.coded(p.values, codes[:, i]) for i, p in enumerate(space.parameters)}
    return Batch(columns, len(codes))


def keeping(batch: Batch, rule: Rule) -> np.ndarray:
    """Which combinations keep the rule."""
    if rule.kind == "setting":
        same = [row.get(rule.parameter) == rule.value for row in batch.designs()]
        return np.array(same, dtype=bool)
    held = rule.expression.holds(batch.columns, len(batch), unknown=rule.kind == "constraint")
    return held if rule.kind == "constraint" else held == ~batch.absent(rule.parameter)


def designs_of(space: DesignSpace, constraints: tuple[Expression, ...]) -> np.ndarray:
    """Which combinations are designs that keep these constraints."""
    batch = all_combinations(space)
    keep = np.ones(len(batch), dtype=bool)
    for name, rule in space.conditions.items():
        keep &= rule.holds(batch.columns, len(batch), unknown=False) == ~batch.absent(name)
    for rule in constraints:
        keep &= rule.holds(batch.columns, len(batch), unknown=True)
    return keep


@st.composite
def spaces_and_values(draw):
    """A small space and values for some of its parameters."""
    space = draw(spaces())
    chosen = draw(st.lists(st.sampled_from(space.parameters), unique=True, max_size=4))
    return space, {p.name: draw(st.sampled_from(p.values)) for p in chosen}


def plan_space() -> DesignSpace:
    def pow2(name: str, top: int) -> Ordinal:
        return Ordinal(name=name, values=tuple(2**e for e in range(top + 1)))

    return DesignSpace(
        parameters=(
            pow2("tp", 3),
            pow2("pp", 4),
            pow2("dp", 6),
            Choice(name="format", values=("int8", "mxfp4")),
            Ordinal(name="group", values=(32, 64, 128)),
        ),
        conditions={"group": parse("format == 'int8'")},
        constraints=(parse("tp * pp * dp == 64"), parse("dp <= 4"), parse("tp + pp <= 200")),
        places={"tp * pp * dp == 64": "plan.yaml:9", "dp <= 4": "plan.yaml:10", "group": "g:1"},
    )


@pytest.mark.slow
@settings(max_examples=80)
@given(spaces_and_values())
def test_a_contradiction_is_one_and_each_of_its_rules_is_needed(given_):
    space, values = given_
    rules = contradiction(space, values)
    batch = all_combinations(space)
    kept = [keeping(batch, rule) for rule in rules]
    assert bool(rules) == (narrow_space(space, values).count() == 0)
    assert not rules or not np.logical_and.reduce(kept).any()
    every = np.ones(len(batch), dtype=bool)
    without = [np.logical_and.reduce([every, *kept[:i], *kept[i + 1 :]]) for i in range(len(kept))]
    assert all(rest.any() for rest in without)


@pytest.mark.slow
@settings(max_examples=80)
@given(spaces_and_values())
def test_what_is_left_of_a_part_is_what_trying_all_combinations_finds(given_):
    space, values = given_
    told = why(space, values)
    legal = all_combinations(space).take(designs_of(space, space.constraints)).designs()
    left = [design for design in legal if all(design.get(n) == v for n, v in values.items())]
    assert told.left == len(left)
    assert (told.example in left) if left else (told.example is None and told.against)


@pytest.mark.slow
@settings(max_examples=80)
@given(spaces())
def test_a_whole_design_is_told_every_rule_that_it_breaks(space):
    designs = all_combinations(space).take(designs_of(space, ()))
    design = designs.design(len(designs) // 2)
    row = space.batch([design]).columns
    told = why(space, design)
    broken = [rule for rule in space.constraints if not rule.holds(row, 1, unknown=True)[0]]
    assert told.whole
    assert (told.example == design) == (design in space)
    assert [rule.expression for rule in told.against] == broken


@pytest.mark.slow
@settings(max_examples=80)
@given(spaces())
def test_what_a_rule_removes_is_what_trying_all_combinations_finds(space):
    assume(space.count())
    unruled = designs_of(space, ()).sum()
    rests = [tuple(r for r in space.constraints if r is not rule) for rule in space.constraints]
    alone = [designs_of(space, rest).sum() - space.count() for rest in rests]
    broken = [unruled - designs_of(space, (rule,)).sum() for rule in space.constraints]
    removals = Portions(space).removals
    assert [r.removed for r in removals] == alone
    assert [r.alone.share * unruled for r in removals] == pytest.approx(alone)
    assert [r.forbidden.share * unruled for r in removals] == pytest.approx(broken)


@pytest.mark.slow
@settings(max_examples=80)
@given(spaces())
def test_activity_and_extent_are_what_trying_all_combinations_finds(space):
    assume(space.count())
    portions = Portions(space)
    legal = all_combinations(space).take(designs_of(space, space.constraints))
    shares = {name: 1 - legal.absent(name).mean() for name in space.conditions}
    assert {n: p.share for n, p in portions.activity.items()} == pytest.approx(shares)
    assert portions.extent.unruled == designs_of(space, ()).sum()
    assert portions.extent.designs == len(legal)
    assert portions.extent.share.share == pytest.approx(len(legal) / portions.extent.unruled)


def test_the_rules_of_a_contradiction_come_with_their_places():
    told = why(plan_space(), {"tp": 2, "pp": 4})
    assert [(rule.text, rule.where) for rule in told.against] == [
        ("tp = 2", ""),
        ("pp = 4", ""),
        ("tp * pp * dp == 64", "plan.yaml:9"),
        ("dp <= 4", "plan.yaml:10"),
    ]


def test_a_value_of_an_inactive_parameter_contradicts_its_condition():
    told = why(plan_space(), {"format": "mxfp4", "group": 32, "tp": 8})
    assert [rule.kind for rule in told.against] == ["setting", "setting", "condition"]
    assert told.against[-1].text == "group exists only when format == 'int8'"
    assert told.against[-1].where == "g:1"


def test_an_empty_space_is_contradicted_by_its_own_rules():
    space = DesignSpace(
        parameters=(Integer(name="a", low=1, high=9), Integer(name="b", low=1, high=9)),
        constraints=(parse("a != b"), parse("a > 2 * b"), parse("b > a"), parse("a + b < 12")),
    )
    assert [rule.text for rule in contradiction(space)] == ["a > 2 * b", "b > a"]


def test_a_rule_without_parameters_can_be_the_contradiction():
    space = DesignSpace(
        parameters=(Real(name="x", low=0, high=1),), constraints=(parse("x < 2"), parse("1 > 2"))
    )
    assert [rule.text for rule in contradiction(space)] == ["1 > 2"]


def test_a_member_of_a_list_is_told_with_the_place_of_the_list():
    order = Permutation(name="order", items=("a", "b", "c"))
    space = DesignSpace(
        parameters=order.members,
        constraints=order.rules,
        places={"order": "x.yaml:3", order.rules[0].text: "x.yaml:3"},
        lists={"order": order},
    )
    told = why(space, {"order[0]": "a", "order[2]": "a"})
    assert [rule.where for rule in told.against] == ["", "", "x.yaml:3"]
    assert Portions(space).removals == ()
    assert Portions(space).extent.unruled == 6
    with pytest.raises(DesignError) as caught:
        why(space, {"order[1]": "d"})
    assert caught.value.where == "x.yaml:3"


def test_emptiness_that_cannot_be_proved_is_suspected_and_not_claimed():
    space = DesignSpace(
        parameters=(
            Real(name="x", low=0, high=1),
            Integer(name="n", low=0, high=3),
            Integer(name="m", low=0, high=3),
        ),
        constraints=(parse("m <= n"), parse("x * x + n > 3"), parse("x < 0.9")),
    )
    told = why(space, {"n": 1})
    assert (told.whole, told.left, told.example) == (False, None, None)
    assert [rule.text for rule in told.against] == ["n = 1", "x * x + n > 3"]
    assert contradiction(space, {"n": 1}) == ()
    assert obstacle(space) == "x is a real parameter"
    assert why(space, {"n": 3}).example["n"] == 3


def test_one_legal_design_in_ten_thousand_is_found():
    space = DesignSpace(
        parameters=(Real(name="x", low=0, high=1), Real(name="y", low=0, high=1)),
        constraints=(parse("x + y < 0.015"),),
    )
    assert why(space, {}).example in space


def test_a_real_parameter_that_is_set_can_be_part_of_a_contradiction():
    space = DesignSpace(
        parameters=(Real(name="clock", low=1, high=4), Ordinal(name="rows", values=(8, 16))),
        constraints=(parse("clock * rows <= 32"),),
    )
    told = why(space, {"clock": 3, "rows": 16})
    assert told.whole
    assert sides(told.against[0], {"clock": 3.0, "rows": 16}) == "48 <= 32"
    assert [rule.text for rule in contradiction(space, {"clock": 4.0, "rows": 16})] == [
        "clock = 4.0",
        "rows = 16",
        "clock * rows <= 32",
    ]


def test_numbers_that_look_alike_are_told_in_full():
    rule = Rule(kind="constraint", text="", expression=parse("x == y"))
    assert sides(rule, {"x": 0.1, "y": 0.1000000000000001}) == "0.1 == 0.1000000000000001"
    assert sides(rule, {"x": "a", "y": "b"}) == "a == b"
    assert sides(rule, {"x": 0.1}) == ""


def test_shares_under_a_rule_over_reals_are_estimated_and_say_so():
    space = DesignSpace(
        parameters=(
            Real(name="x", low=0, high=1),
            Choice(name="a", values=(False, True)),
            Choice(name="b", values=(False, True)),
            Ordinal(name="c", values=(1, 2)),
        ),
        conditions={"c": parse("a")},
        constraints=(parse("a or b"), parse("x <= 0.25 or b")),
    )
    portions = Portions(space)
    plain, mixed = portions.removals
    assert plain.forbidden.share == pytest.approx(1 / 6)
    assert plain.forbidden.draws == 0
    assert plain.removed is None
    assert mixed.forbidden.share == pytest.approx(0.375, abs=0.02)
    assert mixed.forbidden.draws == mixed.alone.draws == 10_000
    assert mixed.alone.share == pytest.approx(0.25, abs=0.02)
    assert portions.extent.designs is None
    assert portions.extent.share.share == pytest.approx(7 / 12, abs=0.02)
    assert portions.activity["c"].share == pytest.approx(5 / 7, abs=0.02)


def test_a_real_parameter_that_no_rule_reads_leaves_the_shares_exact():
    plan = plan_space()
    with_real = DesignSpace(
        parameters=(*plan.parameters, Real(name="x", low=0, high=1)),
        conditions={**plan.conditions, "x": parse("format == 'mxfp4'")},
        constraints=plan.constraints,
    )
    told, same = Portions(plan), Portions(with_real)
    assert [r.alone for r in told.removals] == [r.alone for r in same.removals]
    assert same.activity["x"].share == 0.25
    assert same.activity["group"] == told.activity["group"]


@pytest.mark.parametrize(
    ("values", "problem"),
    [({"tpp": 1}, "no parameter 'tpp'"), ({"tp": 3}, "tp cannot be 3")],
)
def test_a_value_that_cannot_be_is_a_mistake_of_the_user(values, problem):
    with pytest.raises(DesignError, match=problem):
        why(plan_space(), values)
