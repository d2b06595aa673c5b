"""Networks by parameters: they have the products and parameters that torch counts."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from dse_evaluators.workloads.catalogue import layers_of, table_of

CELLS = {"rnn": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}


@given(
    layers=st.sampled_from([4, 8, 16, 32, 64, 128]),
    nodes=st.sampled_from([32, 64, 128, 8192]),
    inputs=st.sampled_from([2000, 8000]),
    outputs=st.sampled_from([200, 1000]),
    batch=st.sampled_from([1, 64, 16384]),
)
def test_a_dense_network_takes_the_products_of_the_papers_formula(
    layers, nodes, inputs, outputs, batch
):
    # the published generator: batch * (node^2 (layer - 1) + node input + node output)
    sizes = f"layers={layers},nodes={nodes},input={inputs},output={outputs},batch={batch}"
    table = table_of(f"paradnn-fc:{sizes}")
    per_input = nodes * nodes * (layers - 1) + nodes * inputs + nodes * outputs
    assert table.macs == batch * per_input
    assert table.parameters == per_input + nodes * layers + outputs


@pytest.mark.parametrize("cell", CELLS)
@pytest.mark.parametrize(("layers", "embed"), [(1, 100), (5, 36)])
def test_a_recurrent_network_has_the_parameters_of_torchs(cell, layers, embed):
    with torch.device("meta"):
        theirs = CELLS[cell](embed, embed, layers)
        rest = nn.ModuleList([nn.Embedding(32, embed), nn.Linear(embed, 32)])
    # torch has two biases for each gate where one is enough
    surplus = sum(x.numel() for name, x in theirs.named_parameters() if "bias_hh" in name)
    counted = sum(x.numel() for x in [*theirs.parameters(), *rest.parameters()])
    table = table_of(f"paradnn-rnn:cell={cell},layers={layers},embed={embed},vocabulary=32")
    assert table.parameters == counted - surplus


@given(length=st.integers(1, 200), batch=st.integers(1, 64))
def test_a_recurrent_network_multiplies_by_all_weights_at_every_step(length, batch):
    table = table_of(f"paradnn-rnn:length={length},batch={batch}")
    assert table.macs == length * batch * table.weights
    assert table.lookups[0].picked == length * batch


def test_four_stages_of_the_blocks_of_resnet50_are_its_like():
    found = layers_of("paradnn-cnn:block=bottleneck,blocks=3,filters=64,input=224")
    published = {layer.name: layer for layer in layers_of("resnet50-v1.5")}
    same = [layer for layer in found if published.get(layer.name) == layer]
    assert len(same) == 1 + 4 * (3 * 3 + 1) + 1


@pytest.mark.parametrize("side", [100, 161, 300])
def test_the_images_shrink_as_torchs_do(side):
    strides = nn.Sequential(
        nn.Conv2d(3, 8, 7, 2, 3), nn.MaxPool2d(3, 2, 1), *(nn.Conv2d(8, 8, 3, 2, 1),) * 3
    )
    with torch.inference_mode():
        smallest = strides[:2](torch.zeros(1, 3, side, side))
        for stride in strides[2:]:
            smallest = stride(smallest)
    *_, convolution, _ = layers_of(f"paradnn-cnn:blocks=2,filters=8,input={side}")
    assert convolution.output_height == smallest.shape[-1]


@pytest.mark.parametrize("block", ["residual", "bottleneck"])
def test_each_first_block_projects(block):
    found = layers_of(f"paradnn-cnn:block={block},blocks=2")
    shortcuts = [layer.name for layer in found if layer.name.endswith("shortcut")]
    assert shortcuts == [f"stage{stage}-0-shortcut" for stage in (2, 3, 4, 5)]


@pytest.mark.parametrize("block", ["residual", "bottleneck"])
def test_twice_the_filters_are_four_times_the_products_between_them(block):
    narrow, wide = (
        layers_of(f"paradnn-cnn:block={block},filters={filters}") for filters in (16, 32)
    )
    inner = [(one.macs, other.macs) for one, other in zip(narrow, wide, strict=True)][1:-1]
    assert all(4 * one == other for one, other in inner)


def test_a_latent_image_of_half_the_side_takes_a_quarter_of_the_convolutions():
    whole, half = (
        sum(x.macs for x in layers_of(f"sd-unet:latent={side}") if x.filter_height == 3)
        for side in (64, 32)
    )
    assert whole == 4 * half


def test_a_latent_image_of_half_the_side_takes_a_sixteenth_of_looking_at_itself():
    whole, half = (
        sum(x.macs for x in layers_of(f"sd-unet:latent={side}") if x.name.endswith("self-scores"))
        for side in (64, 32)
    )
    assert whole == 16 * half


def test_pruning_keeps_the_ends_of_a_stack_and_what_is_added_to_something_else():
    sides = {(x.name, x.pruned_inputs, x.pruned_outputs) for x in layers_of("paradnn-fc:layers=2")}
    assert sides == {("fc0", False, True), ("fc1", True, True), ("fc2", True, False)}
    (alone,) = [x for x in layers_of("sd-unet") if x.name == "conv-in"]
    assert (alone.pruned_inputs, alone.pruned_outputs) == (False, False)
