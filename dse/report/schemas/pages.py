"""JSON schemas of ``dse report`` and ``dse init``: the files that were written."""

from __future__ import annotations

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
