"""``dse doctor``: what was looked at, and how to mend it."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class FindingFacts(Shape):
    """One part of an installation."""

    part: str
    """What was looked at."""
    verdict: Literal["fine", "absent", "broken"]
    """`absent`: some studies need it, all others run without; `broken`: mend it."""
    told: str
    """What was found."""
    mend: str
    """How to mend it; empty where it is fine."""
    study: str
    """The study of which rows are damaged; empty for all else."""
