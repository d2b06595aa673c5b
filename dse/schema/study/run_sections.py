"""Sections of a study file on how it is run.

They are retries, resources, early stopping, thinking, and fidelity ladders: for a metric, cheaper
approximations of it in order of cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from dse.core.metric import FailureKind
from dse.core.problem import Problem, Source
from dse.errors import DseError, SpecError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.checkpoints import RETRIES
from dse.evaluation.early_stopping import Certain, Halving, Rule
from dse.protocols import AdjustsEffort
from dse.registry import load, names
from dse.schema.models import EarlySpec, OptimizerSpec, Quantity, ResourcesSpec, RetriesSpec
from dse.schema.space.parameters.domains import amount
from dse.schema.study.plugin_checks import Objects, knows_optimizer, load_optimizer
from dse.storage.patience import PATIENCE_S
from dse.units import units


def retries_of(spec: RetriesSpec) -> Mapping[FailureKind, int]:
    """Return the maximum number of retries for each kind of failure, stated or default."""
    stated: dict[FailureKind, int | None] = {
        "lost": spec.lost,
        "crashed": spec.crashed,
        "memory": spec.memory,
        "timeout": spec.timeout,
        "raised": spec.raised,
        "invalid": spec.invalid,
    }
    return {**RETRIES, **{kind: count for kind, count in stated.items() if count is not None}}


def patience_of(stated: Quantity | None) -> float:
    """Return the time in seconds for which a run waits for an unavailable storage.

    Args:
        stated: a time such as ``15 min``; a bare number is in seconds; 0 disables waiting.

    Raises:
        SpecError: the value is negative, or not a time.
    """
    if stated is None:
        return PATIENCE_S
    hint = "storage_patience: 15 min; 0 disables waiting"
    try:
        seconds = float(amount(stated, "s").value)
    except SpecError as error:
        raise SpecError(f"{stated!r} is no time to wait for a storage", hint=hint) from error
    if seconds < 0:
        raise SpecError(f"the time to wait for a storage is negative: {stated}", hint=hint)
    return seconds


def gpus_of(spec: ResourcesSpec) -> float:
    """Return the number of GPUs that an evaluator needs; below 1, the fraction of one GPU.

    Raises:
        SpecError: the number is above 1 and not whole.
    """
    gpu = spec.gpu or 0.0
    if gpu > 1 and gpu != int(gpu):
        raise SpecError(
            f"{gpu:g} GPUs cannot be given to one task",
            hint="state a fraction of one GPU, or a whole number",
        )
    return gpu


def memory_of(spec: ResourcesSpec) -> int:
    """Return the memory that an evaluator needs in bytes; 0 where none is stated.

    Raises:
        SpecError: the text is not a quantity in bytes, or not above zero.
    """
    if spec.memory is None:
        return 0
    try:
        memory = int(amount(spec.memory, "B").value)
    except SpecError as error:
        raise SpecError(f"{spec.memory!r} is not a memory size", hint="memory: 8 GiB") from error
    if memory <= 0:
        raise SpecError(f"{spec.memory!r} is not a positive memory size", hint="memory: 8 GiB")
    return memory


def check_exclusive(bound: Bound) -> None:
    """Raise SpecError if an exclusive evaluator is modelled.

    Only measurements can be disturbed by other processes.
    """
    if bound.evaluator.kind == "modelled":
        raise SpecError(
            f"{bound.name} is modelled: other programs cannot disturb its results",
            hint="remove 'exclusive'; it applies to measured evaluators",
        )


_HALVING = "early_stopping: {rule: successive-halving, rungs: [1, 3, 9]}"
_CERTAIN = "early_stopping: {rule: certain, worsens: [board.time], best: {train.loss: 0}}"


def early_of(spec: EarlySpec | None, problem: Problem) -> Rule | None:
    """Build a study's early stopping rule, ``None`` if it has none.

    Raises:
        SpecError: a key belongs to the other kind of rule, the steps do not ascend, or a name is
            not a measured metric of an objective or limit.
    """
    if spec is None:
        return None
    if spec.rule == "successive-halving":
        if not spec.rungs or spec.worsens or spec.best:
            raise SpecError("successive halving takes only steps, under 'rungs'", hint=_HALVING)
        if list(spec.rungs) != sorted(set(spec.rungs)):
            raise SpecError(f"the steps {spec.rungs} do not rise", hint=_HALVING)
        return Halving(eta=spec.eta, at=tuple(spec.rungs))
    if spec.rungs or not (spec.worsens or spec.best):
        raise SpecError("'certain' takes metrics in 'worsens' or 'best', not steps", hint=_CERTAIN)
    for name in (*spec.worsens, *spec.best):
        if name not in problem.measured:
            raise SpecError(
                f"no objective or limit reads a measured metric {name!r}",
                hint=nearest(name, problem.measured),
            )
    best = {name: _bound(bound, problem.metrics[name].unit) for name, bound in spec.best.items()}
    return Certain(worsens=frozenset(spec.worsens), best=best)


def _bound(quantity: Quantity, unit: str) -> float:
    """Convert a bound to the metric's unit, which a number without a unit already has."""
    return float(amount(quantity, unit or "1").value) / units.factor(unit)


