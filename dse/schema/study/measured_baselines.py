"""Completion of plans whose objectives are relative to baselines that are measured first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.trial import State, Trial
from dse.errors import StudyError
from dse.schema.study.plan import Plan, plan_of


def settle_baselines(plan: Plan, trials: Sequence[Trial]) -> Plan:
    """Return the plan with the measured metrics of its baselines inserted in the objectives.

    The plan is returned unchanged until all awaited baselines have been measured.
    """
    if not plan.awaited:
        return plan
    done = dict[Design, Mapping[str, float]]()
    waiting = set(plan.awaited.values())
    for trial in trials:
        if trial.state is State.DONE and trial.design in waiting:
            done[trial.design] = trial.metrics
            if len(done) == len(waiting):
                break
    else:
        return plan
    return _rebuild_plan(plan, {name: done[design] for name, design in plan.awaited.items()})


def with_modelled_baselines(plan: Plan) -> Plan:
    """Return the plan with those metrics of awaited baselines that models compute.

    This starts external programs, so only code that runs a study may call it. Baselines that need
    measurements stay awaited.
    """
    if not plan.awaited:
        return plan
    plan.pipeline.may_start = True
    measured = dict[str, Mapping[str, float]]()
    for name, design in plan.awaited.items():
        got = plan.pipeline.known(Batch.of([design]))
        measured[name] = {} if got.failures else {m: float(v[0]) for m, v in got.columns.items()}
    return _rebuild_plan(plan, measured)


def _rebuild_plan(plan: Plan, measured: Mapping[str, Mapping[str, float]]) -> Plan:
    """Rebuild the plan with the given metrics of its named baselines."""
    now = plan_of(
        plan.path,
        kept=plan.texts,
        seed=plan.problem.seed,
        optimizer=plan.optimizer,
        measured=measured,
        objects=plan.objects,
    )
    now.pipeline.may_start = plan.pipeline.may_start
    return replace(now, problem=replace(now.problem, priors=plan.problem.priors))


def check_baselines(plan: Plan, trials: Sequence[Trial]) -> None:
    """Raise StudyError if a baseline is still unmeasured when the study ends.

    Raises:
        StudyError: a baseline could not be measured, or not within the budget.
    """
    for name, design in plan.awaited.items():
        failures = [t.failure for t in trials if t.design == design and t.failure is not None]
        why = failures[0].reason if failures else "the budget is used up"
        raise StudyError(
            f"the baseline {name!r} could not be measured: {why}",
            hint="objectives are relative to it: use another baseline, in a new study",
        )
