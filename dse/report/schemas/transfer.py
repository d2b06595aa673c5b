"""``dse studies export``, ``import`` and ``merge``: studies as files, elsewhere, and together."""

from __future__ import annotations

from dse.report.schemas.base import Shape


class LeftOut(Shape):
    """Rows of a damaged study that are not in its file."""

    part: str
    """What they held: `trials`, `asks`, `events`, ..., or `study` for the study's own row."""
    rows: list[list[int]]
    """Their numbers, as the first and the last of each run of them."""
    reason: str
    """What is wrong with them."""


class Exported(Shape):
    """A study that was written."""

    study: str
    """What it is called there."""
    trials: int
    """How many trials it has."""
    to: str
    """The file, or the URL of Optuna's storage."""
    sha256: str | None
    """The check sum of a file that can be imported again; null for all else."""
    notes: list[str]
    """What the other program has no words for."""
    left_out: list[LeftOut]
    """What `--salvage` found damaged."""


class Imported(Shape):
    """A study that was read, or begun with trials that were found elsewhere."""

    study: str
    """The new study's name."""
    trials: int
    """How many trials it has now."""
    finished: int
    """How many of them have ended, whatever they came to."""
    inside: int
    """How many are designs of its space."""
    outside: int
    """How many are not, and are learnt from alone."""
    left_out: dict[str, int]
    """How many could not be taken, by why."""
    trusted: bool
    """Whether it may be run at once."""
    starts: list[str]
    """The programs, functions, plug-ins of others and clusters that running it would use."""
    problem: str
    """Why these cannot be told; empty where they can."""


class Joined(Shape):
    """A study that was begun with the finished trials of several."""

    study: str
    """The new study's name."""
    trials: int
    """How many trials it has."""
    shared: int
    """How many designs more than one study had."""
    unlike: int
    """Of how many of these the studies have unlike metrics."""
