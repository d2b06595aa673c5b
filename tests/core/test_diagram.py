"""The graph of a legal set: what it counts, ranks and draws is what trying everything finds."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from scipy.stats import chisquare

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Call, Compare, Listed, Name, Number
from dse.core.legal_set import component as component_of
from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set import solution
from dse.core.legal_set.decision_diagram import Diagram
from dse.core.legal_set.diagram_builder import grown
from dse.core.legal_set.intervals import Intervals
from dse.core.legal_set.neighbours import near, nearest, steps
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Choice, Ordinal
from dse.core.space import DesignSpace
from dse.errors import SpecErrors
from dse.schema.space.space_loader import space_from
from dse.testing.strategies import spaces

SEED = 11


def numbers(prefix: str, count: int, values: tuple[int, ...]) -> tuple[Ordinal, ...]:
    return tuple(Ordinal(name=f"{prefix}{place}", values=values) for place in range(count))


def total(names: list[str], factors: list[int], operator: str, bound: int) -> Expression:
    parts = tuple(
        Call("product", (Number(factor), Name(name)))
        for name, factor in zip(names, factors, strict=True)
    )
    return Expression("total", Compare((operator,), (Call("sum", parts), Number(bound))))


def knapsack_count(values: tuple[int, ...], factors: list[int], bound: int) -> int:
    """By adding up one parameter at a time: how many sums are within the bound."""
    ways = {0: 1}
    for factor in factors:
        more: dict[int, int] = {}
        for (so_far, count), value in itertools.product(ways.items(), values):
            more[so_far + factor * value] = more.get(so_far + factor * value, 0) + count
        ways = more
    return sum(count for so_far, count in ways.items() if so_far <= bound)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(spaces())
def test_the_count_is_what_trying_all_combinations_finds_on_200_spaces(space):
    axes = [[(p.name, v) for v in (None, *p.values)] for p in space.parameters]
    tried = ({n: v for n, v in row if v is not None} for row in itertools.product(*axes))
    expected = {Design(design) for design in tried if design in space}
    places = np.arange(space.count())
    assert space.count() == len(expected)
    assert set(space.legal.at_indices(places).designs()) == expected


@given(spaces())
def test_a_small_group_has_the_same_order_by_trying_and_by_its_graph(space):
    for part in space.legal.components:
        assert (part.diagram.at(np.arange(part.count)) == part.rows).all()


@given(spaces())
def test_a_combination_that_is_not_legal_has_no_rank(space):
    for part in space.legal.components:
        tops = [len(parameter.values) for parameter in part.parameters]
        tries = np.random.default_rng(SEED).integers(-1, tops, size=(200, len(tops)))
        legal = part.keeps_rules(tries)
        assert ((part.indices(tries.astype(np.int32)) >= 0) == legal).all()
        assert (part.legal(tries) == legal).all()


@given(spaces())
def test_draws_along_the_graph_are_legal_also_without_a_table(space):
    assume(space.count())
    for part in space.legal.components:
        drawn = part.diagram.draw(50, np.random.default_rng(SEED))
        assert part.legal(drawn).all()


@given(spaces())
def test_occurrences_are_those_of_the_table(space):
    assume(space.count())
    for part in space.legal.components:
        found = part.occurrences()
        for place, parameter in enumerate(part.parameters):
            listed = np.bincount(part.rows[:, place] + 1, minlength=len(parameter.values) + 1)
            assert found[parameter.name] == listed.tolist()


@given(spaces())
def test_the_nearest_combination_of_the_graph_is_the_nearest_of_the_table(space):
    assume(space.count())
    for part in space.legal.components:
        tops = [len(parameter.values) for parameter in part.parameters]
        wanted = np.random.default_rng(SEED).integers(0, tops, size=(5, len(tops)))
        costs = [
            np.concatenate([[0.0], np.abs(np.arange(top) - want) / max(top - 1, 1)])
            if not isinstance(parameter, Choice)
            else np.concatenate([[0.0], (np.arange(top) != want).astype(float)])
            for parameter, top, want in zip(part.parameters, tops, wanted[0], strict=True)
        ]
        found = part.diagram.nearest(costs)
        row = wanted[0].astype(np.int32)
        assert steps(part, found[None, :], row)[0] == pytest.approx(
            steps(part, part.rows, row).min()
        )


def test_a_budget_over_54_layers_is_counted_exactly():
    factors = [64 * (1 + place % 7) for place in range(54)]
    parameters = numbers("bits", 54, (2, 4, 8))
    rule = total([p.name for p in parameters], factors, "<=", 64 * 900)
    space = DesignSpace(parameters=parameters, constraints=(rule,))
    assert space.count() == knapsack_count((2, 4, 8), factors, 64 * 900)
    assert space.count() > 10**15


def test_ranks_beyond_a_machine_word_find_their_designs_back():
    parameters = numbers("bits", 54, (2, 4, 8))
    rule = total([p.name for p in parameters], [1] * 54, "<=", 220)
    space = DesignSpace(parameters=parameters, constraints=(rule,))
    count = space.count()
    places = np.array([0, 1, count // 3, count - 1], dtype=object)
    assert (space.indices(space.legal.at_indices(places)) == places).all()


def test_draws_beyond_a_machine_word_are_uniform_in_every_parameter():
    parameters = numbers("bits", 54, (2, 4, 8))
    rule = total([p.name for p in parameters], [1] * 54, "<=", 220)
    space = DesignSpace(parameters=parameters, constraints=(rule,))
    drawn = space.sample(20_000, np.random.default_rng(SEED))
    (part,) = space.legal.components
    expected = [float(Fraction(n, space.count())) for n in part.occurrences()["bits17"][1:]]
    found = np.bincount(drawn.columns["bits17"].codes, minlength=3)
    assert chisquare(found, 20_000 * np.array(expected)).pvalue > 1e-3


def test_points_of_an_even_grid_give_every_design_equally_often():
    space = DesignSpace(
        parameters=numbers("p", 3, (1, 2, 4)), constraints=(parse("p0 * p1 * p2 <= 8"),)
    )
    grid = (np.arange(40) + 0.5) / 40
    points = np.array(list(itertools.product(grid, grid, grid)))
    found = np.bincount(space.indices(space.at(points)), minlength=space.count())
    assert found.min() > 0.9 * len(points) / space.count()
    assert found.max() < 1.1 * len(points) / space.count()


def test_a_permutation_is_counted_over_the_sets_of_used_values():
    parameters = numbers("order", 12, tuple(range(12)))
    names = tuple(Name(parameter.name) for parameter in parameters)
    space = DesignSpace(
        parameters=parameters,
        constraints=(Expression("different", Call("all_different", names)),),
    )
    assert space.count() == math.factorial(12)
    near_ones = space.neighbours(space.sample(1, np.random.default_rng(0)).design(0))
    assert len(near_ones) == math.comb(12, 2)  # every swap of two


def test_a_table_of_many_rows_is_the_space():
    rng = np.random.default_rng(SEED)
    rows = np.unique(rng.integers(0, [50, 8, 200, 3], size=(5_000, 4)), axis=0)
    parameters = tuple(
        Ordinal(name=f"t{place}", values=tuple(range(top)))
        for place, top in enumerate((50, 8, 200, 3))
    )
    names = tuple(Name(parameter.name) for parameter in parameters)
    table = Expression("table", Listed(names, tuple(map(tuple, rows.tolist()))))
    space = DesignSpace(parameters=parameters, constraints=(table,))
    drawn = space.sample(100, rng).designs()
    assert space.count() == len(rows)
    assert all(tuple(d[f"t{i}"] for i in range(4)) in set(map(tuple, rows.tolist())) for d in drawn)


WIDE = numbers("a", 5, (1, 3, 7, 19, 53))
WIDE_RULES = (
    parse("a0 != a1"),
    total([p.name for p in WIDE], [1, 10, 100, 1_000, 10_000], "<=", 200_000),
)


def tried_rows(parameters, rules) -> set[tuple[int, ...]]:
    """The legal codes, found by trying all combinations."""
    axes = [range(len(parameter.values)) for parameter in parameters]
    rows = np.array(list(itertools.product(*axes)), dtype=np.int32)
    columns = component_of.columns_of(parameters, rows)
    keep = np.logical_and.reduce([rule.holds(columns, len(rows), unknown=True) for rule in rules])
    return set(map(tuple, rows[keep].tolist()))


def test_a_group_too_wide_for_the_graph_is_drawn_by_rejection_and_not_counted(monkeypatch):
    monkeypatch.setattr(growth, "MAX_EDGES", 500)
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(solution, "FILTERED_ROWS", 0)
    part = solve_component(WIDE, {}, WIDE_RULES)
    drawn = part.sample(400, np.random.default_rng(SEED))
    assert part.count is None
    assert WIDE_RULES[1] in part.dropped
    assert len(tried_rows(WIDE, WIDE_RULES)) <= part.bound <= 20 * 5**3
    assert len(drawn) == 400
    assert part.legal(drawn).all()


def test_a_small_superset_is_listed_and_filtered_which_is_exact(monkeypatch):
    monkeypatch.setattr(growth, "MAX_EDGES", 500)
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    part = solve_component(WIDE, {}, WIDE_RULES)
    found = part.diagram.at(np.arange(part.count))
    assert set(map(tuple, found.tolist())) == tried_rows(WIDE, WIDE_RULES)
    assert (part.indices(found) == np.arange(part.count)).all()


@pytest.mark.parametrize("rows", [0, component_of.LISTED_ROWS])
def test_neighbours_are_the_same_with_a_table_and_along_the_graph(monkeypatch, rows):
    monkeypatch.setattr(component_of, "LISTED_ROWS", rows)
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    part = solve_component(
        numbers("p", 4, (1, 2, 4, 8)),
        {},
        (parse("p0 * p1 * p2 * p3 == 64"), parse("p0 >= p1")),
    )
    row = part.diagram.at(np.array([7]))[0]
    found = {tuple(other) for other in near(part, row).tolist()}
    every = part.diagram.at(np.arange(part.count))
    distance = (every != row).sum(axis=1)
    assert found == {tuple(other) for other in every[distance == 2].tolist()}


def test_a_repair_without_a_table_is_legal_and_nearest(monkeypatch):
    monkeypatch.setattr(component_of, "LISTED_ROWS", 0)
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    part = solve_component(numbers("p", 4, (1, 2, 4, 8)), {}, (parse("p0 * p1 * p2 * p3 == 64"),))
    wanted = np.random.default_rng(SEED).integers(0, 4, size=(20, 4)).astype(np.int32)
    every = part.diagram.at(np.arange(part.count))
    for row, found in zip(wanted, nearest(part, wanted), strict=True):
        assert part.legal(found[None, :])[0]
        assert steps(part, found[None, :], row)[0] == pytest.approx(steps(part, every, row).min())


def test_renaming_the_parameters_changes_nothing_else():
    first = DesignSpace(
        parameters=numbers("p", 4, (1, 2, 4)), constraints=(parse("p0 * p1 * p2 == p3 * 2"),)
    )
    new = {"p0": "zebra", "p1": "a", "p2": "m", "p3": "k"}
    second = DesignSpace(
        parameters=tuple(replace(p, name=new[p.name]) for p in first.parameters),
        constraints=tuple(rule.renamed(lambda name: new[name]) for rule in first.constraints),
    )
    one = first.sample(50, np.random.default_rng(SEED)).designs()
    other = second.sample(50, np.random.default_rng(SEED)).designs()
    assert [{new[name]: value for name, value in d.items()} for d in one] == [
        dict(d) for d in other
    ]


def test_shares_in_steps_are_counted_as_stars_and_bars():
    space = space_from({"space": "s", "parameters": {"mix": {"simplex": 40, "step": 0.02}}})
    assert space.count() == math.comb(50 + 39, 39)


def test_a_bound_that_no_sum_can_reach_leaves_nothing_at_once():
    parameters = numbers("bits", 300, (2, 4, 8))
    rule = total([p.name for p in parameters], [1] * 300, "<=", 500)
    part = solve_component(parameters, {}, (rule,))
    assert (part.count, part.diagram.edges) == (0, 0)


@pytest.mark.parametrize(
    "rule",
    [
        "a + b + c <= 0.6",
        "a + b + c >= 0.6",
        "c + b + a == 0.6",
        "a * b * c >= 0.006",
        "a - b < 0.1",
    ],
)
def test_a_threshold_that_is_hit_exactly_is_judged_alike_by_graph_and_by_rule(rule):
    values = (0.1, 0.2, 0.3, 0.30000000000000004)
    parameters = tuple(Ordinal(name=name, values=values) for name in "abc")
    graph = Diagram(grown(parameters, {}, [parse(rule)]), range(3))
    tried = solve_component(parameters, {}, [parse(rule)])
    assert (graph.at(np.arange(graph.count)) == tried.table).all()


@pytest.mark.parametrize("items", [6, 30])
def test_all_orders_are_known_without_a_graph(monkeypatch, items):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    space = space_from({"space": "s", "parameters": {"order": {"permutation": items}}})
    rng = np.random.default_rng(SEED)
    drawn = space.sample(50, rng)
    places = np.array([0, 1, space.count() // 3, space.count() - 1], dtype=object)
    assert space.count() == math.factorial(items)
    assert (space.indices(space.legal.at_indices(places)) == places).all()
    assert len(set(space.legal.at_indices(places).designs())) == 4
    assert all(design in space for design in drawn.designs())
    assert all(design in space for design in space.at(rng.random((50, items))).designs())
    assert len(space.neighbours(drawn.design(0))) == math.comb(items, 2)


def test_orders_by_rank_are_every_order_once_and_uniform_in_draws_and_points(monkeypatch):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    space = space_from({"space": "s", "parameters": {"order": {"permutation": 5}}})
    listed = space.legal.at_indices(np.arange(120)).designs()
    rng = np.random.default_rng(SEED)
    draws = np.bincount(space.indices(space.sample(24_000, rng)), minlength=120)
    points = np.bincount(space.indices(space.at(rng.random((24_000, 5)))), minlength=120)
    assert len(set(listed)) == 120
    assert chisquare(draws).pvalue > 1e-3
    assert chisquare(points).pvalue > 1e-3


def test_stages_of_unequal_layers_are_balanced_as_trying_every_cut_finds():
    weights = [5, 3, 8, 1, 9, 2, 7, 4]
    space = space_from(
        {
            "space": "stages",
            "data": {"layers": [{"weights": weight} for weight in weights]},
            "parameters": {"stages": {"partition": 8, "parts": 4}},
            "constraints": ["max(sums(stages, layers.weights)) <= 15"],
        }
    )
    balanced = [
        cuts
        for cuts in itertools.combinations(range(1, 8), 3)
        if max(sum(weights[a:b]) for a, b in itertools.pairwise((0, *cuts, 8))) <= 15
    ]
    found = space.legal.at_indices(np.arange(space.count())).designs()
    assert sorted(tuple(d[f"stages[{i}]"] for i in range(3)) for d in found) == balanced


@pytest.mark.parametrize(
    ("second", "problem"),
    [
        ("layers.weights", "8 links, but 3 numbers"),
        ("stages", "needs a list of numbers"),
        ("2", "needs a list of numbers"),
    ],
)
def test_sums_of_a_partition_need_a_figure_for_each_link(second, problem):
    with pytest.raises(SpecErrors, match=problem):
        space_from(
            {
                "space": "stages",
                "data": {"layers": [{"weights": weight} for weight in (1, 2, 3)]},
                "parameters": {"stages": {"partition": 8, "parts": 4}},
                "constraints": [f"max(sums(stages, {second})) <= 15"],
            }
        )


def test_two_widths_of_a_layer_are_set_together_under_a_budget_of_their_products():
    def fewest(layers: int) -> int:
        ways = {0: 1}
        for _ in range(layers):
            more: dict[int, int] = {}
            for (total_, count), b, a in itertools.product(ways.items(), (2, 4, 8), (4, 8)):
                more[total_ + a * b] = more.get(total_ + a * b, 0) + count
            ways = more
        return sum(count for total_, count in ways.items() if total_ <= 20 * layers)

    space = space_from(
        {
            "space": "operations",
            "parameters": {
                "bits": {"each": 60, "ordinal": [2, 4, 8]},
                "acts": {"each": 60, "ordinal": [4, 8]},
            },
            "constraints": ["sum(bits * acts) <= 1200"],
        }
    )
    assert space.count() == fewest(60)


@pytest.mark.parametrize(
    ("rule", "count"),
    [
        ("a + b == 0.3", 2),
        ("a + b <= 0.3", 3),
        ("a + b < 0.3", 1),
        ("a * 3 <= 0.3", 3),
        ("a in [0.1]", 3),
    ],
)
def test_decimals_compare_as_they_were_written(rule, count):
    values = (0.1, 0.2, 0.7)
    space = DesignSpace(
        parameters=tuple(Ordinal(name=name, values=values) for name in "ab"),
        constraints=(parse(rule),),
    )
    assert space.count() == count


def test_a_parameter_that_is_set_has_its_value_as_bounds_no_longer_its_domain():
    values = np.array([2.0, 4.0])
    found = [(values, values), (1.0, 10.0)]
    intervals = Intervals(lambda _: found.pop(), {})
    name = Name("p")
    assert intervals.interval(name) == (1.0, 10.0)
    assert intervals.interval(name)[0] is values
