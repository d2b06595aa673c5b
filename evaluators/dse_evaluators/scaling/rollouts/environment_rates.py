"""Evaluator ``training.environments``: environments of an agent and its updates, timed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError, SpecError, nearest
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.call_clock import CLOCKS
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading, one_of
from dse_evaluators.scaling.rollouts.game_environments import (
    AtariGame,
    Environment,
    EnvironmentSet,
    OwnEnvironment,
    check_game,
)
from dse_evaluators.workloads.own.own_function import OwnFunction

LOADS = ("emulation", "inference", "training")
_OF_GAMES = ("game", "frame_skip")
_OF_TRAINING = ("batches", "n_steps")
_INPUTS: Mapping[str, Reading] = {
    "load": one_of(LOADS, "training"),
    "envs": NumberInput(1, 1 << 16, whole=True),
    "batches": NumberInput(1, 1 << 16, default=1, whole=True),
    "n_steps": NumberInput(1, 1 << 12, default=5, whole=True),
    "game": CheckedInput(check_game, "pong"),
    "frame_skip": NumberInput(1, 64, default=4, whole=True),
}
_METRICS = (
    Metric(name="rate", unit="Hz", goal="maximize"),
    Metric(name="updates", unit="Hz", goal="maximize"),
    Metric(name="emulation_share"),
    Metric(name="inference_share"),
    Metric(name="training_share"),
    Metric(name="lag", goal="minimize"),
    Metric(name="steps_per_update"),
    Metric(name="update_samples"),
    Metric(name="stored", unit="B", goal="minimize"),
)


class EnvironmentRates(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Rate at which environments generate steps here, and at which an agent learns from them.

    All environments are stepped together. With the load ``emulation`` their actions are random,
    with ``inference`` a network chooses them, and with ``training`` the network is updated, too, by
    an actor-critic with V-trace. The environments are divided into ``batches``; an update uses the
    last ``n_steps`` steps of the environments of one batch, and batches take turns, so that each
    step is used once. A design is infeasible if ``batches`` divides ``envs`` or ``n_steps`` with a
    remainder.

    ``rate`` counts steps of all environments, each of which is ``frame_skip`` emulated frames in a
    game; ``updates`` are those a second. ``lag`` is the mean number of updates between the choice
    of an action and the update that uses it. ``stored`` are the bytes of the observations that are
    kept for updates.

    Args:
        environment: your environment: ``{python: env.py:make}``, a function that returns an object
            with ``reset``, ``step`` and ``action_space.n`` as gymnasium's; by default a game of the
            Arcade Learning Environment, by the extra ``games``.
        clock: ``wall``, or ``processor`` for processor time, to which other programs add little.
        limit: time limit of the timing of a design: seconds, or a text such as ``5 s``.

    Inputs:
        load: ``emulation``, ``inference`` or ``training``.
        envs: number of environments.
        batches: parts of the environments, one for each update in turn; only with ``training``.
        n_steps: steps of an environment in an update; only with ``training``.
        game: a game, such as ``pong``.
        frame_skip: emulated frames of a step, which repeat its action.

    Limits:
        One process and one thread of the processor. Scores are not measured. The network has the
        convolutions of Mnih et al. for frames of 84 x 84 pixels, or two layers of 64 for vectors.

    Error:
        The standard error of ``rate`` is of the median of cycles of ``n_steps`` steps.

    Source:
        Dalton, Frosio, Garland, 2019 (arXiv 1907.08467: loads and batches); Espeholt et al., 2018
        (V-trace); Bellemare et al., 2013 (the games).

    Example:
        options: {limit: 50 ms, game: pong}
        parameters: {envs: [4, 8], batches: [1, 2], n_steps: [2]}
        objectives: {rate: maximize, lag: minimize}

    Raises:
        PluginError: an option is invalid.
        SpecError: the function or the game does not exist.
    """

    user_options: ClassVar[Sequence[str]] = ("environment",)

    environment: Mapping[str, str] | None = None
    load: str | None = None
    envs: int | None = None
    batches: int | None = None
    n_steps: int | None = None
    game: str | None = None
    frame_skip: int | None = None
    clock: str = "wall"
    limit: float | str = "2 s"

    def __post_init__(self) -> None:
        if self.clock not in CLOCKS:
            hint = nearest(str(self.clock), CLOCKS)
            raise PluginError(f"clock cannot be {self.clock!r}", hint=hint, part=["clock"])
        self._limit_s = seconds_of("limit", self.limit)
        self._own = _own_function(self.environment)
        self.starts: tuple[str, ...] = () if self._own is None else (self._own.text,)
        if self._own is not None:
            self.version = f"{type(self).version}-{self._own.edition}"
            for name in _OF_GAMES:
                if getattr(self, name) is not None:
                    problem = f"{name} has no effect on an environment of yours"
                    raise SpecError(problem, hint="leave it out", part=[name])
        super().__post_init__()

    @property
    def missing(self) -> str:
        """Reason why the evaluator cannot run here; empty if it can."""
        if self._own is None and find_spec("ale_py") is None:
            return "it needs the package ale-py: pip install 'dse-engine[games]'"
        return ""

    def evaluate(self, batch: Batch) -> Metrics:
        """Time n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=("rate",))

    def _measure(self, design: Mapping[str, Value]) -> Found:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.scaling.rollouts.rollout_loop import RolloutPlan, time_rollout
        from dse_evaluators.workloads.torch_scope import one_thread

        table = self.readings
        chosen = {**table.defaults, **design, **table.settled}
        self._check_effects(design, str(chosen["load"]))
        envs, batches, n_steps = (int(chosen[name]) for name in ("envs", "batches", "n_steps"))
        trains = chosen["load"] == "training"
        if trains:
            _check_division(envs, batches, n_steps)
        plan = RolloutPlan(load=str(chosen["load"]), batches=batches, n_steps=n_steps)
        with one_thread():
            together = EnvironmentSet.of(self._maker(chosen), envs)
            found = time_rollout(together, plan, self.clock, self._limit_s)
        cycle_s, stderr_s = found.cycle
        rate, spu = envs * n_steps / cycle_s, plan.steps_per_update
        return Found(
            values={
                "rate": rate,
                "updates": found.updates / float(found.seconds.sum()),
                **dict(zip((f"{one}_share" for one in LOADS), found.shares.tolist(), strict=True)),
                "lag": sum(age // spu for age in range(n_steps)) / n_steps if trains else 0.0,
                "steps_per_update": float(spu if trains else 0),
                "update_samples": float(envs // batches * n_steps if trains else 0),
                "stored": float(_stored_bytes(together, n_steps if trains else 0)),
            },
            errors={"rate": rate * stderr_s / cycle_s},
        )

    def _maker(self, chosen: Mapping[str, Value]) -> Callable[[int], Environment]:
        if self._own is not None:
            return partial(OwnEnvironment, self._own)
        if self.missing:
            raise EvaluationError(self.missing)
        return partial(AtariGame, str(chosen["game"]), int(chosen["frame_skip"]))

    def _check_effects(self, design: Mapping[str, Value], load: str) -> None:
        """Raise EvaluationError for an input that has no effect in a design."""
        if self._own is not None:
            for name in _OF_GAMES:
                if name in design:
                    problem = f"{name} has no effect on an environment of yours"
                    raise EvaluationError(problem, hint="remove it from the space")
        for name in _OF_TRAINING:
            if load != "training" and (name in design or name in self.readings.settled):
                hint = f"write {name}: {{..., when: load == 'training'}} in the space"
                raise EvaluationError(f"{name} has no effect on the load {load}", hint=hint)


def _own_function(given: object) -> OwnFunction | None:
    """Return the function of the option ``environment``, if it is given.

    Raises:
        PluginError: the option is no ``{python: FILE.py:function}``.
        SpecError: the file or the function does not exist.
    """
    if given is None:
        return None
    if not isinstance(given, Mapping) or list(given) != ["python"]:
        hint = "as in environment: {python: env.py:make}"
        raise PluginError(f"environment is {given!r}", hint=hint, part=["environment"])
    try:
        return OwnFunction.of(given["python"])
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=["environment"]) from error


def _check_division(envs: int, batches: int, n_steps: int) -> None:
    """Raise InfeasibleError if batches of environments or of steps are not equal."""
    for name, value in (("envs", envs), ("n_steps", n_steps)):
        if value % batches:
            raise InfeasibleError(f"{batches} batches do not divide {name} = {value}")


def _stored_bytes(together: EnvironmentSet, n_steps: int) -> int:
    """Return the bytes of the observations that updates keep."""
    shown = together.observations()
    return int(shown.numel() * shown.element_size() * (n_steps + 1)) if n_steps else 0
