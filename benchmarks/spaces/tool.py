"""What every tool of the comparison can be asked, and the words for what it cannot do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from statement import Row, Statement

MOST = 1_000_000
"""So many designs are listed of a space that has more than ten million."""


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One tool: every call builds the space anew and then does what is asked.

    ``prepare`` imports the tool and does what it needs once a process; it is not timed. What
    ``sampled`` returns is the tool's own form of designs; ``rows`` makes plain rows of it, untimed.
    """

    name: str
    prepare: Callable[[Statement], None]
    count: Callable[[Statement], int]
    listed: Callable[[Statement, int | None], int]
    sampled: Callable[[Statement, int, int], object]
    rows: Callable[[Statement, object], list[Row]]


class NotOfferedError(Exception):
    """The tool has no such operation, or is not installed."""
