"""Spaces that no table and no usual graph holds: counted, searched, and never called empty."""

import itertools
import json
import math

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.core.expressions.parser import parse
from dse.core.legal_set import component, solution
from dse.core.legal_set import diagram_builder as growth
from dse.core.legal_set import local_search as witness
from dse.core.legal_set.permutations import Orders
from dse.core.parameter import Choice, Integer
from dse.core.space import DesignSpace
from dse.errors import DesignError, SpecError
from dse.schema.space.space_loader import space_from

SEED = 3


def whole(names: str, high: int) -> tuple[Integer, ...]:
    return tuple(Integer(name=name, low=1, high=high) for name in names)


@pytest.mark.parametrize("text", ["a * b == c", "c == a * b", "a == b * c"])
def test_a_product_is_counted_by_its_divisors(text):
    space = DesignSpace(parameters=whole("abc", 3_000), constraints=(parse(text),))
    assert space.count() == sum(3_000 // a for a in range(1, 3_001))


def test_a_sample_of_twenty_of_twenty_four_is_whole_and_exact():
    names = [f"p{place}" for place in range(20)]
    slots = tuple(Integer(name=name, low=1, high=24) for name in names)
    space = DesignSpace(
        parameters=slots, constraints=(parse(f"all_different({', '.join(names)})"),)
    )
    drawn = space.sample(1_000, np.random.default_rng(SEED))
    assert space.count() == math.perm(24, 20)
    assert len(drawn) == 1_000
    assert all(len(set(design.values())) == 20 for design in drawn.designs())


@pytest.mark.parametrize(("items", "places"), [(5, 3), (4, 4), (6, 1), (5, 2)])
def test_some_items_in_a_row_are_ranked_and_near_ones_found_as_trying_finds(items, places):
    orders = Orders(items, places)
    every = set(itertools.permutations(range(items), places))
    found = orders.at(np.arange(orders.count))
    assert {tuple(row) for row in found.tolist()} == every
    assert orders.ranks(found).tolist() == list(range(orders.count))
    assert orders.ranks(np.zeros((1, places), dtype=np.int32) - 1).tolist() == [-1]
    row = found[orders.count // 2]
    costs = [np.array([1.0, *(float(code != mine) for code in range(items))]) for mine in row]
    for most in (1, 2):
        near = {tuple(one) for one in orders.within(costs, most).tolist()}
        assert near == {o for o in every if (np.array(o) != row).sum() <= most}


def test_two_thousand_parameters_in_a_chain_are_counted():
    steps = tuple(Integer(name=f"p{place}", low=1, high=4) for place in range(2_000))
    rules = tuple(parse(f"p{place} <= p{place + 1}") for place in range(1_999))
    assert DesignSpace(parameters=steps, constraints=rules).count() == math.comb(2_003, 3)


def grid_colouring(rows: int, columns: int, colours: str) -> DesignSpace:
    cells = [(row, column) for row in range(rows) for column in range(columns)]
    rng = np.random.default_rng(SEED)
    rng.shuffle(cells)  # the order in which they are told is of no help
    pairs = [
        (f"c{r}_{c}", f"c{r + dr}_{c + dc}")
        for r, c in sorted(cells)
        for dr, dc in ((0, 1), (1, 0))
        if r + dr < rows and c + dc < columns
    ]
    return DesignSpace(
        parameters=tuple(Choice(name=f"c{r}_{c}", values=tuple(colours)) for r, c in cells),
        constraints=tuple(parse(f"{a} != {b}") for a, b in pairs),
    )


def test_a_map_of_sixty_is_coloured_and_counted_whatever_order_it_is_told_in():
    space = grid_colouring(6, 10, "rgb")
    assert space.count() == grid_colouring_count(6, 10, 3)


def grid_colouring_count(rows: int, columns: int, colours: int) -> int:
    """By the transfer matrix of whole columns."""
    every = [
        column
        for column in itertools.product(range(colours), repeat=rows)
        if all(a != b for a, b in itertools.pairwise(column))
    ]
    states = np.array(every)
    fits = (states[:, None, :] != states[None, :, :]).all(axis=2)
    ways = [1] * len(every)
    after = [np.flatnonzero(row).tolist() for row in fits]
    for _ in range(columns - 1):
        ways = [sum(ways[other] for other in others) for others in after]
    return sum(ways)


PLAN = {
    "tp": {"integer": [1, 32]},
    "pp": {"integer": [1, 48]},
    "dp": {"integer": [1, 128]},
    "microbatch": {"integer": [1, 64]},
    "layers": {"integer": [1, 96]},
}
SHAPE = ["tp * pp * dp <= 256", "layers % pp == 0", "512 % (dp * microbatch) == 0"]
ACTIVATIONS = "microbatch * 4096 * 8192 * layers * 34 / (tp * pp)"
MEMORY = {
    "a share": f"16 * 70e9 * layers / 96 / (tp * pp) + {ACTIVATIONS} / dp <= 80e9",
    "ZeRO": f"4 * 70e9 / (tp * pp) + 12 * 70e9 / (tp * pp * dp) + {ACTIVATIONS} / layers <= 80e9",
    "a quotient": f"80e9 / (16 * 70e9 / (tp * pp) / dp + {ACTIVATIONS} / dp) >= 1",
    "whole quotients": f"({ACTIVATIONS}) // 1e9 + 16 * 70 * layers // 96 // tp <= 40 + dp // pp",
}


def plan_count(memory: str) -> int:
    """By loops over plans that fit the machine, and the rule of memory as Python reads it."""
    shapes = [
        (tp, pp, dp, microbatch)
        for tp in range(1, 33)
        for pp in range(1, min(48, 256 // tp) + 1)
        for dp in range(1, min(128, 256 // (tp * pp)) + 1)
        for microbatch in range(1, 65)
        if 512 % (dp * microbatch) == 0
    ]
    tp, pp, dp, microbatch = (np.array(one)[:, None] for one in zip(*shapes, strict=True))
    layers = np.arange(1, 97)[None, :]
    names = {"tp": tp, "pp": pp, "dp": dp, "microbatch": microbatch, "layers": layers}
    return int((eval(memory, {}, names) & (layers % pp == 0)).sum())


@pytest.mark.parametrize("memory", MEMORY.values(), ids=MEMORY)
def test_a_plan_within_a_memory_with_divisions_is_counted_exactly(memory):
    text = {"space": "plan", "parameters": PLAN, "constraints": [*SHAPE, memory]}
    space = space_from(text)
    drawn = space.sample(50, np.random.default_rng(SEED))
    assert 10_000 < space.count() == plan_count(memory) < 237_590
    assert all(design in space for design in drawn.designs())


def test_a_wide_rule_is_left_out_and_its_superset_filtered_before_a_large_graph_is_grown(
    monkeypatch,
):
    shares, grown = [], solution.grown
    monkeypatch.setattr(
        solution,
        "grown",
        lambda *args, share, **more: shares.append(share) or grown(*args, share=share, **more),
    )
    space = space_from(
        {"space": "plan", "parameters": PLAN, "constraints": [*SHAPE, MEMORY["a share"]]}
    )
    assert space.count() == 177_321
    assert shares == [16, 4]  # the first try, and the superset that is filtered


def test_a_plan_for_any_number_of_devices_is_counted_exactly():
    limits = {"gpus": 2_048, "tp": 2_048, "pp": 128, "dp": 1_024, "microbatch": 64}
    rules = ["tp * pp * dp == gpus", "1024 % (dp * microbatch) == 0"]
    memory = (
        "16 * 70e9 / (tp * pp * dp) + microbatch * 4096 * 8192 * 80 * 34 / (tp * pp)"
        " + 2e9 * gpus / dp / microbatch <= 60e9"
    )
    text = {
        "space": "plan",
        "parameters": {name: {"integer": [1, high]} for name, high in limits.items()},
        "constraints": [*rules, memory],
    }
    shapes = [
        (tp, pp, dp, microbatch)
        for microbatch in (2**power for power in range(7))
        for dp in (2**power for power in range(11))
        if 1024 % (dp * microbatch) == 0
        for pp in range(1, min(128, 2_048 // dp) + 1)
        for tp in range(1, 2_048 // (dp * pp) + 1)
    ]
    tp, pp, dp, microbatch = (np.array(one) for one in zip(*shapes, strict=True))
    names = {"tp": tp, "pp": pp, "dp": dp, "microbatch": microbatch, "gpus": tp * pp * dp}
    assert len(shapes) == 151_521
    assert space_from(text).count() == int(eval(memory, {}, names).sum())


@pytest.fixture
def narrow(monkeypatch):
    """Little room: nothing is tried or listed, graphs are small, and few draws are made."""
    monkeypatch.setattr(solution, "TRIED_ROWS", 0)
    monkeypatch.setattr(solution, "FILTERED_ROWS", 0)
    monkeypatch.setattr(growth, "MAX_EDGES", 64)
    monkeypatch.setattr(component, "TRIES", 2_000)
    monkeypatch.setattr(witness, "_STEPS", 40)


RARE = {
    "space": "rare",
    "parameters": {name: {"integer": [1, 40]} for name in "abcd"},
    "constraints": ["a * b + c ** 2 == 1200 + d", "a % 7 == c % 5", "b * d >= 1000"],
}
NEVER = {**RARE, "constraints": ["a * b * c * d % 2 == 3 - a % 2", "(a + b) ** 2 == c * d * 7 + 3"]}


@pytest.mark.usefixtures("narrow")
def test_one_design_is_searched_for_before_a_space_is_refused():
    space = grid_colouring(4, 6, "rgb")
    known = space.legal.witness()
    assert space.count() is None
    assert len(known) == 1
    assert known.design(0) in space


@pytest.mark.usefixtures("narrow")
def test_a_space_where_nothing_is_found_is_not_said_to_contradict_itself():
    with pytest.raises(SpecError, match="no legal design was found in 2,000 draws") as caught:
        space_from(NEVER)
    assert "contradict" not in str(caught.value)


@pytest.mark.usefixtures("narrow")
def test_a_draw_that_finds_nothing_says_in_how_many_tries():
    space = space_from(NEVER, may_be_empty=True)
    with pytest.raises(DesignError, match="no legal design was found in 2,000 draws") as caught:
        space.sample(5, np.random.default_rng(SEED))
    assert "not proved" in str(caught.value)
    estimate = space.estimate()
    assert (estimate.count, estimate.low) == (0, 0)
    assert 0 < estimate.high <= estimate.at_most


@pytest.mark.usefixtures("narrow")
def test_a_description_shows_the_estimate_that_a_count_shows(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text(yaml.safe_dump({**RARE, "constraints": ["a * b + c ** 2 <= 1200 + d"]}))
    words, counted, described = (
        CliRunner().invoke(app, ["space", *command, str(path)]).stdout
        for command in (
            ["describe"],
            ["count", "--format", "json"],
            ["describe", "--format", "json"],
        )
    )
    estimate = json.loads(described)["estimate"]
    assert estimate == json.loads(counted)["estimate"]
    assert f"{estimate['legal']:,} of 10,000 draws were legal" in " ".join(words.split())
    share = json.loads(described)["share"]["share"]
    assert share == pytest.approx(estimate["designs"] / 40**4)


def test_a_space_that_is_proved_empty_says_so():
    space = DesignSpace(parameters=whole("ab", 3), constraints=(parse("a > 3"),))
    with pytest.raises(DesignError, match="there is no legal design") as caught:
        space.sample(1, np.random.default_rng(SEED))
    assert "contradict" in caught.value.hint


@pytest.mark.usefixtures("narrow")
def test_a_sample_that_is_too_small_is_said_in_python():
    space = dse.Space(dict.fromkeys("abcd", (1, 40)), RARE["constraints"][:1])
    with pytest.warns(UserWarning, match="of 2,000 designs were found in 8,000 draws"):
        assert 0 < len(space.sample(2_000)) < 2_000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "s.yaml"
    path.write_text("space: s\nparameters: {a: {integer: [1, 9]}, b: {boolean: true}}\n")
    return path


def test_more_designs_than_fit_in_memory_are_refused(file):
    told = CliRunner().invoke(app, ["space", "sample", str(file), "-n", "100000000000"])
    assert told.exit_code == 2 or isinstance(told.exception, DesignError)
    with pytest.raises(DesignError, match="100,000,000,000 designs of 2 parameters are too many"):
        dse.Space.read(file).sample(100_000_000_000)
