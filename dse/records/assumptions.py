"""The assumptions of a study, each turned to both ends of its interval, and its claims there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dse.errors import DseError
from dse.protocols import Storage
from dse.records.claims import Judged, Turned, judged_claims
from dse.schema.assumptions import Assumption, assumed_documents
from dse.schema.files import Files
from dse.schema.models import Scalar
from dse.schema.plan import Plan, plan_of
from dse.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """An assumption at an end of its interval, and the name of the study that tries it."""

    assumption: Assumption
    end: Scalar
    study: str


def turns_of(plan: Plan, name: str) -> list[Turn]:
    """Return every assumption of a plan at each of its ends.

    Args:
        plan: the study's.
        name: what the study is called.
    """
    return [
        Turn(assumption=one, end=end, study=f"{name}.assumes.{place}.{side}")
        for place, one in enumerate(plan.assumptions, 1)
        for side, end in enumerate(one.ends, 1)
    ]


def turned_plan(plan: Plan, turn: Turn) -> Plan:
    """Return the plan with the assumption at that end, all else equal.

    Raises:
        SpecErrors: the study cannot be so, as where a baseline is not legal there.
    """
    files = Files(kept=plan.texts)
    spec = files.source(plan.path).value
    documents = turn.assumption.turned(assumed_documents(spec, plan.path, files), turn.end)
    return plan_of(
        plan.path,
        kept=plan.texts,
        seed=plan.problem.seed,
        optimizer=plan.optimizer,
        documents=documents,
        objects=plan.objects,
    )


def turn_assumptions(
    study: Study,
    judged: Sequence[Judged],
    run: Callable[[Study], None],
    *,
    storage: str | Storage,
) -> list[Judged]:
    """Return the claims with what becomes of them at both ends of each assumption.

    Args:
        study: the study, as its file says.
        judged: its claims.
        run: runs a study to the end of its budget.
        storage: where the turned studies are kept.
    """
    found = []
    for turn in turns_of(study.plan, study.name):
        try:
            turned = Study.of(turned_plan(study.plan, turn), name=turn.study, storage=storage)
            run(turned)
            found.append(_turned(turn, judged_claims(turned)))
        except DseError as error:
            found.append([_unanswered(turn, str(error))] * len(judged))
    return _with_turns(judged, found)


def stored_turns(study: Study, judged: Sequence[Judged]) -> list[Judged]:
    """Return the claims with the turned studies that the same storage has."""
    known = set(study.storage.studies()) if study.plan.assumptions else set[str]()
    return _with_turns(judged, list(_stored(study, known)))


def _stored(study: Study, known: set[str]) -> Iterator[list[Turned]]:
    for turn in turns_of(study.plan, study.name):
        if turn.study in known:
            yield _turned(turn, judged_claims(Study.load(turn.study, study.storage)))


def _turned(turn: Turn, judged: Sequence[Judged]) -> list[Turned]:
    return [
        Turned(
            name=turn.assumption.spec.name,
            value=turn.end,
            ours=one.ours,
            passes=one.passes,
            reason=one.reason,
        )
        for one in judged
    ]


def _unanswered(turn: Turn, reason: str) -> Turned:
    name = turn.assumption.spec.name
    return Turned(name=name, value=turn.end, ours=None, passes=False, reason=reason)


def _with_turns(judged: Sequence[Judged], turns: Sequence[Sequence[Turned]]) -> list[Judged]:
    return [
        replace(one, turned=tuple(own[place] for own in turns)) for place, one in enumerate(judged)
    ]
