"""Training plans that do not fit into the memory of their devices or hosts."""

from __future__ import annotations

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.training.memory import TrainingMemoryUse

_GIB = 2.0**30


def too_large(
    kept: TrainingMemoryUse, possible: Mask, *, device_bytes: float, host_bytes: float
) -> dict[int, Fault]:
    """The possible rows that do not fit, with by how much.

    Args:
        kept: what the plans keep.
        possible: rows that break no other rule.
        device_bytes: what a device has for it.
        host_bytes: what its share of a host has.
    """
    return {
        **_over(kept.host, host_bytes, possible, "in a device's share of its host"),
        **_over(kept.total, device_bytes, possible, "of memory"),
    }


def _over(needed: Floats, room: float, possible: Mask, what: str) -> dict[int, Fault]:
    rows = np.flatnonzero((needed > room) & possible)
    if not rows.size:
        return {}
    has = room / _GIB
    # Rows that differ by less than three digits share a reason: texts cost more than the model.
    size = needed[rows] / _GIB
    digit = 10.0 ** np.maximum(np.floor(np.log10(size)) - 2.0, -1.0)
    known = (np.ceil(size / digit) * digit).tolist()
    faults = {
        needs: Fault(
            kind="infeasible",
            reason=f"needs {needs:.1f} GiB {what}, has {has:.1f} GiB: {needs - has:.1f} GiB short",
        )
        for needs in set(known)
    }
    return dict(zip(rows.tolist(), map(faults.__getitem__, known), strict=True))
