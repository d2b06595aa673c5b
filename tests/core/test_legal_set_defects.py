"""Legal sets that came out wrong once, each by graph and by trying everything."""

import itertools

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Binary, Call, Compare, Listed, Lookup, Name, Number
from dse.core.legal_set import component as component_of
from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set import solution
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.errors import DesignError


def whole(name: str, low: int, high: int) -> Integer:
    return Integer(name=name, low=low, high=high)


def compared(operator: str, left, right) -> Expression:
    return Expression(f"{left} {operator} {right}", Compare((operator,), (left, right)))


KEY = Lookup(Name("x"), ((1, 5), (2, 1)))
ONE_ENTRY = Lookup(Name("x"), ((1, 5),))
CASES = {
    "the greatest of what divides by zero is no number": (
        (whole("a", 1, 3), whole("b", 0, 2), whole("c", 0, 3)),
        parse("max(a % b, c) >= 2"),
    ),
    "the least of what divides by zero is no number": (
        (whole("a", 1, 3), whole("b", 0, 2), whole("c", 0, 3)),
        parse("min(a % b, c) < 2"),
    ),
    "a key without an entry is unknown to a bound": (
        (whole("x", 1, 3), whole("b", 0, 1)),
        compared("<=", Binary("+", ONE_ENTRY, Name("b")), Number(3)),
    ),
    "a key without an entry is unknown to the greatest": (
        (whole("x", 1, 3), whole("b", 0, 6)),
        compared("<=", Call("max", (KEY, Name("b"))), Number(3)),
    ),
    "true equals one in a table": (
        (Choice(name="f", values=(False, True)), whole("y", 0, 2)),
        Expression("table", Listed((Name("f"), Name("y")), ((1, 0), (0, 1)))),
    ),
    "one and true are both in a table": (
        (Choice(name="f", values=(1, True, "1")), whole("y", 0, 2)),
        Expression("table", Listed((Name("f"), Name("y")), ((1, 0),))),
    ),
    "a zero has no sign": ((whole("a", 0, 1), whole("b", -1, 2)), parse("1 / (a // b) > 0")),
    "a product of zero has no sign": (
        (
            Ordinal(name="a", values=(0.0, 0.5)),
            Ordinal(name="b", values=(-1.0, 1.0)),
            whole("c", 1, 2),
        ),
        parse("c / (a * b) > 0"),
    ),
    "words and numbers of a table stand side by side": (
        (whole("x", 1, 3), Choice(name="y", values=("a", "b", 4))),
        compared("==", Lookup(Name("x"), ((1, "a"), (2, 4))), Name("y")),
    ),
    "truths and numbers of a choice are divided": (
        (Choice(name="p", values=(True, False, 1, 0)), whole("q", 0, 2)),
        parse("q / p > 1"),
    ),
    "whole numbers end where floats do": (
        (
            Ordinal(name="a", values=(2**40 + 1, 2**20)),
            Ordinal(name="b", values=(2**30, 2**14 + 1)),
        ),
        parse("a * b == 18015498021109761"),
    ),
}


@pytest.mark.parametrize("tried_rows", [0, 4_096])
@pytest.mark.parametrize("case", CASES)
def test_the_legal_set_is_what_check_says_of_every_combination(monkeypatch, case, tried_rows):
    monkeypatch.setattr(solution, "TRIED_ROWS", tried_rows)
    parameters, rule = CASES[case]
    space = DesignSpace(parameters=parameters, constraints=(rule,))
    axes = [[(p.name, value) for value in p.values] for p in parameters]
    expected = [Design(dict(row)) for row in itertools.product(*axes) if dict(row) in space]
    listed = space.legal.at_indices(np.arange(space.count())).designs()
    assert sorted(d.key for d in listed) == sorted(d.key for d in expected)


def test_a_rows_value_does_not_depend_on_the_rows_beside_it():
    rule = parse("a % b == 1")
    alone = rule.holds(Batch.of([{"a": 2**53 - 1, "b": 2}]).columns, 1, unknown=False)
    beside = rule.holds(
        Batch.of([{"a": 2**53 - 1, "b": 2}, {"a": 1, "b": 0}]).columns, 2, unknown=False
    )
    assert alone[0] == beside[0]


