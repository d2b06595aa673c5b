"""Sensitivity of a study's claims to its assumptions.

A claim is a result, such as a published one, that the study is expected to show. An assumption is a
value that a reproduced paper does not state, with a plausible interval. Each assumption is set to
both ends of its interval in turn, and the claims are evaluated anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from dse.errors import DseError
from dse.protocols import Storage
from dse.schema.study.assumption_ends import Turn, turned_plan, turns_of
from dse.services.studies.claim_evaluation import ClaimVerdict, SensitivityResult, judged_claims
from dse.study.study_engine import StudyEngine


def turn_assumptions(
    study: StudyEngine,
    judged: Sequence[ClaimVerdict],
    run: Callable[[StudyEngine], None],
    *,
    storage: str | Storage,
) -> list[ClaimVerdict]:
    """Run the study with each assumption at both ends of its interval, and test its claims there.

    The claims (published results to reproduce) are returned, each with its results at both ends of
    each interval.

    Args:
        study: the study with its assumptions at their stated values.
        judged: the study's claims with their results under the stated values.
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


def stored_turns(study: StudyEngine, judged: Sequence[ClaimVerdict]) -> list[ClaimVerdict]:
    """Return the claims, each with its results under the changed assumptions that were run before.

    A changed assumption is set to an end of its interval in a study of its own, which is looked up
    in the storage of ``study``.
    """
    known = set(study.storage.studies()) if study.plan.assumptions else set[str]()
    return _with_turns(judged, list(_iterate_stored_turns(study, judged, known)))


def _iterate_stored_turns(
    study: StudyEngine, judged: Sequence[ClaimVerdict], known: set[str]
) -> Iterator[list[SensitivityResult]]:
    for turn in turns_of(study.plan, study.name):
        if turn.study in known:
            there = judged_claims(StudyEngine.load(turn.study, study.storage))
            yield _judge_turn(turn, there, judged)


def _judge_turn(
    turn: Turn, there: Sequence[ClaimVerdict], here: Sequence[ClaimVerdict]
) -> list[SensitivityResult]:
    """Return the result of each claim under a changed assumption.

    A result passes if its verdict is one that the claim's label in the study file expects, and its
    category (such as ``failed``) is the same as under the stated assumption. If that category is
    ``size differs``, any category passes.
    """
    return [
        SensitivityResult(
            name=turn.assumption.spec.name,
            value=turn.end,
            ours=one.ours,
            counts_as=one.counts_as,
            passes=one.passes and own.counts_as in (one.counts_as, "size differs"),
            reason=one.reason,
        )
        for one, own in zip(there, here, strict=True)
    ]


def _fail_turn(turn: Turn, reason: str) -> SensitivityResult:
    name = turn.assumption.spec.name
    return SensitivityResult(
        name=name, value=turn.end, ours=None, counts_as="failed", passes=False, reason=reason
    )


def _with_turns(
    judged: Sequence[ClaimVerdict], turns: Sequence[Sequence[SensitivityResult]]
) -> list[ClaimVerdict]:
    return [
        replace(one, turned=tuple(own[place] for own in turns)) for place, one in enumerate(judged)
    ]
