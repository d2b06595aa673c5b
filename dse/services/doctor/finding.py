"""Result of one check of an installation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Severity of a finding."""

    FINE = "fine"
    ABSENT = "absent"
    """An optional part is missing; only some studies need it."""
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Finding on one part of an installation.

    ``mend`` states how to fix it; it is empty if there is nothing to do. ``study`` names the study
    that the finding concerns, if any.
    """

    part: str
    verdict: Verdict
    told: str
    mend: str = ""
    study: str = ""
