"""Parsing of a study's retry limits, and of how long it waits for an unavailable storage."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.metric import FaultKind
from dse.errors import SpecError
from dse.evaluation.retries import RETRIES
from dse.schema.models import Quantity, RetriesSpec
from dse.schema.space.parameters.domains import amount
from dse.storage.patience import PATIENCE_S


def retries_of(spec: RetriesSpec) -> Mapping[FaultKind, int]:
    """Return the maximum number of retries for each kind of failure, stated or default."""
    said: dict[FaultKind, int | None] = {
        "lost": spec.lost,
        "crashed": spec.crashed,
        "memory": spec.memory,
        "timeout": spec.timeout,
        "raised": spec.raised,
        "invalid": spec.invalid,
    }
    return {**RETRIES, **{kind: count for kind, count in said.items() if count is not None}}


def patience_of(stated: Quantity | None) -> float:
    """Return the time in seconds for which a run waits for an unavailable storage.

    Args:
        stated: a time such as ``15 min``; a bare number is in seconds; 0 disables waiting.

    Raises:
        SpecError: the value is negative, or not a time.
    """
    if stated is None:
        return PATIENCE_S
    hint = "storage_patience: 15 min; 0 disables waiting"
    try:
        seconds = float(amount(stated, "s").value)
    except SpecError as error:
        raise SpecError(f"{stated!r} is no time to wait for a storage", hint=hint) from error
    if seconds < 0:
        raise SpecError(f"the time to wait for a storage is negative: {stated}", hint=hint)
    return seconds
