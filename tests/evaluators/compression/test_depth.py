"""A transformer without some parts, and one that stops early: what must hold of both."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from benchmarks.train_character_lm import draw_weights
from dse_evaluators.compression.depth_dropped import (
    blocks_of,
    fitted_exit,
    left_early,
    truncate_model,
    without,
)
from dse_evaluators.compression.depth_layer_drop import list_removals
from dse_evaluators.compression.other_parameters import multiplications
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads.taps import pass_through, watching

DEPTHS = {"attention": 2, "ffn": 2}
CODES = torch.tensor(np.random.default_rng(0).integers(80, size=(8, 64)))


@pytest.fixture(scope="module")
def parameters():
    chance = torch.Generator().manual_seed(0)
    return {name: x.detach().numpy() for name, x in draw_weights(chance).items()}


def logits(parameters, taps=None):
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    with torch.inference_mode():
        return network.logits(tensors, CODES, taps or pass_through()).flatten(0, 1).numpy()


def test_a_part_that_is_left_out_takes_its_tables_along(parameters):
    cut = without(parameters, ["blocks.1.ffn"])
    gone = {"blocks.1.ffn.norm", "blocks.1.ffn.up", "blocks.1.ffn.down"}
    assert set(parameters) - set(cut) == gone


def test_an_entry_of_a_list_is_about_one_part():
    design = {"attention[0]": True, "attention[1]": False, "ffn[0]": True, "ffn[1]": False}
    assert list_removals(design, DEPTHS) == [("attention", 1), ("ffn", 1)]


def test_one_value_is_about_all_blocks():
    design = {"attention": True, "ffn": False}
    assert list_removals(design, DEPTHS) == [("ffn", 0), ("ffn", 1)]


def test_without_any_part_only_the_head_multiplies(parameters):
    names = [f"blocks.{block}" for block in range(3)]
    assert multiplications(without(parameters, names)) == parameters["head"].size


def test_attention_multiplies_every_key_so_far(parameters):
    cut = without(parameters, ["blocks.0.attention"])
    tables = 4 * 96 * 96
    assert multiplications(parameters) - multiplications(cut) == tables + 96 * 129


def test_after_the_last_block_it_is_the_whole_model(parameters):
    assert blocks_of(parameters) == 3
    assert truncate_model(parameters, 3) == parameters
    assert fitted_exit(parameters, {}, 3) == parameters


@pytest.mark.parametrize("blocks", [1, 2])
def test_a_head_that_was_fitted_is_nearer_to_the_end_than_the_last_one(parameters, blocks):
    seen = {}
    whole = logits(parameters, watching(seen))
    fitted = ((logits(fitted_exit(parameters, seen, blocks)) - whole) ** 2).mean()
    shared = ((logits(truncate_model(parameters, blocks)) - whole) ** 2).mean()
    assert fitted < shared


def test_each_character_stops_where_it_is_sure_first():
    unsure, sure = [0.0, 0.1], [0.0, 9.0]
    exits = [np.array([unsure, sure, unsure]), np.array([sure, unsure, unsure])]
    last = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    left = left_early([*exits, last], 0.95)
    assert left.exits.tolist() == [1, 0, 2]
    np.testing.assert_array_equal(left.outputs, [sure, sure, last[2]])


def test_who_is_never_sure_goes_to_the_end():
    exits = [np.array([[0.0, 9.0]]), np.array([[0.0, 1.0]])]
    assert left_early(exits, 1.0).exits.tolist() == [1]


def test_who_is_always_sure_goes_no_further_than_the_first():
    exits = [np.array([[0.0, 0.0]]), np.array([[0.0, 1.0]])]
    assert left_early(exits, 0.5).exits.tolist() == [0]
