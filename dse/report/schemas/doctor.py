"""JSON schema of ``dse doctor``: the checked parts of an installation and how to fix them."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class FindingFacts(Shape):
    """Result of checking one part of an installation."""

    part: str
    """The part that was checked."""
    verdict: Literal["fine", "absent", "broken"]
    """`absent`: some studies need it, all others run without it; `broken`: it must be fixed."""
    told: str
    """What was found."""
    mend: str
    """How to fix it; empty where it is fine."""
    study: str
    """The study with damaged rows; empty for other findings."""
