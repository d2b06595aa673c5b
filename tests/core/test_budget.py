"""A budget on a grid: a superset of what keeps it, drawn from uniformly, never too small."""

import itertools
import math
from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Binary, Call, Compare, Name, Number
from dse.core.legal_set import blocks, solution
from dse.core.legal_set import component as component_of
from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set.blocks import fold_rules
from dse.core.legal_set.decision_diagram import Diagram
from dse.core.legal_set.linear_constraint import linear_of
from dse.core.legal_set.neighbours import near
from dse.core.legal_set.relaxed_budget import RelaxedBudget
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Ordinal
from dse.core.space import DesignSpace

SEED = 7
WIDTHS = (2, 3, 4, 5, 6, 8)
GPT = (3 * 2**20 + 3072, 2**20 + 1024, 2**22 + 4096, 2**22 + 1024) * 24
LLAMA = (2**26, 2**23, 2**23, 2**26, 7 * 2**25, 7 * 2**25, 7 * 2**25) * 80


def network(sizes, widths=WIDTHS, average=4.25) -> DesignSpace:
    """A width for each matrix, within an average number of bits for each weight."""
    bits = tuple(Ordinal(name=f"bits[{i}]", values=widths) for i in range(len(sizes)))
    terms = [Binary("*", Name(p.name), Number(s)) for p, s in zip(bits, sizes, strict=True)]
    limit = Number(average * sum(sizes))
    rule = Expression("budget", Compare(("<=",), (Call("sum", tuple(terms)), limit)))
    return DesignSpace(parameters=bits, constraints=(rule,))


def legal_rows(parameters, *rules) -> np.ndarray:
    rows = np.array(list(itertools.product(*(range(len(p.values)) for p in parameters))))
    columns = component_of.columns_of(parameters, rows.astype(np.int32))
    keep = [rule.holds(columns, len(rows), unknown=True) for rule in rules]
    return rows[np.logical_and.reduce(keep)]


@pytest.fixture
def forced(monkeypatch):
    """Every budget is solved on its grid, and nothing by a table, a graph or a list."""
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(solution, "FILTERED_ROWS", 0)
    monkeypatch.setattr(growth, "MAX_EDGES", 4)
    monkeypatch.setattr(blocks, "MOST_ROWS", 12)
    monkeypatch.setattr(component_of, "TRIES", 100_000)


SMALL = (37, 101, 64, 64, 37)
RULES = {
    "<=": "37 * a + 101 * b + 64 * c + 64 * d + 37 * e <= 1250",
    ">=": "37 * a + 101 * b + 64 * c + 64 * d + 37 * e >= 1250",
    "fractions": "(3.7 * a + 10.1 * b + 6.4 * c + 6.4 * d) / 7 < 1250 / 70 - 3.7 * e / 7",
    "a function": "max(a, 4) * 37 + b * b * 11 + 2 ** c + 64 * d <= 700 + e",
    "an equation": "37 * a + 101 * b + 64 * (c + d) + 37 * e == 1249",
    "a difference": "37 * a - 101 * b <= 64 * (c - d) + e",
}
LETTERS = tuple(Ordinal(name=name, values=WIDTHS) for name in "abcde")


@pytest.mark.parametrize("text", RULES.values(), ids=RULES)
@pytest.mark.parametrize("states", [1, 3, 40, 10_000])
def test_the_grid_holds_all_that_keeps_the_budget_and_knows_how_much_it_holds(text, states):
    linear = linear_of(LETTERS, parse(text))
    grid = RelaxedBudget(linear, states)
    graph = Diagram(grid.layers(), grid.order)
    held = set(map(tuple, graph.at(np.arange(graph.count)).tolist()))
    assert {tuple(row) for row in legal_rows(LETTERS, parse(text)).tolist()} <= held
    assert graph.count <= grid.count <= graph.count * (1 + 1e-6) + 1


@pytest.mark.parametrize("text", ["a == 'red'", "a + b <= a * b", "max(a, b) <= 3", "a != 2"])
def test_what_is_no_sum_of_numbers_is_no_budget(text):
    assert linear_of(LETTERS, parse(text)) is None


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("text", [RULES["<="], RULES[">="], RULES["fractions"]])
def test_draws_from_the_grid_are_uniform_over_the_legal_combinations(text):
    part = solve_component((*LETTERS[:4], Ordinal(name="e", values=(2, 8))), {}, (parse(text),))
    rows = legal_rows(part.parameters, parse(text))
    drawn = part.sample(40 * len(rows), np.random.default_rng(SEED))
    assert isinstance(part.graph, RelaxedBudget)
    places = {tuple(row): place for place, row in enumerate(rows.tolist())}
    found = np.bincount([places[tuple(row)] for row in drawn.tolist()], minlength=len(rows))
    assert found.sum() == 40 * len(rows)
    assert chisquare(found).pvalue > 1e-3


