"""Job time without checkpoints, where lost state is rebuilt from its neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.faults.checkpoint_law import Segment


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbours:
    """Random failures of equal cost, without checkpoints; every field is (n,), in seconds.

    Work and recovery form one busy period of a queue: failures also occur during recovery.

    Source:
        Blagoev et al.: All is Not Lost: LLM Recovery without Checkpoints (CheckFree), 2025; the
        moments are those of a busy period with fixed services, Borel 1942 and Tanner 1953.
    """

    cost_s: Floats
    mtbf_s: Floats

    @property
    def busy(self) -> Floats:
        """Share of the time spent on recovery; at 1 or more there is no progress."""
        return self.cost_s / self.mtbf_s

    def mean_s(self, work_s: Floats) -> Floats:
        """Return the exact expected time of a job; a placeholder where there is no progress."""
        return np.asarray(work_s / self._idle(), dtype=np.float64)

    def variance_s2(self, work_s: Floats) -> Floats:
        """Return the exact variance of the time of a job."""
        return np.asarray(work_s * self.busy * self.cost_s / self._idle() ** 3, dtype=np.float64)

    def third_s3(self, work_s: Floats) -> Floats:
        """Return the exact third central moment of the time of a job."""
        cube = self.busy * self.cost_s**2 * (1.0 + 2.0 * self.busy)
        return np.asarray(work_s * cube / self._idle() ** 5, dtype=np.float64)

    def _idle(self) -> Floats:
        return np.where(self.busy < 1.0, 1.0 - self.busy, 1.0)


def break_even(saved: Segment, restart_s: Floats, iteration_s: Floats) -> Floats:
    """Return the iterations lost per failure at which neighbours are as fast as checkpoints, (n,).

    A negative value means that checkpoints are faster even if a failure costs only a restart.
    """
    exponent = np.minimum((saved.length_s + saved.redone_s) / saved.mtbf_s, 600.0)
    whole = np.exp(exponent) * -np.expm1(-saved.length_s / saved.mtbf_s)
    useful = saved.work_s / saved.mtbf_s / whole
    affordable_s = (1.0 - useful) * saved.mtbf_s
    return np.asarray((affordable_s - restart_s) / iteration_s, dtype=np.float64)
