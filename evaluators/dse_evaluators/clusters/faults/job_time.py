"""The evaluator ``clusters.job-time``: quantiles of training time when device speeds vary."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.clusters.faults.step_time_spread import (
    QUANTILES,
    JobSteps,
    Lateness,
    Ranks,
    above,
    at,
    compute_job_quantiles,
    lasting_share,
    lateness,
    worst,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_PARTS = ("computing", "exchanging", "bubble", "summing", "waiting")
_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _PARTS),
    Metric(name="nominal_time", unit="s"),
    *(Metric(name=f"step_{name}", unit="s", goal="minimize") for name in QUANTILES),
    Metric(name="job_time", unit="s", goal="minimize"),
    *(Metric(name=f"job_{name}", unit="s", goal="minimize") for name in QUANTILES),
    Metric(name="job_cvar95", unit="s", goal="minimize"),
    Metric(name="slowdown", goal="minimize"),
    Metric(name="late", goal="minimize"),
    Metric(name="bottleneck", words=_PARTS),
)
_READINGS: Mapping[str, Reading] = {
    **dict.fromkeys(("tp", "pp"), NumberInput(1, 1e3)),
    **dict.fromkeys(("dp", "microbatches"), NumberInput(1, 1e6)),
    "interleave": NumberInput(1, 1e6, default=1.0),
    "compute_time": NumberInput(0, 1e12, "s"),
    "exchange_time": NumberInput(0, 1e12, "s", default=0.0),
    "data_time": NumberInput(0, 1e12, "s", default=0.0),
    "compute_spread": NumberInput(0, 0.3, default=0.05),
    "exchange_spread": NumberInput(0, 0.3, default=0.05),
    "persistence": NumberInput(0, 1, default=0.0),
    "steps": NumberInput(1, 1e9, default=1.0),
    "deadline": NumberInput(0, 1e12, "s", default=0.0),
}
_WARNED = 1.1
"""Default deadline as a multiple of the nominal job time (Golden et al., 2025)."""


class JobTime(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Quantiles of the time of a training job whose devices vary in speed.

    A device's compute and collective times of a step are normal around the nominal ones, with the
    relative standard deviations ``compute_spread`` and ``exchange_spread``; ``persistence`` is
    their correlation between steps. The tensor-parallel devices of a stage wait for one another,
    stages as in a pipeline with all forward passes first, replicas at the end of a step; then their
    gradients are summed, in ``data_time``.
    ``waiting_time`` is the increase of the mean step time by the variation. ``late`` is the
    probability that the job exceeds ``deadline``, by default 1.1 times the nominal time;
    ``job_cvar95`` is the mean of its worst 5 %.

    Inputs:
        microbatches: number of microbatches of a replica in a step.
        compute_time: time that a device computes in a step.
        exchange_time: time of a device's collectives within the pipeline, in a step.

    Limits:
        Not modelled: variation between microbatches of one step (it averages out over a step's
        thousands of calls), the lateness of early stages that 1F1B hides (0.6 to 1.8 % of a step),
        failed devices, correlation between neighbouring devices. All forward passes come first:
        under 1F1B a step is 0.6 to 1.8 % shorter. Spreads are inputs, not measured.

    Error:
        The quantiles p50, p95 and p99 are within 1 % of Monte Carlo of the same model on 12
        layouts; maxima of 10 to 1,000 normals within 2e-4 of Tippett's table.

    Example:
        parameters: {tp: [8], pp: [1, 4], dp: [4, 16], microbatches: [16], compute_time: [3.0]}

    Source:
        Golden et al.: PRISM: Probabilistic Runtime Insights and Scalable Performance Modeling for
        Large-Scale Distributed Training, 2025.
    """

    compute_spread: float | None = None
    exchange_spread: float | None = None
    persistence: float | None = None
    steps: float | None = None
    deadline: float | str | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the quantiles of the total times of n jobs, and related metrics."""
        ranks = Ranks(
            tensor=inputs["tp"],
            pipeline=inputs["pp"],
            data=inputs["dp"],
            microbatches=inputs["microbatches"],
            interleave=inputs["interleave"],
        )
        late = _lateness(ranks)
        # Standard deviations of one microbatch and of the gradient sum over replicas.
        busy_s = (
            np.hypot(
                inputs["compute_time"] * inputs["compute_spread"],
                inputs["exchange_time"] * inputs["exchange_spread"],
            )
            / ranks.microbatches
        )
        data_s = inputs["data_time"] * inputs["exchange_spread"]
        share = lasting_share(ranks, inputs["persistence"])
        one = JobSteps(count=np.ones_like(data_s), persistence=inputs["persistence"])
        all_of_them = JobSteps(count=inputs["steps"], persistence=inputs["persistence"])
        parts = _parts(inputs, ranks, busy_s * late.mean)
        nominal_s = np.sum([parts[f"{part}_time"] for part in _PARTS[:-1]], axis=0)
        step = nominal_s[:, None] + compute_job_quantiles(late, busy_s, one, share, data_s)
        job = (nominal_s * inputs["steps"])[:, None] + compute_job_quantiles(
            late, busy_s, all_of_them, share, data_s
        )
        deadline_s = inputs["deadline"]
        limit_s = np.where(deadline_s > 0.0, deadline_s, _WARNED * nominal_s * inputs["steps"])
        step_s = nominal_s + parts["waiting_time"]
        return Metrics(
            columns={
                **parts,
                "step_time": step_s,
                "nominal_time": nominal_s,
                **{f"step_{name}": at(step, score) for name, score in QUANTILES.items()},
                "job_time": step_s * inputs["steps"],
                **{f"job_{name}": at(job, score) for name, score in QUANTILES.items()},
                "job_cvar95": worst(job, QUANTILES["p95"]),
                "slowdown": step_s / np.where(nominal_s > 0, nominal_s, 1.0),
                "late": above(job, limit_s),
                "bottleneck": _largest(parts),
            }
        )


def _lateness(ranks: Ranks) -> Lateness:
    """Return the lateness distribution of a step of n designs; equal layouts computed once."""
    columns = (ranks.tensor, ranks.pipeline, ranks.data, ranks.microbatches, ranks.interleave)
    layouts, place = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    tensor, pipeline, data, microbatches, interleave = layouts.T
    late = lateness(
        Ranks(
            tensor=tensor,
            pipeline=pipeline,
            data=data,
            microbatches=microbatches,
            interleave=interleave,
        )
    )
    return Lateness(*(column[place] for column in late))


def _parts(inputs: Mapping[str, Floats], ranks: Ranks, waiting_s: Floats) -> dict[str, Floats]:
    """Return the mean step time [s] of n designs, split into additive parts by cause."""
    busy_s = inputs["compute_time"] + inputs["exchange_time"]
    return {
        "computing_time": inputs["compute_time"],
        "exchanging_time": inputs["exchange_time"],
        "bubble_time": busy_s * (ranks.path / ranks.microbatches - 1.0),
        "summing_time": inputs["data_time"],
        "waiting_time": waiting_s,
    }


def _largest(parts: Mapping[str, Floats]) -> Floats:
    stacked = np.stack([parts[f"{part}_time"] for part in _PARTS])
    return np.argmax(stacked, axis=0).astype(np.float64)
