"""An actor-critic network, and its updates from steps that an older policy chose (V-trace)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

_DISCOUNT = 0.99
_ENTROPY = 0.01
_VALUE = 0.5
_RATE = 1e-4
_NORM = 0.5


class ActorCritic(nn.Module):
    """Logits of the actions and value of n observations, (n, actions) and (n,).

    Frames have the convolutions of Mnih et al. (2015); vectors have two layers of 64.
    """

    def __init__(self, observation: Sequence[int], actions: int) -> None:
        super().__init__()
        self.sees_frames = len(observation) == 3
        body: list[nn.Module]
        if self.sees_frames:
            body = [
                *(nn.Conv2d(observation[0], 32, 8, 4), nn.ReLU()),
                *(nn.Conv2d(32, 64, 4, 2), nn.ReLU()),
                *(nn.Conv2d(64, 64, 3, 1), nn.ReLU(), nn.Flatten()),
                *(nn.Linear(64 * 7 * 7, 512), nn.ReLU()),
            ]
            width = 512
        else:
            width = 64
            body = [nn.Linear(observation[0], 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh()]
        self.body = nn.Sequential(*body)
        self.policy = nn.Linear(width, actions)
        self.value = nn.Linear(width, 1)

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        shown = observations.float() / 255 if self.sees_frames else observations
        features = self.body(shown)
        return self.policy(features), self.value(features)[:, 0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """T steps of n environments, for an update.

    ``likelihoods`` are the logarithms of the probabilities with which the actions were chosen.
    """

    observations: Tensor  # (T + 1, n, ...)
    actions: Tensor  # (T, n)
    likelihoods: Tensor  # (T, n)
    rewards: Tensor  # (T, n)
    ends: Tensor  # (T, n)


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """Targets of the values, and advantages of the actions, each (T, n)."""

    targets: Tensor
    advantages: Tensor


def correct(ratios: Tensor, rewards: Tensor, discounts: Tensor, values: Tensor) -> Corrected:
    """Return the targets and advantages of V-trace, with both bounds of the ratios at 1.

    Args:
        ratios: probabilities of the actions now, divided by those with which they were chosen,
            (T, n).
        rewards: (T, n).
        discounts: (T, n); 0 where an episode ended.
        values: of the observations, and of the one after the last step, (T + 1, n).

    Source:
        Espeholt et al., IMPALA, 2018, equation 1 and section 4.2.
    """
    bounded = ratios.clamp(max=1)
    surprises = bounded * (rewards + discounts * values[1:] - values[:-1])
    later = torch.zeros_like(values[0])
    above = list[Tensor]()
    for time in reversed(range(len(rewards))):
        later = surprises[time] + discounts[time] * bounded[time] * later
        above.append(later)
    targets = values[:-1] + torch.stack(above[::-1])
    after = torch.cat([targets[1:], values[-1:]])
    return Corrected(
        targets=targets, advantages=bounded * (rewards + discounts * after - values[:-1])
    )


class Learner:
    """A network with its optimizer."""

    def __init__(self, observation: Sequence[int], actions: int) -> None:
        torch.manual_seed(0)
        self.network = ActorCritic(observation, actions)
        self._optimizer = torch.optim.Adam(self.network.parameters(), lr=_RATE)

    @torch.no_grad()
    def choose(self, observations: Tensor, chance: torch.Generator) -> tuple[Tensor, Tensor]:
        """Draw an action for each observation; return them with log-probabilities, each (n,)."""
        logits, _ = self.network(observations)
        chosen = torch.multinomial(logits.softmax(-1), 1, generator=chance)
        return chosen[:, 0], logits.log_softmax(-1).gather(1, chosen)[:, 0]

    def update(self, steps: Steps) -> None:
        """Take a gradient step on policy, value and entropy."""
        count, width = steps.actions.shape
        logits, values = self.network(steps.observations.flatten(0, 1))
        logarithms = logits.reshape(count + 1, width, -1)[:-1].log_softmax(-1)
        values = values.reshape(count + 1, width)
        now = logarithms.gather(2, steps.actions[..., None])[..., 0]
        with torch.no_grad():
            ratios = (now - steps.likelihoods).exp()
            discounts = _DISCOUNT * (~steps.ends).float()
            wanted = correct(ratios, steps.rewards, discounts, values)
        entropy = -(logarithms.exp() * logarithms).sum(-1).mean()
        error = (wanted.targets - values[:-1]).square().mean()
        loss: Any = _VALUE * error - (wanted.advantages * now).mean() - _ENTROPY * entropy
        self._optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), _NORM)
        self._optimizer.step()
