"""Lists, orders, subsets, partitions and shares: whatever moves through such a space stays legal."""

from itertools import product
from math import comb

import numpy as np
import pytest

from dse import registry
from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.space import DesignSpace
from dse.core.variation import cross_parents, mutate_designs
from dse.schema.space.space_loader import space_from
from dse.testing.known import Known, problem_of

SLOW = {"ax", "qlognehvi"}
LISTING = ("decompose", "factorial", "cma-es")
"""Nothing may be measured for the first; the second refuses more designs than it is to list, and
the third choices and conditions."""
COUNTING = {"exhaustive"}
"""These need a space that can be counted."""
NAMES = {
    name: pytest.mark.slow if name in SLOW else ()
    for name in registry.names("optimizers")
    if name not in LISTING
}
FINITE = {
    "space": "structured",
    "parameters": {
        "bits": {"each": 6, "ordinal": [2, 4, 8]},
        "order": {"permutation": ["conv", "norm", "act"]},
        "kept": {"subset": ["a", "b", "c", "d"], "size": [1, 3]},
        "stages": {"partition": 9, "parts": [1, 4]},
        "mode": {"choice": ["plain", "mixed"]},
        "mix": {"simplex": 3, "step": 0.25, "when": "mode == 'mixed'"},
    },
    "constraints": [
        "sum(bits) <= 28",
        "bits[0] == 8",
        "count(kept) <= stages.parts",
        "order[0] == 'conv' -> count(bits == 8) <= 2",
    ],
}
WITH_REALS = {
    **FINITE,
    "parameters": {**FINITE["parameters"], "share": {"simplex": ["cpu", "gpu", "npu"]}},
    "constraints": [*FINITE["constraints"], "mode == 'mixed' -> share[gpu] >= 0.2"],
}


SPACES = {"finite": FINITE, "with reals": WITH_REALS}


@pytest.fixture(scope="module", params=SPACES)
def space(request) -> DesignSpace:
    return space_from(SPACES[request.param])


def known_of(space: DesignSpace) -> Known:
    def truth(batch: Batch) -> Metrics:
        bits = sum(batch[f"bits[{layer}]"].astype(float) for layer in range(6))
        last = batch["order[2]"] == "conv"
        kept = sum(batch[f"kept[{item}]"].astype(float) for item in "abcd")
        return Metrics(columns={"size": bits + kept, "error": 1 / bits + 0.1 * last + 0.02 / kept})

    kinds = {"size": "modelled", "error": "measured"}
    goals = {"size": "minimize", "error": "minimize"}
    return Known(
        problem=problem_of(space, kinds, goals, truth),
        truth=truth,
        front=np.zeros((0, 2)),
        reference=np.array([60.0, 1.0]),
    )


def legal(space: DesignSpace, batch: Batch) -> bool:
    return all(design in space for design in batch.designs())


def test_the_finite_space_is_counted_as_by_hand():
    others = [row for row in product((2, 4, 8), repeat=5) if 8 + sum(row) <= 28]
    few_wide = [row for row in others if 1 + row.count(8) <= 2]
    orders = 4 * len(others) + 2 * len(few_wide)  # two of the six orders begin with conv
    stages = sum(
        comb(4, kept) * comb(8, parts - 1) for kept in (1, 2, 3) for parts in range(kept, 5)
    )
    mixes = 1 + comb(4 + 2, 2)  # none in the plain mode, else four quarters over three
    assert space_from(FINITE).count() == orders * stages * mixes


def test_every_draw_is_legal(space):
    assert legal(space, space.sample(200, np.random.default_rng(0)))
    assert legal(space, space.at(np.random.default_rng(1).random((200, space.coordinates))))


def test_every_neighbour_is_legal_and_another_design(space):
    for design in space.sample(5, np.random.default_rng(2)).designs():
        near = space.neighbours(design)
        assert len(near) > 0
        assert legal(space, near)
        assert design not in near.designs()


def test_every_child_and_mutant_is_legal(space):
    rng = np.random.default_rng(3)
    mothers, fathers = space.sample(100, rng), space.sample(100, rng)
    assert legal(space, cross_parents(space, mothers, fathers, rng))
    assert legal(space, mutate_designs(space, mothers, rng))


def test_shares_sum_to_one_and_are_uniform_over_the_simplex():
    space = space_from({"space": "s", "parameters": {"mix": {"simplex": 3}}})
    drawn = space.sample(20_000, np.random.default_rng(4))
    shares = np.column_stack([drawn[f"mix[{place}]"] for place in range(3)])
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    # of a uniform point of the triangle a share exceeds 1/2 with the chance (1 - 1/2)^2
    assert (shares > 0.5).mean(axis=0) == pytest.approx([0.25] * 3, abs=0.01)


def test_the_rest_of_the_shares_goes_to_those_that_are_not_fixed():
    space = space_from({"space": "s", "parameters": {"mix": {"simplex": 3}}})
    drawn = space.fixed({"mix[1]": 0.5}).sample(2_000, np.random.default_rng(8))
    shares = np.column_stack([drawn[f"mix[{place}]"] for place in range(3)])
    assert (shares[:, 1] == 0.5).all()
    assert np.abs(shares.sum(axis=1) - 1).max() < 1e-12
    assert shares[:, 0].mean() == pytest.approx(0.25, abs=0.01)
    assert legal(space, drawn.take(np.arange(50)))


@pytest.mark.parametrize(
    ("space", "name"),
    [
        pytest.param(kind, name, marks=marks)
        for kind in SPACES
        for name, marks in NAMES.items()
        if kind == "finite" or name not in COUNTING
    ],
    indirect=["space"],
)
def test_every_optimizer_asks_legal_and_new_designs(space, name):
    known = known_of(space)
    optimizer = registry.make("optimizers", name, known.problem)
    asked = []
    for _ in range(4):
        designs = optimizer.ask(4)
        asked += designs
        optimizer.tell(known.finished(designs, len(asked) - len(designs)))
    assert len(asked) == len(set(asked)) == 16
    assert all(design in space for design in asked)
