"""How often what failed is tried again: from the file's words to numbers."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import FaultKind
from dse.drivers.retries import RETRIES
from dse.schema.models import RetriesSpec


def retries_of(spec: RetriesSpec) -> Mapping[FaultKind, int]:
    """For each kind of failure what the file says, else what every study does."""
    said: dict[FaultKind, int | None] = {
        "lost": spec.lost,
        "crashed": spec.crashed,
        "memory": spec.memory,
        "timeout": spec.timeout,
        "raised": spec.raised,
        "invalid": spec.invalid,
    }
    return {**RETRIES, **{kind: count for kind, count in said.items() if count is not None}}
