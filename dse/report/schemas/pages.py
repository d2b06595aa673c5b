"""JSON schemas of ``dse report``, ``dse init`` (written files) and ``dse doctor`` (checks)."""

from __future__ import annotations

from typing import Literal

from dse.report.schemas.base import Shape


class WrittenReport(Shape):
    """Report page that a command wrote to a file."""

    file: str
    """The file."""
    studies: list[str]
    """The studies that it covers, as they were named in the command."""
    size_bytes: int
    """Its size in bytes."""


class BegunFolder(Shape):
    """Folder that `dse init` wrote, with the files of a first study."""

    study: str
    """Its name."""
    folder: str
    """Where it was written."""
    files: list[str]
    """The files in that folder."""


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
