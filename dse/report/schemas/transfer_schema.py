"""JSON schemas of ``dse studies export``, ``import`` and ``merge``."""

from __future__ import annotations

from dse.report.schemas.base import Shape


class LeftOut(Shape):
    """Damaged rows of a study that an export left out of its file."""

    part: str
    """What they held: `trials`, `asks`, `events`, ..., or `study` for the study's own row."""
    rows: list[list[int]]
    """Their numbers, as the first and the last of each contiguous range."""
    reason: str
    """The reason why they were left out."""


class Exported(Shape):
    """Result of exporting a study."""

    study: str
    """Its name in the target."""
    trials: int
    """How many trials it has."""
    to: str
    """The file, or the URL of Optuna's storage."""
    sha256: str | None
    """The SHA-256 checksum of a file that can be imported again; null otherwise."""
    notes: list[str]
    """What the target format cannot express."""
    left_out: list[LeftOut]
    """The damaged rows that `--salvage` left out."""


class Imported(Shape):
    """Study that was created by an import, or with trials from elsewhere."""

    study: str
    """The new study's name."""
    trials: int
    """How many trials it has now."""
    finished: int
    """How many of them have ended, in any state."""
    inside: int
    """How many are designs of its space."""
    outside: int
    """How many are not, and are used for learning only."""
    left_out: dict[str, int]
    """How many could not be imported, by reason."""
    trusted: bool
    """Whether it may be run at once."""
    starts: list[str]
    """The programs, functions, third-party plug-ins and clusters that running it would use."""
    problem: str
    """Why these cannot be determined; empty where they can."""


class AttachedResults(Shape):
    """Results that were attached to a study as finished trials."""

    study: str
    """The study's name."""
    attached: int
    """How many results were attached."""
    first: int
    """The number of the first of these trials; the others follow."""
    trials: int
    """How many trials the study has now."""
    left_out: dict[str, int]
    """How many could not be attached, by reason."""


class Joined(Shape):
    """Study that was created from the finished trials of several studies."""

    study: str
    """The new study's name."""
    trials: int
    """How many trials it has."""
    shared: int
    """How many designs occur in more than one study."""
    unlike: int
    """How many of these have different metrics in different studies."""
