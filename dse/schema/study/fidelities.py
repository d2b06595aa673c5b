"""Fidelity ladders of a study: for a metric, cheaper approximations of it in order of cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.problem import Source
from dse.errors import SpecError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.units import units

Ladders = Mapping[str, tuple[str, ...]]
Stages = Mapping[str, int]


def ladder_of(metric: str, rungs: Sequence[str], sources: Mapping[str, Source]) -> tuple[str, ...]:
    """Check a metric's fidelity ladder; return its rungs, cheapest first, the metric last.

    The rungs are approximations of the metric at lower fidelity.

    Raises:
        SpecError: a metric is unknown or has a unit of another dimension, a rung is repeated, the
            metric itself is not the last rung, or it is modelled and so needs no ladder.
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

    A trial is evaluated stage by stage. The lowest measured rung of each ladder runs at stage 0,
    each higher rung one stage later. Measured evaluators on no ladder, and a ladder's only measured
    rung, run at the last stage. A modelled evaluator runs as soon as its inputs are available.
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
