"""The claims that a study states, held against the trials that it has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.errors import StudyError
from dse.report.export import finite
from dse.report.shapes.judgement import JudgedClaim, JudgedStudy
from dse.schema.claims import Claim
from dse.schema.plan import Plan, plan_of
from dse.schema.source import shown
from dse.study import Study

Verdict = Literal["accepted", "fell short", "not reproduced", "no answer"]

PASSING: tuple[Verdict, ...] = ("accepted", "not reproduced")
"""What is as the file says."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """A claim with the study's number; ``reason`` says why there is none."""

    claim: Claim
    ours: float | None
    holds: bool | None
    reason: str = ""

    @property
    def verdict(self) -> Verdict:
        """What is to be said of the claim in one or two words."""
        if self.claim.spec.proof == "not reproduced" and self.ours is not None:
            return "not reproduced"
        if self.ours is None:
            return "no answer"
        return "accepted" if self.holds else "fell short"

    @property
    def passes(self) -> bool:
        """True if the study did what its file says."""
        return self.verdict in PASSING


def claiming(path: Path) -> Plan:
    """The plan of a study file that states claims.

    Raises:
        SpecErrors: the file has mistakes.
        StudyError: it states no claims.
    """
    plan = plan_of(path)
    if not plan.claims:
        hint = "'reproduces:' lists claims, as docs/reproductions.md tells"
        raise StudyError("the study states no claims", where=shown(path), hint=hint)
    return plan


def judged_claims(study: Study) -> list[Judged]:
    """Each claim of the study, held against the trials that it has."""
    trials = list(study.trials)
    return [_held(claim, study.problem, trials) for claim in study.plan.claims]


def unanswered(plan: Plan, reason: str) -> list[Judged]:
    """Each claim of a study that cannot be run."""
    return [Judged(claim=one, ours=None, holds=None, reason=reason) for one in plan.claims]


def claims_json(path: Path, judged: Iterable[Judged]) -> JudgedStudy:
    """The claims of a study file with what became of them."""
    return {"file": shown(path), "claims": [_claim(one) for one in judged]}


def _held(claim: Claim, problem: Problem, trials: Sequence[Trial]) -> Judged:
    try:
        ours = claim.ours(problem, trials)
    except StudyError as error:
        return Judged(claim=claim, ours=None, holds=None, reason=str(error))
    return Judged(claim=claim, ours=ours, holds=claim.holds(ours))


def _claim(one: Judged) -> JudgedClaim:
    spec = one.claim.spec
    return {
        "claim": spec.claim,
        "source": spec.source,
        "published": spec.published,
        "proof": spec.proof,
        "formula": spec.ours,
        "accept": spec.accept,
        "note": spec.note,
        "ours": finite(one.ours),
        "unit": one.claim.unit,
        "holds": one.holds,
        "verdict": one.verdict,
        "reason": one.reason,
    }
