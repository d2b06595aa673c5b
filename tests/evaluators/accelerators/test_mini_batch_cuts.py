"""The dynamic program over the cuts of a chain, against all ways to cut it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.accelerators.training.mini_batch_serialization import MiniBatchSerialization
from dse_evaluators.accelerators.training.serialization import best_cuts, every_group

STUDY = Path(__file__).parents[3] / "studies/reproductions/mini_batch_serialization.yaml"
MIB = 1024.0**2
VGG = MiniBatchSerialization(network="vgg16")
RESNET = MiniBatchSerialization()

prices = st.integers(1, 7).flatmap(
    lambda count: st.lists(
        st.lists(st.integers(0, 50), min_size=count, max_size=count),
        min_size=count,
        max_size=count,
    )
)


def every_cut(count):
    inner = range(1, count)
    return [cut for size in range(count) for cut in combinations(inner, size)]


def cost(table, cut):
    ends = [*cut, len(table)]
    return sum(table[first][end - 1] for first, end in zip([0, *cut], ends, strict=True))


def design(cut, **knobs):
    return {**{f"cuts[{place}]": block for place, block in enumerate(cut)}, **knobs}


@given(prices)
def test_no_way_to_cut_costs_less_than_the_programs(table):
    found = best_cuts(np.array(table, dtype=float))
    costs = {cut: cost(table, cut) for cut in every_cut(len(table))}
    assert found.cost == min(costs.values()) == costs[found.places]


def test_every_group_is_there_once():
    assert every_group(3) == ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


@settings(max_examples=30)
@given(st.floats(0.1, 64), st.integers(1, 64), st.sampled_from([2.0, 4.0]))
def test_the_program_finds_the_least_traffic_of_all_cuts(buffer_mib, samples, gradient_bytes):
    knobs = {"buffer": buffer_mib * MIB, "batch": samples, "gradient_bytes": gradient_bytes}
    every = Batch.of([design(cut, **knobs) for cut in every_cut(VGG.blocks)])
    moved = VGG.evaluate(every).columns["dram_traffic"]
    (found,) = VGG.best(Batch.of([knobs]))
    assert found.cost == pytest.approx(moved.min(), rel=1e-12)
    chosen = VGG.evaluate(Batch.of([design(found.places, **knobs)])).columns["dram_traffic"]
    assert chosen == pytest.approx(found.cost, rel=1e-12)


@pytest.mark.parametrize("length", range(1, 17))
def test_the_program_is_no_worse_than_groups_of_one_length(length):
    equal = tuple(range(length, RESNET.blocks, length))
    moved = RESNET.evaluate(Batch.of([design(equal)])).columns["dram_traffic"][0]
    (found,) = RESNET.best(Batch.of([{"buffer": 10 * MIB}]))
    assert found.cost <= moved


@pytest.mark.parametrize("buffer_mib", [4, 10, 20, 40])
def test_the_studys_baselines_are_what_the_program_finds(buffer_mib):
    told = yaml.safe_load(STUDY.read_text())["baselines"][f"program_{buffer_mib}"]
    (found,) = RESNET.best(Batch.of([{"buffer": buffer_mib * MIB}]))
    assert {name: told[name] for name in told if "[" in name} == design(found.places)
    assert told["cuts.parts"] == len(found.places) + 1
