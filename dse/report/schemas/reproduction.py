"""JSON schemas of ``dse check``: checked files and, with ``--reproduce``, published claims."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class Mistake(Shape):
    """Error found in a study or space file."""

    problem: str
    """The problem."""
    where: str
    """The file and the line."""
    hint: str
    """How to fix it; empty where that is unknown."""
    message: str
    """The full message in one text."""


class JudgedFile(Shape):
    """Result of checking a study or space file."""

    file: str
    """The file as it was named."""
    ok: bool
    """Whether it has no mistakes."""
    summary: str
    """What it describes, in words; empty where it has mistakes."""
    designs: int | None
    """How many legal designs there are; null where they cannot be counted, or for mistakes."""
    modelled: list[str]
    """The evaluators of a study that are formulas."""
    measured: list[str]
    """The evaluators of a study that measure."""
    not_probed: dict[str, list[str]]
    """Evaluators that start programs, with these, or are not declared pure; none was called."""
    notes: dict[str, list[str]]
    """What evaluators state about the files that the study names, such as layers left as is."""
    errors: list[Mistake]
    """Its mistakes."""
    unchecked: list[str]
    """What could not be checked because of the mistakes: positions, or descriptions."""


CountsAs = Literal[
    "exact",
    "held-out",
    "free",
    "direction only",
    "size differs",
    "not reproduced",
    "finding",
    "identity",
    "failed",
]


class TurnedClaim(Shape):
    """Outcome of a claim when one assumed value is set to an end of its interval."""

    name: str
    """The assumption."""
    value: bool | int | float | str
    """The end of the interval that it was set to."""
    ours: float | None
    """The result there; null where it could not be computed."""
    counts_as: CountsAs
    """The outcome under which the summary would count it."""
    passes: bool
    """Whether that outcome equals the one with the assumptions as stated."""
    reason: str
    """Why there is no answer; empty where there is one."""


class AssumedValue(Shape):
    """Value that the study assumes because the reproduced publication does not give it."""

    name: str
    """What it is."""
    value: bool | int | float | str
    """The value that the study uses."""
    interval: list[bool | int | float | str]
    """The ends of its interval, or the two alternatives."""
    source: str
    """Where the interval comes from."""
    turns: list[str]
    """The positions in the study's files that contain it."""
    note: str
    """What the author of the study adds."""


class JudgedClaim(Shape):
    """Published claim, or finding of the study itself, with the result computed from the study."""

    claim: str
    """The claim as text."""
    source: str
    """The source of the claim."""
    published: int | float | str | list[int | float | str] | None
    """The published figure, the two ends of an interval, or a text; null without one."""
    proof: Literal[
        "exact", "held-out", "free", "direction", "not reproduced", "identity", "finding"
    ]
    """The kind of evidence; a finding of the study itself has no published counterpart."""
    formula: str
    """The formula that is computed from the study."""
    accept: str | None
    """The condition for acceptance; null where nothing is claimed."""
    note: str
    """What the author of the study adds."""
    ours: float | None
    """The study's result; null where it could not be computed."""
    unit: str
    """The unit of `ours`; empty where it has none."""
    print_unit: str
    """The unit of the publication, in which `ours` is shown."""
    holds: bool | None
    """Whether it is accepted; null without a result or where nothing is claimed."""
    verdict: Literal[
        "accepted", "size differs", "fell short", "not reproduced", "now holds", "no answer"
    ]
    """The verdict as a label."""
    counts_as: CountsAs
    """The outcome under which the summary counts it."""
    reason: str
    """Why there is no answer; empty where there is one."""
    turned: list[TurnedClaim]
    """Its outcome at the ends of each assumption's interval; empty where none was varied."""


class CountedClaims(Shape):
    """Number of published claims and findings by outcome."""

    exact: int
    """Reproduced to the published digits."""
    held_out: int
    """Reproduced on points that nothing was fitted to."""
    free: int
    """Reproduced with nothing fitted or chosen."""
    direction_only: int
    """Reproduced in the order or the sign only."""
    size_differs: int
    """Reproduced in the direction, but not in the published size."""
    not_reproduced: int
    """Not reproduced, as their files state."""
    findings: int
    """Findings of the studies themselves, with no published figure."""
    identities: int
    """Identities, which cannot fail."""
    failed: int
    """Outcomes that differ from the label in their files."""


class JudgedStudy(Shape):
    """Verdicts on the published claims that a study reproduces."""

    file: str
    """The study file."""
    claims: list[JudgedClaim]
    """Its claims in their order, then its findings."""
    summary: CountedClaims
    """How many claims have each outcome."""
    assumes: list[AssumedValue]
    """The values that it assumes where the publication gives none."""
