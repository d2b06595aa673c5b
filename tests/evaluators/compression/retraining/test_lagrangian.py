"""Learning and compression in turns: the schedule, both steps, and what comes of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from dse_evaluators.compression.retraining.lagrangian import MU_CAP, Pair, mu_schedule
from dse_evaluators.compression.retraining.magnitude import cubic_density


@pytest.fixture
def weights():
    chance = torch.Generator().manual_seed(4)
    return [torch.randn(2, 2, generator=chance), torch.randn(3, 1, generator=chance)]


def flat(tensors):
    return torch.cat([tensor.detach().ravel() for tensor in tensors]).double().numpy()


def test_the_pull_grows_as_condensas_defaults_say():
    # 1e-3, times 1.1 after each of 35 steps: NVlabs/condensa, notebooks; 1.1 ** 34 = 25.5477.
    schedule = mu_schedule(1e-3, 1.1, 35)
    assert len(schedule) == 35
    assert schedule[0] == 1e-3
    assert schedule[34] == pytest.approx(0.0255477, rel=1e-5)
    assert np.diff(np.log(schedule)) == pytest.approx(np.log(1.1))


def test_the_pull_stays_at_its_cap():
    assert mu_schedule(1.0, 10.0, 7)[4:] == [MU_CAP] * 3


def test_the_compression_step_gives_the_nearest_weights_of_so_few_non_zeros(weights):
    pair = Pair(weights, density=3 / 7)
    whole = flat(weights)
    supports = [list(chosen) for chosen in itertools.combinations(range(7), 3)]
    away = [np.delete(whole, chosen) @ np.delete(whole, chosen) for chosen in supports]
    ours = flat(pair.cut)
    assert np.count_nonzero(ours) == 3
    assert ((whole - ours) ** 2).sum() == pytest.approx(min(away))


def test_the_compression_step_cuts_the_weights_less_the_multipliers_over_mu(weights):
    pair = Pair(weights, density=3 / 7)
    pair.multipliers = [-8.0 * weight for weight in weights]
    pair.compress(mu=2.0)
    # w - lambda / mu = w + 4 w: the same places, five times the value.
    assert flat(pair.cut) == pytest.approx(5 * flat(Pair(weights, density=3 / 7).cut), rel=1e-6)


def test_the_multipliers_move_by_mu_times_what_is_between(weights):
    pair = Pair(weights, density=3 / 7)
    pair.compress(mu=2.0)
    assert flat(pair.multipliers) == pytest.approx(-2 * (flat(weights) - flat(pair.cut)), abs=1e-6)


def test_the_learning_step_is_pulled_by_mu_times_the_distance_less_the_multipliers(weights):
    leaves = [weight.clone().requires_grad_() for weight in weights]
    pair = Pair(leaves, density=3 / 7)
    pair.multipliers = [torch.full_like(weight, 0.25) for weight in weights]
    for leaf in leaves:
        leaf.grad = torch.ones_like(leaf)
    pair.pulled(mu=3.0).pull(0)
    expected = 1 + 3 * (flat(leaves) - flat(pair.cut)) - 0.25
    assert flat([leaf.grad for leaf in leaves]) == pytest.approx(expected, rel=1e-6)


def test_gradual_pruning_begins_with_all_weights_and_ends_with_its_share():
    # Zhu, Gupta, 2017, eq. 1: sparsity s (1 - (1 - p) ** 3); half way 7/8 of it is there.
    densities = [cubic_density(0.2, progress) for progress in (0.0, 0.5, 1.0)]
    assert densities == pytest.approx([1.0, 1 - 0.8 * 7 / 8, 0.2])
