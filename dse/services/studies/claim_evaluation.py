"""Test of a study file's claims, such as published results, against the study's trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from dse.core.problem import Problem
from dse.core.trial import Trial
from dse.errors import StudyError
from dse.report.json.front_json import finite
from dse.report.schemas.reproduction import (
    AssumedValue,
    CountsAs,
    JudgedClaim,
    JudgedStudy,
    TurnedClaim,
)
from dse.report.text.claim_verdicts import count_claims
from dse.schema.models import AssumptionSpec, Scalar
from dse.schema.study.claims import Claim
from dse.schema.study.plan import Plan, plan_of
from dse.schema.yaml.source import shown
from dse.study.study_engine import StudyEngine

Verdict = Literal[
    "accepted", "size differs", "fell short", "not reproduced", "now holds", "no answer"
]

PASSING: tuple[Verdict, ...] = ("accepted", "size differs", "not reproduced")
"""Verdicts that agree with the label that the study file gives the claim."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitivityResult:
    """Result of a claim in a study with one assumption set to an end of its interval.

    An assumption is a value that the reproduced paper does not state.
    """

    name: str
    value: Scalar
    ours: float | None
    counts_as: CountsAs
    passes: bool
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimVerdict:
    """Claim (published result) of a study file, with the study's own value for it.

    ``ours`` is the value computed from the trials. If it cannot be computed, ``reason`` explains
    why. ``turned`` has the results of the claim with assumptions of the study set to either end of
    their intervals.
    """

    claim: Claim
    ours: float | None
    holds: bool | None
    reason: str = ""
    turned: tuple[SensitivityResult, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Verdict on the claim from the trials, such as ``accepted`` or ``fell short``."""
        if self.ours is None:
            return "no answer"
        if self.claim.spec.proof == "not reproduced":
            return "now holds" if self.holds else "not reproduced"
        if not self.holds:
            return "fell short"
        if self.claim.spec.proof != "identity" and self.claim.agrees(self.ours) is False:
            return "size differs"
        return "accepted"

    @property
    def counts_as(self) -> CountsAs:
        """Category of the claim in the summary of claims: ``failed``, ``size differs``, ..."""
        proof = self.claim.spec.proof
        if self.verdict not in PASSING:
            return "failed"
        if self.verdict == "size differs":
            return "size differs"
        return "direction only" if proof == "direction" else proof

    @property
    def passes(self) -> bool:
        """Whether the claim counts as reproduced: its verdict is one that its label expects."""
        return self.verdict in PASSING


def claiming(path: Path) -> Plan:
    """Load a study file that must state claims (published results that its trials reproduce).

    Raises:
        SpecErrors: the file has mistakes.
        StudyError: the file states no claims.
    """
    plan = plan_of(path)
    if not plan.claims:
        hint = "'reproduces:' and 'finds:' list claims, as docs/reproductions.md explains"
        raise StudyError("the study states no claims", where=shown(path), hint=hint)
    return plan


def judged_claims(study: StudyEngine) -> list[ClaimVerdict]:
    """Test each claim of the study's file against its trials."""
    trials = list(study.trials)
    return [_judge_claim(claim, study.problem, trials) for claim in study.plan.claims]


def build_open_claims(plan: Plan, reason: str) -> list[ClaimVerdict]:
    """Return the claims of a study that cannot be run as untested, with the reason."""
    return [ClaimVerdict(claim=one, ours=None, holds=None, reason=reason) for one in plan.claims]


def claims_json(path: Path, judged: Iterable[ClaimVerdict], plan: Plan) -> JudgedStudy:
    """Return the claims of a study file with their results, as JSON."""
    claims = [_claim(one) for one in judged]
    return {
        "file": shown(path),
        "claims": claims,
        "summary": count_claims(claims),
        "assumes": [_assumption(one.spec) for one in plan.assumptions],
    }


def _judge_claim(claim: Claim, problem: Problem, trials: Sequence[Trial]) -> ClaimVerdict:
    try:
        ours = claim.ours(problem, trials)
    except StudyError as error:
        return ClaimVerdict(claim=claim, ours=None, holds=None, reason=str(error))
    return ClaimVerdict(claim=claim, ours=ours, holds=claim.holds(ours))


def _claim(one: ClaimVerdict) -> JudgedClaim:
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
        "print_unit": one.claim.figure.unit if one.claim.figure else one.claim.unit,
        "holds": one.holds,
        "verdict": one.verdict,
        "counts_as": one.counts_as,
        "reason": one.reason,
        "turned": [_serialize_turn(own) for own in one.turned],
    }


def _serialize_turn(one: SensitivityResult) -> TurnedClaim:
    return {
        "name": one.name,
        "value": one.value,
        "ours": finite(one.ours),
        "counts_as": one.counts_as,
        "passes": one.passes,
        "reason": one.reason,
    }


def _assumption(spec: AssumptionSpec) -> AssumedValue:
    return {
        "name": spec.name,
        "value": spec.value,
        "interval": list(spec.interval),
        "source": spec.source,
        "turns": spec.targets,
        "note": spec.note,
    }
