"""The roofline model of a kernel on a machine."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Kind, Metric, Metrics
from dse.units import converted


class Roofline:
    """What a kernel attains: the peak, or what the memory can feed.

    Args:
        peak: the machine's arithmetic in FLOP/s.
        bandwidth: of its memory in B/s.

    Source:
        Williams, Waterman, Patterson: Roofline, Communications of the ACM 52(4), 2009:
        attainable = min(peak, bandwidth x operational intensity).
    """

    reads = frozenset({"intensity"})
    optional = frozenset({"efficiency"})
    units: Mapping[str, str] = {"intensity": "FLOP/B"}
    provides: Mapping[str, Metric] = {
        "attained": Metric(name="attained", unit="GFLOP/s", goal="maximize")
    }
    kind: Kind = "modelled"
    pure = True
    version = "1"

    def __init__(self, *, peak: float, bandwidth: float) -> None:
        self._peak_flop_per_s = peak
        self._bandwidth_bytes_per_s = bandwidth

    def evaluate(self, batch: Batch) -> Metrics:
        intensity = batch["intensity"].astype(np.float64)
        fed = self._bandwidth_bytes_per_s * intensity
        attained = np.minimum(self._peak_flop_per_s * batch.get("efficiency", 1.0), fed)
        idle = Failure(kind="infeasible", reason="a kernel computes something")
        return Metrics(
            columns={"attained": attained * converted(1.0, "FLOP/s", "GFLOP/s")},
            failures=dict.fromkeys(np.flatnonzero(intensity <= 0).tolist(), idle),
        )
