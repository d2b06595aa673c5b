"""Rates of environments: V-trace against its definition, files of the user, and refusals."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.scaling.rollouts.actor_critic import ActorCritic, correct
from dse_evaluators.scaling.rollouts.environment_rates import EnvironmentRates
from dse_evaluators.scaling.rollouts.game_environments import EnvironmentSet, check_game

CORRIDOR = """
from types import SimpleNamespace

class Corridor:
    action_space = SimpleNamespace(n=2)

    def reset(self, seed=None):
        self.place = 0
        return [0.0, 1.0], {}

    def step(self, action):
        self.place += 1
        return [float(self.place), 1.0], float(action), self.place == 4, False, {}

class Bare(Corridor):
    def step(self, action):
        return [0.0, 1.0]

class Nameless:
    pass
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "corridor.py"
    path.write_text(CORRIDOR)
    return path


def measure(environment, *designs, **options):
    evaluator = EnvironmentRates(environment={"python": environment}, limit=1e-3, **options)
    return evaluator.evaluate(Batch.of(list(designs)))


def drawn(seed=0, times=6, count=3):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(times + 1, count))
    rewards = rng.normal(size=(times, count))
    discounts = 0.9 * (rng.random((times, count)) > 0.2)
    return values, rewards, discounts, rng.uniform(0.2, 2, (times, count))


def test_targets_of_actions_by_the_same_policy_are_returns():
    values, rewards, discounts, ratios = map(torch.from_numpy, drawn())
    found = correct(torch.ones_like(ratios), rewards, discounts, values)
    later, returns = values[-1], []
    for reward, discount in zip(reversed(rewards), reversed(discounts), strict=True):
        later = reward + discount * later
        returns.append(later)
    assert torch.allclose(found.targets, torch.stack(returns[::-1]))
    assert torch.allclose(found.advantages, found.targets - values[:-1])


def test_targets_are_the_sum_of_the_definition():
    values, rewards, discounts, ratios = drawn(1)
    found = correct(*map(torch.from_numpy, (ratios, rewards, discounts, values)))
    bounded = np.minimum(ratios, 1)
    surprises = bounded * (rewards + discounts * values[1:] - values[:-1])
    for start in range(len(rewards)):
        total = values[start].copy()
        for time in range(start, len(rewards)):
            between = (discounts[start:time] * bounded[start:time]).prod(axis=0)
            total += between * surprises[time]
        assert found.targets[start].numpy() == pytest.approx(total)


def test_network_of_frames_has_the_published_parameters():
    network = ActorCritic((4, 84, 84), 6)
    counts = [sum(p.numel() for p in layer.parameters()) for layer in network.body]
    assert [one for one in counts if one] == [8224, 32832, 36928, 1606144]


def test_own_environment_is_measured(own):
    found = measure(f"{own}:Corridor", {"envs": 6, "batches": 3, "n_steps": 6})
    assert not found.failures
    row = {name: float(column[0]) for name, column in found.columns.items()}
    assert row["lag"] == (0 + 0 + 1 + 1 + 2 + 2) / 6
    assert (row["steps_per_update"], row["update_samples"]) == (2, 12)
    assert row["stored"] == 7 * 6 * 2 * 4
    assert row["emulation_share"] + row["inference_share"] + row["training_share"] == (
        pytest.approx(1)
    )
    assert row["updates"] > 0


def test_random_actions_need_no_updates(own):
    found = measure(f"{own}:Corridor", {"envs": 6}, load="emulation")
    assert found.columns["updates"].tolist() == [0]
    assert found.columns["training_share"].tolist() == [0]


@pytest.mark.parametrize(
    ("design", "part"),
    [
        ({"envs": 5, "batches": 2, "n_steps": 4}, "do not divide envs = 5"),
        ({"envs": 4, "batches": 2, "n_steps": 5}, "do not divide n_steps = 5"),
    ],
)
def test_unequal_batches_are_infeasible(own, design, part):
    (failure,) = measure(f"{own}:Corridor", design).failures.values()
    assert (failure.kind, part in failure.reason) == ("infeasible", True)


@pytest.mark.parametrize(
    ("name", "design", "part"),
    [
        ("Bare", {"envs": 2}, "returns no five values"),
        ("Nameless", {"envs": 2}, "without action_space.n"),
        ("Corridor", {"envs": 2, "game": "pong"}, "game has no effect"),
        ("Corridor", {"envs": 2, "load": "inference", "batches": 2}, "batches has no effect"),
    ],
)
def test_faults_are_one_message(own, name, design, part):
    (failure,) = measure(f"{own}:{name}", design).failures.values()
    assert (failure.kind, part in failure.reason) == ("raised", True)


def test_options_are_checked(own):
    with pytest.raises(SpecError, match="defines no 'Coridor'") as found:
        EnvironmentRates(environment={"python": f"{own}:Coridor"})
    assert "Corridor" in found.value.hint
    with pytest.raises(PluginError, match="environment is"):
        EnvironmentRates(environment=str(own))
    with pytest.raises(SpecError, match="frame_skip has no effect"):
        EnvironmentRates(environment={"python": f"{own}:Corridor"}, frame_skip=4)
    with pytest.raises(PluginError, match="clock cannot be"):
        EnvironmentRates(clock="cpu")


def test_frames_in_colour_are_shown_in_grey_and_four_at_a_time():
    class Screen:
        actions = 2
        shade = 40

        def step(self, _):
            self.shade += 10
            return 0.0, False

        def observe(self):
            return np.full((168, 252, 3), self.shade, np.uint8)

    together = EnvironmentSet.of(lambda _: Screen(), 2)
    together.step([0, 1])
    shown = together.observations()
    assert shown.shape == (2, 4, 84, 84)
    assert shown[1, :, 83, 0].tolist() == [40, 40, 40, 50]


def test_a_game_that_does_not_exist_has_a_near_name():
    pytest.importorskip("ale_py")
    with pytest.raises(SpecError, match="game cannot be 'pongg'") as found:
        check_game("game", "pongg")
    assert "pong" in found.value.hint


def test_equal_seeds_give_equal_games_and_the_skip_is_emulated_frames():
    pytest.importorskip("ale_py")
    from dse_evaluators.scaling.rollouts.game_environments import AtariGame

    first, second, other = (AtariGame("breakout", 4, seed) for seed in (3, 3, 4))
    played = [[one.step(place % one.actions) for place in range(50)] for one in (first, second)]
    other.step(0)
    assert played[0] == played[1]
    assert np.array_equal(first.observe(), second.observe())
    assert first.observe().shape == (210, 160)
