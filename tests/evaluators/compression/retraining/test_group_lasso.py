"""A group lasso that drives channels out, and the smaller networks without them."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.compression.retraining.group_lasso import (
    ChannelMasks,
    by_input,
    groups_sum,
    narrower,
    penalty_weight,
    shrunk,
    widen_network,
)
from dse_evaluators.compression.retraining.task_data import start
from dse_evaluators.workloads.layers import DIGITS_CNN
from dse_evaluators.workloads.network import LayerWeights, forward, stages


def tensors(affines):
    return [tensor for affine in affines for tensor in (affine.weight, affine.bias)]


@pytest.fixture
def affines():
    return start(DIGITS_CNN, seed=0)


@pytest.fixture
def silenced(affines):
    """Every third filter of every layer but the last has no weights and no bias."""
    return tuple(
        LayerWeights(
            affine.weight * (torch.arange(len(affine.weight)) % 3 > 0).reshape(-1, *shape),
            affine.bias,
        )
        for affine, shape in zip(affines, [(1, 1, 1)] * 3 + [(1,), (1,)], strict=True)
    )


@given(st.floats(0, 3), st.integers(0, 2**31))
def test_a_shrunk_group_minimises_distance_plus_length(by, seed):
    group = torch.randn(1, 5, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    ours = shrunk(group, by)

    def cost(point):
        return float(((point - group) ** 2).sum() / 2 + by * point.norm())

    chance = torch.Generator().manual_seed(seed + 1)
    near = ours + 1e-3 * torch.randn(50, 5, generator=chance, dtype=torch.float64)
    assert cost(ours) <= min(cost(point) for point in near) + 1e-12


def test_a_group_no_longer_than_the_step_is_zero_and_others_are_shorter_by_it():
    groups = torch.tensor([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    assert torch.allclose(shrunk(groups, 0.5), torch.tensor([[2.7, 3.6], [0, 0], [0, 0]]))


def test_the_penalty_is_its_share_of_the_first_loss_and_penalty():
    weight = penalty_weight(0.3, loss=2.3, groups=700.0)
    assert weight * 700.0 / (2.3 + weight * 700.0) == pytest.approx(0.3, rel=1e-12)


def test_the_first_inputs_and_the_last_outputs_are_not_penalised():
    one = (
        LayerWeights(torch.full((2, 1), 3.0), torch.zeros(2)),
        LayerWeights(torch.ones(1, 2), torch.zeros(1)),
    )
    # Two filters of length 3, two inputs of length 1.
    assert groups_sum(one) == pytest.approx(8)


def test_a_layer_after_flattening_has_several_inputs_of_a_channel():
    weight = torch.arange(12.0).reshape(2, 6)
    assert by_input(weight, 3).tolist() == [[0, 6, 1, 7], [2, 8, 3, 9], [4, 10, 5, 11]]


def test_channels_that_do_nothing_can_go_without_a_change(silenced):
    images = torch.rand(8, 1, 8, 8, generator=torch.Generator().manual_seed(5))
    small, _ = narrower(silenced, ChannelMasks.everything(silenced), 1e-4)
    whole = forward(stages(DIGITS_CNN), silenced, images)
    assert [len(affine.weight) for affine in small] == [21, 42, 42, 85, 10]
    assert torch.allclose(forward(stages(DIGITS_CNN), small, images), whole, atol=1e-5)


def test_what_a_dead_filters_bias_still_says_is_taken_into_the_next_layer():
    first = LayerWeights(torch.tensor([[1.0], [0.0]]), torch.tensor([0.0, 2.0]))
    last = LayerWeights(torch.tensor([[5.0, 7.0]]), torch.tensor([1.0]))
    (narrow, end), _ = narrower((first, last), ChannelMasks.everything((first, last)), 1e-4)
    assert narrow.weight.tolist() == [[1.0]]
    assert end.bias.tolist() == [1.0 + 7.0 * 2.0]


def test_a_network_made_smaller_twice_has_its_first_shape_back(silenced):
    kept = ChannelMasks.everything(silenced)
    small, kept = narrower(silenced, kept, 1e-4)
    small[1].weight[:5] = 0
    smaller, kept = narrower(small, kept, 1e-4)
    back = widen_network(smaller, kept)
    images = torch.rand(8, 1, 8, 8, generator=torch.Generator().manual_seed(6))
    said = forward(stages(DIGITS_CNN), smaller, images)
    assert [t.shape for t in tensors(back)] == [t.shape for t in tensors(silenced)]
    assert torch.allclose(forward(stages(DIGITS_CNN), back, images), said, atol=1e-5)


def test_the_strongest_channel_stays_whatever_the_threshold(affines):
    small, _ = narrower(affines, ChannelMasks.everything(affines), 1e6)
    assert [len(affine.weight) for affine in small] == [1, 1, 1, 1, 10]
