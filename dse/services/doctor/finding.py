"""One thing that was looked at."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Severity of a finding."""

    FINE = "fine"
    ABSENT = "absent"
    """Nothing breaks without it; some studies need it."""
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Finding on one part of an installation, and how to fix it where it is not fine.

    ``study`` is the one that it is about, if any.
    """

    part: str
    verdict: Verdict
    told: str
    mend: str = ""
    study: str = ""
