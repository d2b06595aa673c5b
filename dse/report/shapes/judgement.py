"""``dse check``: files judged, and with ``--reproduce`` the claims that they state."""

from __future__ import annotations

from typing import Literal

from dse.report.shapes.shape import Shape


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
    errors: list[Mistake]
    """Its mistakes."""


class JudgedClaim(Shape):
    """What a paper says, and what came out here."""

    claim: str
    """What is claimed, in words."""
    source: str
    """Who says so, and where."""
    published: int | float | str
    """The number that was published."""
    proof: Literal["exact", "held-out", "free", "direction", "not reproduced"]
    """What its coming out proves."""
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
    holds: bool | None
    """Whether it is accepted; null without an answer or where nothing is claimed."""
    verdict: Literal["accepted", "fell short", "not reproduced", "no answer"]
    """The same in a word or two."""
    reason: str
    """Why there is no answer; empty where there is one."""


class JudgedStudy(Shape):
    """The claims of a study."""

    file: str
    """The study file."""
    claims: list[JudgedClaim]
    """Its claims, in their order."""