_KEY = "thinking"
_AUTO = "auto"


def thinking_of(spec: OptimizerSpec) -> float | None:
    """Return the option ``thinking`` as a share of a measurement's cost; ``None`` if not set.

    Raises:
        SpecError: the value is not a number above zero, or has a unit.
    """
    if spec.thinking is None:
        return None
    try:
        share = float(amount(spec.thinking, "1").value)
    except SpecError as error:
        problem = f"{spec.thinking!r} is no share of the cost of a measurement"
        raise SpecError(problem, hint="thinking: 10 %", part=[_KEY]) from error
    if not share > 0:
        problem = f"thinking is {spec.thinking}, but must be above zero"
        raise SpecError(problem, hint="thinking: 10 %", part=[_KEY])
    return share


def check_thinking(spec: OptimizerSpec, problem: Problem | None, objects: Objects) -> None:
    """Check that the option ``thinking`` is valid and has an effect.

    Args:
        spec: the optimizer's settings.
        problem: the study's problem; ``None`` if it has errors.
        objects: the study's Python objects.

    Raises:
        SpecError: the option is not a share, the optimizer has a single level of effort, or nothing
            is measured.
    """
    if thinking_of(spec) is None:
        return
    if spec.use != _AUTO and knows_optimizer(spec.use, objects):
        optimizer = load_optimizer(spec.use, objects)
        if not isinstance(optimizer, AdjustsEffort):
            raise SpecError(
                f"thinking has no effect with the optimizer {spec.use!r}, which has no cheaper way",
                hint=f"remove it, or use one of: {', '.join(_adjustable())}",
                part=[_KEY],
            )
    if problem is not None and not problem.measured:
        raise SpecError(
            "thinking has no effect: objectives and limits read no measured metric",
            hint="remove it",
            part=[_KEY],
        )


def _adjustable() -> list[str]:
    """Return the names of the installed optimizers that have several levels of effort."""
    found = [_AUTO]
    for name in sorted(names("optimizers")):
        with suppress(DseError):  # it cannot be loaded here
            found += [name] if isinstance(load("optimizers", name), AdjustsEffort) else []
    return found


Ladders = Mapping[str, tuple[str, ...]]
Stages = Mapping[str, int]


def ladder_of(metric: str, rungs: Sequence[str], sources: Mapping[str, Source]) -> tuple[str, ...]:
    """Check a metric's fidelity ladder; return its fidelities, the cheapest first.

    The last fidelity is the metric itself; the others are cheaper approximations of it.

    Raises:
        SpecError: a metric is unknown or has a unit of another dimension, a rung is repeated, the
            metric itself is not the last rung, or the metric is modelled and so needs no ladder.
    """
    for rung in (metric, *rungs):
        if rung not in sources:
            raise SpecError(f"no evaluator provides {rung!r}", hint=nearest(rung, sources))
    if len(rungs) < 2 or rungs[-1] != metric or len(set(rungs)) < len(rungs):
        raise SpecError(
            f"the rungs of {metric} go from the cheapest to {metric} itself, each once",
            hint=f"{metric}: [proxy.accuracy, {metric}]",
        )
    unit = sources[metric].metric.unit
    for rung in rungs:
        if not units.same_dimension(sources[rung].metric.unit, unit):
            own = sources[rung].metric.unit or "no unit"
            raise SpecError(f"{rung} is in {own}, and {metric} in {unit or 'no unit'}")
    if sources[metric].kind == "modelled":
        raise SpecError(f"{metric} costs no measurement, so it needs no cheaper rungs")
    return tuple(rungs)


def stages_of(bound: Sequence[Bound], sources: Mapping[str, Source], ladders: Ladders) -> Stages:
    """Return the stage at which each evaluator runs, by label; empty if one stage is enough.

    A trial is evaluated stage by stage. The lowest measured fidelity of each metric runs at stage
    0, each higher fidelity one stage later. Measured evaluators without lower fidelities run at the
    last stage. A modelled evaluator runs as soon as its inputs are available.
    """
    dear = [
        [rung for rung in ladder if sources[rung].kind == "measured"] for ladder in ladders.values()
    ]
    top = max(map(len, dear), default=1) - 1
    if top == 0:
        return {}
    place: dict[str, int] = {}
    for rungs in dear:
        first = top if len(rungs) == 1 else 0
        place |= {rung: max(at, place.get(rung, 0)) for at, rung in enumerate(rungs, start=first)}
    at: dict[str, int] = {}
    stages = {}
    for one in bound:
        own_rungs = [place[name] for name in one.provides if name in place]
        own = 0 if one.evaluator.kind == "modelled" else min(own_rungs, default=top)
        stages[one.label] = max([own, *(at[name] for name in one.reads if name in at)])
        at |= dict.fromkeys(one.provides, stages[one.label])
    return stages
