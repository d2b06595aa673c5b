"""Faults of training plans that do not fit into the memory of their devices or hosts."""

from __future__ import annotations

import numpy as np

from dse.core.metric import Fault
from dse.core.values import Floats, Mask
from dse_evaluators.clusters.training.memory import TrainingMemoryUse

_GIB = 2.0**30


def too_large(
    kept: TrainingMemoryUse, possible: Mask, *, device_bytes: float, host_bytes: float
) -> dict[int, Fault]:
    """Return a fault for each plan that exceeds device or host memory, by plan index.

    Args:
        kept: memory use of the plans.
        possible: mask of the plans to check, which violate no other constraint, (n,).
        device_bytes: usable bytes of a device.
        host_bytes: bytes of a device's share of its host.
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
    # Rows equal to three digits share a fault: formatting texts costs more than the model itself.
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
