"""``dse check``: files judged, and with ``--reproduce`` the claims that they state."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class Mistake(Shape):
    """A mistake in a file."""

    problem: str
    """What is wrong."""
    where: str
    """The file and the line."""
    hint: str
    """How to mend it; empty where nobody can tell."""
    message: str
    """All of it in one text."""


class JudgedFile(Shape):
    """A study or space file."""

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
    """Those that start programs, with each program, or are not declared pure: none was called."""
    errors: list[Mistake]
    """Its mistakes."""
    unchecked: list[str]
    """What could not be checked because of them: places, or words."""


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
    """A claim where one assumption stands at an end of its interval."""

    name: str
    """The assumption."""
    value: bool | int | float | str
    """The end that it was turned to."""
    ours: float | None
    """What came out there; null where there is no answer."""
    counts_as: CountsAs
    """Where it would stand in the summary."""
    passes: bool
    """Whether it counts there as it does where the assumptions stand as stated."""
    reason: str
    """Why there is no answer; empty where there is one."""


class AssumedValue(Shape):
    """A value that print does not give."""

    name: str
    """What it is."""
    value: bool | int | float | str
    """The value that the study uses."""
    interval: list[bool | int | float | str]
    """The ends that it may lie between, or the two other choices."""
    source: str
    """Where the interval comes from."""
    turns: list[str]
    """The places in the study's files that hold it."""
    note: str
    """What the author of the study adds."""


class JudgedClaim(Shape):
    """Claim of a paper, or finding of the study, with the reproduced result."""

    claim: str
    """What is claimed, in words."""
    source: str
    """Who says so, and where."""
    published: int | float | str | list[int | float | str] | None
    """The figure of print, an interval of two, or its words; null where it has none."""
    proof: Literal[
        "exact", "held-out", "free", "direction", "not reproduced", "identity", "finding"
    ]
    """What its coming out proves; a finding of the study's own is held against no print."""
    formula: str
    """What is computed from the study."""
    accept: str | None
    """What has to hold of it; null where nothing is claimed here."""
    note: str
    """What the author of the study adds."""
    ours: float | None
    """What came out; null where there is no answer."""
    unit: str
    """The unit of that; empty where it has none."""
    print_unit: str
    """The unit that print uses, for showing ours in it."""
    holds: bool | None
    """Whether it is accepted; null without an answer or where nothing is claimed."""
    verdict: Literal[
        "accepted", "size differs", "fell short", "not reproduced", "now holds", "no answer"
    ]
    """The same in a word or two."""
    counts_as: CountsAs
    """Where it stands in the summary."""
    reason: str
    """Why there is no answer; empty where there is one."""
    turned: list[TurnedClaim]
    """What becomes of it at the ends of each assumption; empty where none was turned."""


class CountedClaims(Shape):
    """Number of claims by outcome."""

    exact: int
    """Reproduced to the digits of print."""
    held_out: int
    """Reproduced on points that nothing was fitted to."""
    free: int
    """Reproduced with nothing fitted or chosen."""
    direction_only: int
    """Of which the order or the sign comes out."""
    size_differs: int
    """Of which the direction comes out, and not the published size."""
    not_reproduced: int
    """Which do not come out, as their files say."""
    findings: int
    """Of the studies' own, with no published figure."""
    identities: int
    """Which cannot fail."""
    failed: int
    """Which do not come out as their files say."""


class JudgedStudy(Shape):
    """The claims of a study."""

    file: str
    """The study file."""
    claims: list[JudgedClaim]
    """Its claims in their order, then its findings."""
    summary: CountedClaims
    """How many of each kind came out."""
    assumes: list[AssumedValue]
    """What it assumes where print is silent."""
