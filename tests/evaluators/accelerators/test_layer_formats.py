"""Weight formats that differ between layers, on a systolic array: traffic, area and entries."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse.registry import make
from dse_evaluators.workloads.own.own_workload import workload_of_option
from tests.evaluators.compression.own_models import (
    image_network,
    images,
    vision_transformer,
    write_onnx,
)

pytest.importorskip("onnx", reason="needs the extra 'onnx'")

ARRAY = {"rows": 8, "cols": 8, "dataflow": "os", "activation_format": "int8"}
WEIGHTS = [8 * 9, 8 * 9, 16 * 8, 4 * 16]  # of image_network, in its order
FILTERS = [8, 8, 16, 4]


@pytest.fixture(scope="module")
def chip(tmp_path_factory):
    path = tmp_path_factory.mktemp("net") / "net.onnx"
    write_onnx(path, image_network(), torch.zeros(1, 1, 8, 8))
    return make("evaluators", "accelerators.systolic", workload=str(path))


def metrics(chip, *lists):
    rows = [
        {**ARRAY, **{f"weight_format[{place}]": form for place, form in enumerate(one)}}
        for one in lists
    ]
    return chip.evaluate(Batch.of(rows)).columns


def alone(chip, form):
    return chip.evaluate(Batch.of([{**ARRAY, "weight_format": form}])).columns


@pytest.mark.parametrize("form", ["int8", "int4:channel", "fp8_e4m3:channel"])
def test_equal_formats_in_all_layers_are_one_format(chip, form):
    found, wanted = metrics(chip, [form] * 4), alone(chip, form)
    for name, column in wanted.items():
        assert found[name][0] == pytest.approx(column[0], rel=1e-12), name


def test_each_layer_is_stored_in_its_own_format(chip):
    forms = ["int8:channel", "int4:channel", "int3:channel", "int2:channel"]
    bits = [8, 4, 3, 2]
    by_hand = sum(
        count * width / 8 + filters * 2  # scales have 16 bits
        for count, width, filters in zip(WEIGHTS, bits, FILTERS, strict=True)
    )
    found = metrics(chip, forms)
    assert found["model_size"][0] == pytest.approx(by_hand)
    assert found["area"][0] == alone(chip, "int8:channel")["area"][0]  # of the widest multiplier


def test_designs_of_a_batch_keep_their_own_formats(chip):
    lists = [["int8"] * 4, ["int4"] * 4, ["int8", "int4", "int4", "int4"], ["int4"] * 4]
    together = metrics(chip, *lists)
    for place, one in enumerate(lists):
        for name, column in metrics(chip, one).items():
            assert together[name][place] == column[0], name


def test_narrower_weights_move_fewer_bytes(chip):
    wide, mixed = metrics(chip, ["int8"] * 4, ["int8", "int8", "int4", "int8"])["dram_traffic"]
    assert wide - mixed == pytest.approx(WEIGHTS[2] / 2)


def test_entries_are_the_weights_of_the_recipe_in_its_order(tmp_path):
    write_onnx(tmp_path / "net.onnx", vision_transformer(), torch.zeros(1, 1, 8, 8))
    recipe = make(
        "evaluators",
        "compression.recipe",
        model=str(tmp_path / "net.onnx"),
        data=images(),
    )
    entries = workload_of_option(str(tmp_path / "net.onnx")).entries
    assert entries.names == tuple(recipe.recipes({}))
    assert entries.places == (0, 1, -1, -1, 2, 3, 4, 5)  # attention multiplies by no weights


def test_entries_of_a_module_follow_its_definition_not_its_execution():
    class Turned(nn.Module):
        def __init__(self):
            super().__init__()
            self.last, self.first = nn.Linear(8, 3), nn.Linear(4, 8)

        def forward(self, signal):
            return self.last(self.first(signal))

    entries = workload_of_option({"python": Turned(), "input": [4]}).entries
    assert entries.names == ("last.weight", "first.weight")
    assert entries.places == (1, 0)


def test_a_list_of_another_length_is_refused(chip):
    with pytest.raises(SpecError, match="'weight_format' has 3 entries") as caught:
        chip.check_values({f"weight_format[{place}]": ["int8"] for place in range(3)})
    assert caught.value.hint == "each: 4"
    with pytest.raises(EvaluationError, match="weight_format has 3 entries"):
        metrics(chip, ["int8"] * 3)


def test_a_format_without_a_multiplier_is_refused_in_a_list(chip):
    values = {f"weight_format[{place}]": ["int8"] for place in range(4)}
    with pytest.raises(SpecError, match="there is no multiplier for 'nf4'"):
        chip.check_values({**values, "weight_format[2]": ["nf4"]})


def test_blocks_that_do_not_fit_a_layer_make_only_their_designs_infeasible(chip):
    lists = [["int8"] * 4, ["int4:group=32,full", "int8", "int8", "int8"]]
    rows = [
        {**ARRAY, **{f"weight_format[{k}]": form for k, form in enumerate(one)}} for one in lists
    ]
    found = chip.evaluate(Batch.of(rows))
    assert list(found.failures) == [1]
    assert "the blocks of int4:group=32,full do not fit 9 numbers" in found.failures[1].reason
