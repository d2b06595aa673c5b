"""Result of one check of an installation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """Severity of a check's result: fine, an optional component is absent, or broken."""

    FINE = "fine"
    ABSENT = "absent"
    """An optional part is missing; only some studies need it."""
    BROKEN = "broken"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Result of the check of one component of an installation, such as the GPU or the storage.

    ``mend`` states how to fix a problem; it is empty if there is none. ``study`` names the study
    that the result concerns, if any.
    """

    part: str
    verdict: Verdict
    message: str
    mend: str = ""
    study: str = ""