def test_a_graph_that_grows_too_large_after_its_last_rule_drops_that_rule(monkeypatch):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(growth, "MAX_TOTAL", 120)
    monkeypatch.setattr(solution, "FILTERED_ROWS", 0)
    rule = parse("a + b + c <= 10")
    part = solve_component([whole(name, 0, 9) for name in "abc"], {}, [rule])
    assert part.dropped == (rule,)
    assert part.legal(part.sample(50, np.random.default_rng(0))).all()


def test_a_combination_that_breaks_a_dropped_rule_has_no_rank(monkeypatch):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(growth, "MAX_EDGES", 30)
    monkeypatch.setattr(solution, "FILTERED_ROWS", 0)
    part = solve_component(
        [whole(n, 0, 9) for n in "abc"], {}, [parse("(a * 7 + b * 3 + c * 5) % 11 == 2")]
    )
    assert part.indices(np.zeros((1, 3), dtype=np.int32)).tolist() == [-1]


def test_a_wrong_kind_of_value_is_told_before_any_rule_reads_it():
    space = DesignSpace(
        parameters=(whole("a", 0, 3), whole("b", 0, 1)), conditions={"b": parse("a > 1")}
    )
    with pytest.raises(DesignError, match="a cannot be 'x'"):
        space.check({"a": "x"})


def test_a_real_at_its_bound_is_no_neighbour_of_itself():
    space = DesignSpace(parameters=(Real(name="r", low=0.0, high=1.0),))
    assert [d["r"] for d in space.neighbours(Design({"r": 0.0})).designs()] == pytest.approx([0.1])


def test_neighbours_that_need_many_changes_at_once_are_found_along_the_graph(monkeypatch):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(component_of, "LISTED_ROWS", 0)
    space = DesignSpace(
        parameters=tuple(whole(f"q{i}", 0, 3) for i in range(6)),
        constraints=tuple(parse(f"q{i} == q{i + 1}") for i in range(5)),
    )
    near = space.neighbours(Design({f"q{i}": 0 for i in range(6)})).designs()
    assert sorted(d["q0"] for d in near) == [1, 2, 3]


def test_a_swap_is_a_neighbour_in_an_order_too_large_to_walk(monkeypatch):
    monkeypatch.setattr("dse.core.legal_set.neighbours.WALKED_EDGES", 10)
    names = tuple(Name(f"o{i}") for i in range(10))
    space = DesignSpace(
        parameters=tuple(Ordinal(name=f"o{i}", values=tuple(range(10))) for i in range(10)),
        constraints=(Expression("different", Call("all_different", names)),),
    )
    near = space.neighbours(space.sample(1, np.random.default_rng(0)).design(0))
    assert len(near) == 45


def test_a_place_among_reals_is_a_number_that_fits():
    space = DesignSpace(
        parameters=(*(whole(f"i{p}", 0, 15) for p in range(17)), Real(name="r", low=0.0, high=1.0))
    )
    last = space.batch([{**{f"i{p}": 15 for p in range(17)}, "r": 0.5}])
    assert space.indices(last).tolist() == [16**17 - 1]


def test_a_long_chain_of_conditions_is_solved_in_any_order():
    count = 1_500
    parameters = tuple(whole(f"c{i}", 0, 1) for i in reversed(range(count)))
    conditions = {f"c{i}": parse(f"c{i - 1} > 0") for i in range(1, count)}
    assert DesignSpace(parameters=parameters, conditions=conditions).count() == count + 1


def test_a_finite_parameter_cannot_be_active_by_a_real_one():
    space = DesignSpace(
        parameters=(Real(name="r", low=0.0, high=1.0), whole("a", 0, 1)),
        conditions={"a": parse("r > 0.5")},
    )
    with pytest.raises(DesignError, match="a cannot be active by the value of a real"):
        space.count()