@pytest.mark.usefixtures("forced")
@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 400), min_size=3, max_size=5),
    average=st.floats(1.9, 8.1),
    widths=st.sampled_from([WIDTHS, (2, 4, 8), (1, 2.5, 4)]),
)
def test_the_relaxed_group_says_what_the_unrelaxed_one_says(sizes, average, widths):
    space = network(sizes, widths, average)
    (rule,) = space.constraints
    part = solve_component(space.parameters, {}, (rule,))
    rows = legal_rows(space.parameters, rule)
    assert len(rows) <= part.bound
    drawn = part.sample(200, np.random.default_rng(SEED))
    assert len(drawn) == (200 if len(rows) else 0)
    assert part.legal(drawn).all()


def test_a_network_with_biases_is_drawn_from_and_its_bound_is_near():
    space = network(GPT)
    drawn = space.sample(500, np.random.default_rng(SEED))
    total = sum(drawn[f"bits[{i}]"] * size for i, size in enumerate(GPT))
    assert space.count() is None
    assert len(drawn) == 500
    assert (total <= 4.25 * sum(GPT)).all()


def exact_count_of_gpt() -> int:
    """By the number of matrices of each size: how often each sum of 24 widths comes, by size."""
    sums = {0: 1}
    for _ in range(24):
        sums = {
            t: sum(sums.get(t - width, 0) for width in WIDTHS)
            for t in range(max(sums) + max(WIDTHS) + 1)
        }
    left = sorted(
        (one * GPT[0] + other * GPT[1], sums[one] * sums[other]) for one in sums for other in sums
    )
    passed = list(itertools.accumulate((ways for _, ways in left), initial=0))
    ends = [end for end, _ in left]
    limit = 4.25 * sum(GPT)
    return sum(
        sums[one] * sums[other] * passed[bisect_right(ends, limit - one * GPT[2] - other * GPT[3])]
        for one in sums
        for other in sums
        if sums[one] and sums[other]
    )


def test_the_estimate_of_a_network_holds_the_exact_count_between_its_ends():
    exact, estimate = exact_count_of_gpt(), network(GPT).estimate()
    assert estimate.low <= exact <= estimate.high <= estimate.at_most
    assert estimate.high < 1.05 * estimate.low


EXTRAS = {
    "a fixed value": ["a == 8"],
    "three fixed values": ["a == 8", "c is not absent and c == 3", "e != 5"],
    "a small rule": ["a * b >= 40"],
    "a chain of small rules": ["a == b", "b == c"],
    "a fixed value and a wide rule": ["b == 4", "a + c <= d + e"],
    "a small and a wide rule": ["a == d", "a * b * c * e >= 300"],
    "another budget": ["a + b + c + d + e <= 20"],
    "a contradiction": ["a == 8", "a == 4"],
}


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("extras", EXTRAS.values(), ids=EXTRAS)
@pytest.mark.parametrize("text", [RULES["<="], RULES["fractions"], RULES["an equation"]])
def test_a_budget_with_other_rules_has_the_legal_combinations_of_trying_all(text, extras):
    rules = tuple(map(parse, [text, *extras]))
    part = solve_component(LETTERS, {}, rules)
    rows = legal_rows(LETTERS, *rules)
    drawn = part.sample(30 * len(rows), np.random.default_rng(SEED))
    assert len(rows) <= part.bound
    assert {tuple(row) for row in drawn.tolist()} <= {tuple(row) for row in rows.tolist()}
    assert len(drawn) == 30 * len(rows)


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("extras", [["a == 8", "b >= 3"], ["a == b"], ["a + d <= c + e"]])
def test_draws_with_other_rules_are_uniform(extras):
    rules = tuple(map(parse, [RULES["<="], *extras]))
    part = solve_component((*LETTERS[:4], Ordinal(name="e", values=(2, 8))), {}, rules)
    rows = legal_rows(part.parameters, *rules)
    drawn = part.sample(40 * len(rows), np.random.default_rng(SEED))
    assert isinstance(part.graph, RelaxedBudget)
    places = {tuple(row): place for place, row in enumerate(rows.tolist())}
    found = np.bincount([places[tuple(row)] for row in drawn.tolist()], minlength=len(rows))
    assert chisquare(found).pvalue > 1e-3


def test_a_listed_budget_with_blocks_is_exact(monkeypatch):
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(growth, "MAX_EDGES", 4)
    rules = tuple(map(parse, [RULES["<="], "a == d", "b != 2"]))
    part = solve_component(LETTERS, {}, rules)
    rows = legal_rows(LETTERS, *rules)
    listed = part.diagram.at(np.arange(part.count))
    assert {tuple(row) for row in listed.tolist()} == {tuple(row) for row in rows.tolist()}
    assert (part.indices(listed) == np.arange(len(rows))).all()


