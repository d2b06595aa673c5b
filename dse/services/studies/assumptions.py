"""Sensitivity of a study's claims: each assumption is set to both ends of its interval."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dse.errors import DseError
from dse.protocols import Storage
from dse.schema.study.assumption_ends import Turn, turned_plan, turns_of
from dse.services.studies.claims import Judged, Turned, judged_claims
from dse.study.study import StudyEngine


def turn_assumptions(
    study: StudyEngine,
    judged: Sequence[Judged],
    run: Callable[[StudyEngine], None],
    *,
    storage: str | Storage,
) -> list[Judged]:
    """Return the claims with their results at both ends of each assumption.

    Args:
        study: the study with its assumptions at their stated values.
        judged: its claims.
        run: runs a study to the end of its budget.
        storage: storage of the studies with changed assumptions.
    """
    found = []
    for turn in turns_of(study.plan, study.name):
        try:
            turned = StudyEngine.of(turned_plan(study.plan, turn), name=turn.study, storage=storage)
            run(turned)
            found.append(_judge_turn(turn, judged_claims(turned), judged))
        except DseError as error:
            found.append([_fail_turn(turn, str(error))] * len(judged))
    return _with_turns(judged, found)


def stored_turns(study: StudyEngine, judged: Sequence[Judged]) -> list[Judged]:
    """Return the claims with the results at those ends that the study's storage already has."""
    known = set(study.storage.studies()) if study.plan.assumptions else set[str]()
    return _with_turns(judged, list(_iterate_stored_turns(study, judged, known)))


def _iterate_stored_turns(
    study: StudyEngine, judged: Sequence[Judged], known: set[str]
) -> Iterator[list[Turned]]:
    for turn in turns_of(study.plan, study.name):
        if turn.study in known:
            there = judged_claims(StudyEngine.load(turn.study, study.storage))
            yield _judge_turn(turn, there, judged)


def _judge_turn(turn: Turn, there: Sequence[Judged], here: Sequence[Judged]) -> list[Turned]:
    """Return the result of each claim under a changed assumption.

    It passes if it agrees with its label, in the same category as with the stated value; where the
    size differs with the stated value, in any category.
    """
    return [
        Turned(
            name=turn.assumption.spec.name,
            value=turn.end,
            ours=one.ours,
            counts_as=one.counts_as,
            passes=one.passes and own.counts_as in (one.counts_as, "size differs"),
            reason=one.reason,
        )
        for one, own in zip(there, here, strict=True)
    ]


def _fail_turn(turn: Turn, reason: str) -> Turned:
    name = turn.assumption.spec.name
    return Turned(
        name=name, value=turn.end, ours=None, counts_as="failed", passes=False, reason=reason
    )


def _with_turns(judged: Sequence[Judged], turns: Sequence[Sequence[Turned]]) -> list[Judged]:
    return [
        replace(one, turned=tuple(own[place] for own in turns)) for place, one in enumerate(judged)
    ]
