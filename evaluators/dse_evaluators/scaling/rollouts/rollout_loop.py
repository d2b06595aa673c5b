"""The loop that steps environments, chooses actions and updates a network, with its times."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from dse.core.values import Floats
from dse.evaluation.timing.median_interval import median_error
from dse_evaluators.scaling.rollouts.actor_critic import Learner, Steps
from dse_evaluators.scaling.rollouts.game_environments import EnvironmentSet

PHASES = ("emulation", "inference", "training")
"""Phases of the loop; a load runs the phases up to that of its name."""

_LEAST = 2
"""Least readings of a cycle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutPlan:
    """Load of the loop, and how steps are grouped into updates."""

    load: str
    batches: int
    n_steps: int

    @property
    def steps_per_update(self) -> int:
        return self.n_steps // self.batches


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutTimes:
    """Readings of cycles of ``n_steps`` steps: seconds of each phase, (r, 3), and updates."""

    seconds: Floats
    updates: int

    @property
    def cycle(self) -> tuple[float, float]:
        """Median seconds of a cycle, and their standard error."""
        taken = self.seconds.sum(axis=1)
        return float(np.median(taken)), median_error(taken)

    @property
    def shares(self) -> Floats:
        """Shares of the phases in the time, (3,)."""
        together = self.seconds.sum(axis=0)
        return together / together.sum()


@dataclass(kw_only=True)
class Rollout:
    """State of the loop."""

    environments: EnvironmentSet
    plan: RolloutPlan
    clock: Callable[[], float]
    spent: Floats = field(default_factory=lambda: np.zeros(len(PHASES)))
    steps: int = 0
    updates: int = 0

    def __post_init__(self) -> None:
        self._seen = self.environments.observations()
        self._chance = torch.Generator().manual_seed(0)
        self._learner = Learner(self._seen.shape[1:], self.environments.actions)
        self._kept: deque[tuple[Any, ...]] = deque(maxlen=self.plan.n_steps)

    def run_cycle(self) -> None:
        """Step each environment ``n_steps`` times, with the updates that are due."""
        for _ in range(self.plan.n_steps):
            self._step()

    def _step(self) -> None:
        begun = self.clock()
        if self.plan.load == "emulation":
            count = len(self.environments.members)
            shape = (count,)
            chosen = torch.randint(self.environments.actions, shape, generator=self._chance)
            likelihoods = torch.zeros(count)
        else:
            chosen, likelihoods = self._learner.choose(self._seen, self._chance)
        decided = self.clock()
        rewards, ends = self.environments.step(chosen.tolist())
        before, self._seen = self._seen, self.environments.observations()
        stepped = self.clock()
        self.spent[:2] += stepped - decided, decided - begun
        self.steps += 1
        if self.plan.load == "training":
            self._kept.append(
                (before, chosen, likelihoods, torch.from_numpy(rewards), torch.from_numpy(ends))
            )
            self._update_when_due()
            self.spent[2] += self.clock() - stepped

    def _update_when_due(self) -> None:
        """Update from the last ``n_steps`` steps of the environments of the next batch."""
        plan = self.plan
        if len(self._kept) < plan.n_steps or self.steps % plan.steps_per_update:
            return
        width = len(self.environments.members) // plan.batches
        first = self.updates % plan.batches * width
        part = slice(first, first + width)
        seen, actions, likelihoods, rewards, ends = zip(*self._kept, strict=True)
        self._learner.update(
            Steps(
                observations=torch.stack([one[part] for one in (*seen, self._seen)]),
                actions=torch.stack([one[part] for one in actions]),
                likelihoods=torch.stack([one[part] for one in likelihoods]),
                rewards=torch.stack([one[part] for one in rewards]),
                ends=torch.stack([one[part] for one in ends]),
            )
        )
        self.updates += 1


def time_rollout(
    environments: EnvironmentSet, plan: RolloutPlan, clock: str, limit_s: float
) -> RolloutTimes:
    """Time cycles of the loop after a first one, until the limit, and two at least."""
    read = time.process_time if clock == "processor" else time.perf_counter
    loop = Rollout(environments=environments, plan=plan, clock=read)
    loop.run_cycle()
    begun, readings, earlier = read(), list[Floats](), loop.updates
    while len(readings) < _LEAST or read() - begun < limit_s:
        loop.spent = np.zeros(len(PHASES))
        loop.run_cycle()
        readings.append(loop.spent)
    return RolloutTimes(seconds=np.array(readings), updates=loop.updates - earlier)
