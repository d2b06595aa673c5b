"""Environments of an agent: games of the Arcade Learning Environment, or a function of the user."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.workloads.own.own_function import OwnFunction, call_own

SIDE = 84
"""Rows and columns of a frame that the network sees (Mnih et al., 2015)."""

STACKED = 4
"""Frames that an observation consists of."""

_STARTS = 30
"""Most idle steps at the start of an episode; their number is random (Mnih et al., 2015)."""

Frame = NDArray[Any]


class Environment(Protocol):
    """One environment; an episode that ends starts anew by itself."""

    actions: int

    def step(self, action: int) -> tuple[float, bool]:
        """Take an action; return the reward and whether the episode ended."""
        ...

    def observe(self) -> Frame:
        """Return the last observation, as the environment has it."""
        ...


def find_games() -> Sequence[str]:
    """Return the names of the games that the installed package ``ale-py`` contains."""
    package = find_spec("ale_py")
    folders = [] if package is None else list(package.submodule_search_locations or [])
    return sorted(path.stem for one in folders for path in Path(one, "roms").glob("*.bin"))


def check_game(name: str, value: object) -> None:
    """Raise SpecError if the installed package has no such game."""
    known = find_games()
    if not isinstance(value, str) or (known and value not in known):
        raise SpecError(f"{name} cannot be {value!r}", hint=nearest(str(value), known))


class AtariGame:
    """A game of the Arcade Learning Environment, in frames of ``frame_skip`` emulated ones.

    A frame is the brighter of the last two emulated ones in each pixel.

    Source:
        Bellemare et al., 2013; Mnih et al., 2015.
    """

    def __init__(self, game: str, frame_skip: int, seed: int) -> None:
        # An extra, under the GPL: nothing else needs it.
        from ale_py import ALEInterface, LoggerMode, roms

        ALEInterface.setLoggerMode(LoggerMode.Error)
        self._game = ALEInterface()
        self._game.setInt("random_seed", seed)
        self._game.setFloat("repeat_action_probability", 0.0)
        self._game.setInt("frame_skip", 1)
        path = roms.get_rom_path(game)
        if path is None:
            raise EvaluationError(f"ale-py has no game {game!r}", hint=nearest(game, find_games()))
        self._game.loadROM(path)
        self._legal = self._game.getMinimalActionSet()
        self.actions = len(self._legal)
        self._skip = frame_skip
        self._rng = np.random.default_rng(seed)
        self._frame: Frame = self._game.getScreenGrayscale()
        self._begin()

    def step(self, action: int) -> tuple[float, bool]:
        reward = 0.0
        for left in reversed(range(self._skip)):
            reward += self._game.act(self._legal[action])
            if left == 1:
                self._frame = self._game.getScreenGrayscale()
        last = self._game.getScreenGrayscale()
        self._frame = last if self._skip == 1 else np.maximum(self._frame, last)
        ended = bool(self._game.game_over())
        if ended:
            self._begin()
        return reward, ended

    def observe(self) -> Frame:
        return self._frame

    def _begin(self) -> None:
        self._game.reset_game()
        for _ in range(int(self._rng.integers(0, _STARTS + 1))):
            self._game.act(self._legal[0])


class OwnEnvironment:
    """An environment of the user, with the calls of ``gymnasium.Env``."""

    def __init__(self, function: OwnFunction, seed: int) -> None:
        self._text = function.text
        self._made = function.call()
        try:
            self.actions = int(self._made.action_space.n)
        except (AttributeError, TypeError, ValueError) as error:
            raise EvaluationError(
                f"{self._text} returns an object without action_space.n",
                hint="return an environment with discrete actions, as gymnasium.make does",
            ) from error
        self._last: Frame = self._begin(seed)

    def step(self, action: int) -> tuple[float, bool]:
        found = self._call("step", lambda: self._made.step(action))
        if not isinstance(found, tuple) or len(found) != 5:
            hint = "return observation, reward, terminated, truncated, info, as gymnasium does"
            raise EvaluationError(f"step of {self._text} returns no five values", hint=hint)
        observation, reward, terminated, truncated, _ = found
        ended = bool(terminated or truncated)
        self._last = self._begin(None) if ended else np.asarray(observation)
        return float(reward), ended

    def observe(self) -> Frame:
        return self._last

    def _begin(self, seed: int | None) -> Frame:
        found = self._call("reset", lambda: self._made.reset(seed=seed))
        if not isinstance(found, tuple) or len(found) != 2:
            hint = "return observation, info, as gymnasium does"
            raise EvaluationError(f"reset of {self._text} returns no two values", hint=hint)
        return np.asarray(found[0])

    def _call(self, name: str, call: Callable[[], Any]) -> Any:
        return call_own(call, f"{name} of {self._text}")


@dataclass(slots=True, kw_only=True)
class EnvironmentSet:
    """n environments that are stepped together; their observations are tensors.

    Frames (two or three axes) are shown as the last four, in grey and of 84 x 84 pixels; vectors
    are shown as they are.
    """

    members: Sequence[Environment]
    shown: deque[Any]

    @staticmethod
    def of(make: Callable[[int], Environment], count: int) -> EnvironmentSet:
        """Make ``count`` environments, each with its own seed.

        Raises:
            EvaluationError: observations have more than three axes.
        """
        members = [make(seed) for seed in range(count)]
        first = _shown([one.observe() for one in members])
        frames = STACKED if first.ndim == 3 else 1
        return EnvironmentSet(members=members, shown=deque([first] * frames, maxlen=frames))

    @property
    def actions(self) -> int:
        return self.members[0].actions

    def observations(self) -> Any:
        """Return the observations: (n, 4, 84, 84) of integers, or (n, d) of floats."""
        import torch

        if self.shown.maxlen == 1:
            return self.shown[0]
        return torch.stack(list(self.shown), dim=1)

    def step(self, actions: Sequence[int]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Take an action in each environment; return the rewards and the ends, each (n,)."""
        found = [one.step(action) for one, action in zip(self.members, actions, strict=True)]
        self.shown.append(_shown([one.observe() for one in self.members]))
        rewards, ends = zip(*found, strict=True)
        return np.array(rewards, np.float32), np.array(ends, np.bool_)


def _shown(frames: Sequence[Frame]) -> Any:
    """Return what the network is shown of n observations: (n, 84, 84) or (n, d)."""
    import torch

    together = np.stack(frames)
    if together.ndim <= 2:
        return torch.from_numpy(together.reshape(len(frames), -1).astype(np.float32))
    if together.ndim == 4:
        together = together.mean(axis=3)
    if together.ndim != 3:
        hint = "flatten it, or return a frame: rows, columns and colours"
        raise EvaluationError(f"an observation has {together.ndim - 1} axes", hint=hint)
    grey = torch.from_numpy(together.astype(np.float32))
    small = torch.nn.functional.interpolate(grey[:, None], size=(SIDE, SIDE), mode="area")
    return small[:, 0].to(torch.uint8)
