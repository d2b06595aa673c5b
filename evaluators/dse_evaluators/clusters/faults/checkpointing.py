"""The evaluator ``clusters.checkpointing``: job time under failures and checkpoint policies."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Mask
from dse_evaluators.alike import infeasible
from dse_evaluators.clusters.faults.checkpoint_law import (
    Neighbours,
    Segment,
    best_interval,
    break_even,
    daly_interval,
    quantile,
    young_interval,
)
from dse_evaluators.clusters.faults.step_time_spread import QUANTILES
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

RECOVERIES = ("synchronous", "asynchronous", "neighbours")
"""Checkpoints that stop the work; checkpoints during the work; recovery from neighbours only."""

_PARTS = ("work", "saving", "failing")
_METRICS = (
    Metric(name="job_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="job_time") for part in _PARTS),
    *(Metric(name=f"job_{name}", unit="s", goal="minimize") for name in QUANTILES),
    Metric(name="overhead", goal="minimize"),
    Metric(name="interval", unit="s"),
    Metric(name="best_interval", unit="s"),
    Metric(name="young_interval", unit="s"),
    Metric(name="daly_interval", unit="s"),
    Metric(name="visible_time", unit="s", goal="minimize"),
    Metric(name="written_time", unit="s"),
    Metric(name="failures"),
    Metric(name="break_even", goal="maximize"),
    Metric(name="break_even_tuned", goal="maximize"),
    Metric(name="bottleneck", words=_PARTS),
)
_READINGS: Mapping[str, Reading] = {
    "recovery": one_of(RECOVERIES),
    "productive_time": NumberInput(1e-6, 1e30, "s"),
    "state": NumberInput(1e-6, 1e30, "B"),
    "storage_bandwidth": NumberInput(1e-6, 1e30, "B/s"),
    "device_mtbf": NumberInput(1e-6, 1e30, "s"),
    "devices": NumberInput(1, 1e9),
    "checkpoint_interval": NumberInput(0, 1e12, "s", default=0.0),
    "restart_time": NumberInput(0, 1e12, "s", default=0.0),
    "copy_bandwidth": NumberInput(1e-6, 1e30, "B/s", default=25e9),
    "iteration_time": NumberInput(1e-6, 1e12, "s", default=1.0),
    "penalty": NumberInput(0, 1e12, default=0.0),
}


class Checkpointing(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Job time under random failures: exact mean and approximate quantiles.

    Quantiles of the job time use the first three moments (the third one approximate), and suit jobs
    that see some failures.

    ``synchronous`` stops the work to write. ``asynchronous`` stops the work only while the copy to
    the host exceeds an iteration, and writes during the work, so a failure may occur before the
    newest snapshot is written. ``neighbours`` writes nothing, and each failure costs ``penalty``
    iterations of progress. Without ``checkpoint_interval``, or where it is 0, the optimal interval
    is used. ``break_even`` is the penalty at which ``neighbours`` takes as long as synchronous
    checkpoints at the design's interval, ``break_even_tuned`` the penalty at which ``neighbours``
    takes as long as synchronous checkpoints at the optimal interval.

    Inputs:
        storage_bandwidth: bandwidth to the storage, of all devices together.
        checkpoint_interval: seconds of work between checkpoints.
        copy_bandwidth: bandwidth from one device to its host.
        penalty: iterations that a failure costs with ``neighbours``.

    Limits:
        Not modelled: correlated failures, failures of the storage, two neighbours that fail at
        once, and the effect of averaged weights on the final loss.

    Error:
        Mean, variance and optimal interval (by Lambert's W function) are exact for failures at
        random; quantiles are within 1 % of Monte Carlo for a day with six failures. The iterations
        that a lost stage costs are an input.

    Example:
        options: {productive_time: 1000000, state: 14 TB, devices: 3072}
        parameters:
            {recovery: [synchronous, asynchronous], storage_bandwidth: [50000000000], device_mtbf:
            [180000000], iteration_time: [30]}

    Source:
        Young 1974; Daly 2006; Maurya et al.: DataStates-LLM: Lazy Asynchronous Checkpointing for
        Large Language Models, 2024; Blagoev et al.: All is Not Lost: LLM Recovery without
        Checkpoints (CheckFree), 2025.
    """

    productive_time: float | str | None = None
    state: float | str | None = None
    storage_bandwidth: float | str | None = None
    device_mtbf: float | str | None = None
    devices: float | None = None
    checkpoint_interval: float | str | None = None
    restart_time: float | str | None = None
    copy_bandwidth: float | str | None = None
    iteration_time: float | str | None = None
    penalty: float | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return mean and quantiles of the total times of n jobs, and related metrics."""
        recovery = inputs["recovery"]
        mtbf_s = inputs["device_mtbf"] / inputs["devices"]
        written_s = inputs["state"] / inputs["storage_bandwidth"]
        late = recovery == RECOVERIES.index("asynchronous")
        none = recovery == RECOVERIES.index("neighbours")
        saved = _segment(inputs, mtbf_s, written_s, late)
        near = Neighbours(
            cost_s=inputs["restart_time"] + inputs["penalty"] * inputs["iteration_time"],
            mtbf_s=mtbf_s,
        )
        faults = {
            **_lost(near, none),
            **_hopeless(saved, ~none),
            **_unwritten(saved, written_s, late),
        }
        work_s = inputs["productive_time"]
        count = work_s / saved.work_s
        job_s = np.where(none, near.mean_s(work_s), count * saved.mean_s())
        variance = np.where(none, near.variance_s2(work_s), count * saved.variance_s2())
        third = np.where(none, near.third_s3(work_s), saved.third_s3(job_s / mtbf_s))
        saving_s = np.where(none, 0.0, count * saved.write_s)
        parts = {
            "work_time": work_s,
            "saving_time": saving_s,
            "failing_time": job_s - work_s - saving_s,
        }
        stopped = _segment(inputs, mtbf_s, written_s, np.zeros_like(late))
        tuned = _segment(
            {**inputs, "checkpoint_interval": 0.0 * mtbf_s}, mtbf_s, written_s, late & False
        )
        return Metrics(
            columns={
                **parts,
                "job_time": job_s,
                **{
                    f"job_{name}": quantile(job_s, variance, third, score)
                    for name, score in QUANTILES.items()
                },
                "overhead": job_s / work_s - 1.0,
                "interval": np.where(none, work_s, saved.work_s),
                "best_interval": best_interval(saved.write_s, mtbf_s),
                "young_interval": young_interval(saved.write_s, mtbf_s),
                "daly_interval": daly_interval(saved.write_s, mtbf_s),
                "visible_time": np.where(none, 0.0, saved.write_s),
                "written_time": np.where(none, 0.0, written_s),
                "failures": job_s / mtbf_s,
                "break_even": break_even(stopped, inputs["restart_time"], inputs["iteration_time"]),
                "break_even_tuned": break_even(
                    tuned, inputs["restart_time"], inputs["iteration_time"]
                ),
                "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
            },
            failures=faults,
        )


def _segment(
    inputs: Mapping[str, Floats], mtbf_s: Floats, written_s: Floats, late: Mask
) -> Segment:
    """Return the segments of work between two checkpoints of n jobs.

    ``late`` marks jobs that write checkpoints asynchronously, while the work continues.
    """
    copied_s = inputs["state"] / inputs["devices"] / inputs["copy_bandwidth"]
    visible_s = np.where(late, np.maximum(copied_s - inputs["iteration_time"], 0.0), written_s)
    least_s = np.where(late, written_s, 0.0)
    chosen_s = inputs["checkpoint_interval"]
    best_s = np.maximum(best_interval(visible_s, mtbf_s), least_s)
    return Segment(
        work_s=np.where(chosen_s > 0.0, chosen_s, best_s),
        write_s=visible_s,
        # Work done while the newest snapshot is being written is lost with that snapshot.
        redone_s=inputs["restart_time"] + least_s,
        mtbf_s=mtbf_s,
    )


def _hopeless(saved: Segment, among: Mask) -> dict[int, Failure]:
    exponent = saved.hopeless / 2.0
    reason = "work, checkpoint and recovery take {:.3g} times the mean time between failures"
    return infeasible((exponent > 0.0) & among, lambda row: reason.format(exponent[row]))


def _unwritten(saved: Segment, written_s: Floats, late: Mask) -> dict[int, Failure]:
    reason = "a snapshot takes {:.6g} s to write, the next comes after {:.6g} s: {:.6g} s short"
    between_s = saved.length_s
    return infeasible(
        late & (between_s < written_s),
        lambda row: reason.format(written_s[row], between_s[row], written_s[row] - between_s[row]),
    )


def _lost(near: Neighbours, among: Mask) -> dict[int, Failure]:
    reason = "a failure costs {:.6g} s and occurs every {:.6g} s: {:.6g} s short of any progress"
    cost_s, mtbf_s = near.cost_s, near.mtbf_s
    return infeasible(
        among & (near.busy >= 1.0),
        lambda row: reason.format(cost_s[row], mtbf_s[row], cost_s[row] - mtbf_s[row]),
    )