def test_rules_are_folded_while_their_blocks_are_small():
    rules = [parse(text) for text in ("a == b", "b == c", "d >= 4", "a + b + c + d <= e * e")]
    found, left = fold_rules(LETTERS, rules)
    assert [sorted(block.places) for block in found] == [[0, 1, 2, 3, 4]]
    assert len(found[0].rows) == len(legal_rows(LETTERS, *rules))
    assert left == []
    found, left = fold_rules(LETTERS, [*rules[:1], rules[3], parse("b + c + d + e >= 4")])
    assert [len(block.rows) for block in found] == [6, 6, 6, 6]
    assert len(left) == 2


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("extras", [[], ["a == 8"], ["a == b"], ["a + d <= c + e"]])
def test_neighbours_on_the_grid_are_legal_and_hold_every_single_change(extras):
    rules = tuple(map(parse, [RULES["<="], *extras]))
    part = solve_component(LETTERS, {}, rules)
    rows = legal_rows(LETTERS, *rules)
    row = part.sample(1, np.random.default_rng(SEED))[0]
    found = {tuple(one) for one in near(part, row).tolist()}
    changed = (rows != row).sum(axis=1)
    assert isinstance(part.graph, RelaxedBudget)
    assert {tuple(one) for one in rows[changed == 1].tolist()} <= found
    assert found <= {tuple(one) for one in rows[(changed == 1) | (changed == 2)].tolist()}


@pytest.mark.usefixtures("forced")
def test_neighbours_of_many_matrices_hold_every_single_change():
    space = network(GPT[:32])
    part = solve_component(space.parameters, {}, space.constraints)
    row = part.sample(1, np.random.default_rng(SEED))[0]
    singles = np.repeat(row[None, :], 32 * len(WIDTHS), axis=0)
    singles[np.arange(len(singles)), np.repeat(np.arange(32), len(WIDTHS))] = np.tile(
        np.arange(len(WIDTHS)), 32
    )
    singles = singles[(singles != row).any(axis=1)]
    legal = {tuple(one) for one in singles[part.legal(singles)].tolist()}
    found = near(part, row)
    assert len(legal) > 60
    assert legal <= {tuple(one) for one in found.tolist()}
    assert part.legal(found).all()


EXTRA_RULES = {
    "one fixed": ["b0 == 8"],
    "three fixed": ["b0 == 8", "b5 == 2", "b10 == 4"],
    "fixed and equal": ["b0 == 8", "b1 == b2"],
    "fixed and another sum": ["b0 == 8", "b1 + b2 + b3 + b4 + b5 + b6 + b7 >= 30"],
}


@pytest.mark.parametrize("extras", EXTRA_RULES.values(), ids=EXTRA_RULES)
def test_a_network_with_other_rules_is_solved_without_growing_its_graph(extras, monkeypatch):
    grown = []
    monkeypatch.setattr(solution, "grown", lambda *args, **_: grown.append(args))
    space = network(GPT)
    rules = [parse(text).renamed(lambda name: f"bits[{name[1:]}]") for text in extras]
    part = solve_component(space.parameters, {}, (*space.constraints, *rules))
    drawn = part.sample(200, np.random.default_rng(SEED))
    assert grown == []
    assert part.diagram.edges < 5_000_000
    assert part.legal(drawn).sum() == 200


WHOLE = [
    "a + b + c + d <= 14 + e",
    "a + b * b + c + d * d == 60 - e",
    "3 * a - 3 * b >= 6 + 3 * c - 3 * d + 3 * e",
]


@pytest.mark.parametrize("text", WHOLE)
def test_a_grid_of_whole_numbers_holds_just_what_keeps_the_budget(text):
    grid = RelaxedBudget(linear_of(LETTERS, parse(text)), 10_000)
    graph = Diagram(grid.layers(), grid.order)
    held = set(map(tuple, graph.at(np.arange(graph.count)).tolist()))
    assert grid.exact
    assert held == {tuple(row) for row in legal_rows(LETTERS, parse(text)).tolist()}


def test_a_grid_of_fractions_claims_nothing_exact():
    assert not RelaxedBudget(linear_of(LETTERS, parse(RULES["fractions"])), 10_000).exact
    assert not RelaxedBudget(linear_of(LETTERS, parse(RULES["<="])), 3).exact


@pytest.mark.parametrize(
    ("operator", "counts"),
    [("==", [3]), ("<=", [0, 1, 2, 3]), (">=", range(3, 601)), ("<", [0, 1, 2])],
)
def test_a_lone_sum_over_many_parameters_is_counted(operator, counts):
    many = tuple(Ordinal(name=f"x{i}", values=(0, 1)) for i in range(600))
    total = Call("sum", tuple(Name(one.name) for one in many))
    rule = Expression("lone", Compare((operator,), (total, Number(3))))
    space = DesignSpace(parameters=many, constraints=(rule,))
    assert space.count() == sum(math.comb(600, ones) for ones in counts)


def test_a_thousand_parameters_of_one_value_are_one_design():
    many = tuple(Ordinal(name=f"x{i}", values=(i,)) for i in range(1_000))
    rule = Expression(
        "all", Compare(("<=",), (Call("max", tuple(Name(p.name) for p in many)), Number(999)))
    )
    two = Ordinal(name="y", values=(1, 2))
    assert DesignSpace(parameters=(*many, two), constraints=(rule,)).count() == 2
