"""``dse report`` and ``dse init``: files that were written."""

from __future__ import annotations

from dse.report.schemas.base import Shape


class WrittenReport(Shape):
    """A page that was written."""

    file: str
    """The file."""
    studies: list[str]
    """What it is about, as it was named."""
    size_bytes: int
    """How large it is, in bytes."""


class BegunFolder(Shape):
    """A first study that was written."""

    study: str
    """Its name."""
    folder: str
    """Where it was written."""
    files: list[str]
    """The files in that folder."""
