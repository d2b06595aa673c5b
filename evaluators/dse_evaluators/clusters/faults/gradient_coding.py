"""The evaluator ``clusters.gradient-coding``: round times of gradient codes with stragglers."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import infeasible_rows
from dse_evaluators.clusters.faults.gradient_codes import SCHEMES, Code, Crowd, Duty, duty
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_CHANCES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
_PARTS = ("computing", "straggling", "exchanging")
_METRICS = (
    Metric(name="round_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="round_time") for part in _PARTS),
    *(Metric(name=f"round_{name}", unit="s", goal="minimize") for name in _CHANCES),
    Metric(name="gradient_time", unit="s", goal="minimize"),
    Metric(name="gradient_share", goal="maximize"),
    Metric(name="load", goal="minimize"),
    Metric(name="tolerated", goal="maximize"),
    Metric(name="delay", goal="minimize"),
    Metric(name="lower_bound", words=("no", "yes")),
    Metric(name="bottleneck", words=_PARTS),
)
_CODE = ("scheme", "workers", "stragglers", "burst", "window")
_READINGS: Mapping[str, Reading] = {
    "scheme": one_of(SCHEMES),
    "workers": NumberInput(1, 1e6, whole=True),
    "work_time": NumberInput(0, 1e12, "s"),
    "stragglers": NumberInput(0, 1e6, default=0.0, whole=True),
    "burst": NumberInput(1, 1e6, default=1.0, whole=True),
    "window": NumberInput(1, 1e6, default=2.0, whole=True),
    "straggling_time": NumberInput(0, 1e12, "s", default=0.0),
    "straggling": NumberInput(0, 1e6, default=0.0),
    "exchange_time": NumberInput(0, 1e12, "s", default=0.0),
}
_OVER_ROUNDS = tuple(map(SCHEMES.index, ("sr-sgc", "m-sgc")))
_NOTHING = Duty(Fraction(1), 0, 0)
"""Placeholder for infeasible rows, so that their numbers are defined."""


class GradientCoding(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Load of a gradient code and exact round times, with shifted exponential worker times.

    A worker takes ``load`` x ``work_time`` plus an exponential delay, whose mean is
    ``straggling_time`` plus ``straggling`` times ``load`` x ``work_time``. ``cyclic`` waits for all
    workers but ``tolerated``, ``replicated`` for the first of each group. ``ignoring`` also waits
    for all but ``tolerated`` and loses the others' gradients; ``gradient_time`` is the time per
    complete gradient. ``sr-sgc`` and ``m-sgc`` spread work over rounds; their times are a
    ``lower_bound`` that assumes the straggler pattern of the code, and gradients are known after
    ``delay`` further rounds.

    Inputs:
        work_time: time of one worker for all data.
        burst, window: burst length and window of the sequential codes, in rounds.
        straggling: part of the mean delay that grows with the work, as a share of the time of
            the work.
        exchange_time: time of the exchange in each round.

    Limits:
        Not modelled: persistently slow workers, decoding time, a code's rounding errors.

    Error:
        Loads agree in the printed digits. Times are exact for shifted exponentials, otherwise
        within 1 % of Monte Carlo; for codes over several rounds they are a lower bound.

    Example:
        options: {work_time: 60, straggling_time: 60}
        parameters: {scheme: [cyclic, replicated], workers: [12], stragglers: [2, 4]}

    Source:
        Tandon et al.: Gradient Coding, 2017; Krishnan et al.: Sequential Gradient Coding for
        Straggler Mitigation, 2023; Lee et al.: Speeding Up Distributed Machine Learning Using
        Codes, 2018 (shifted exponentials).
    """

    workers: int | None = None
    work_time: float | str | None = None
    straggling_time: float | str | None = None
    straggling: float | None = None
    exchange_time: float | str | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return load and round times of n gradient codes, (n,) by metric."""
        scheme = inputs["scheme"]
        load, tolerated, delay, faults = _duties(inputs)
        crowd = Crowd(
            workers=inputs["workers"],
            tolerated=tolerated,
            grouped=scheme == SCHEMES.index("replicated"),
        )
        work_s = load * inputs["work_time"]
        tail_s = inputs["straggling_time"] + inputs["straggling"] * work_s
        fixed_s = work_s + inputs["exchange_time"]
        parts = {
            "computing_time": work_s,
            "straggling_time": tail_s * crowd.mean(),
            "exchanging_time": inputs["exchange_time"],
        }
        round_s = fixed_s + parts["straggling_time"]
        lost = np.where(scheme == SCHEMES.index("ignoring"), tolerated / inputs["workers"], 0.0)
        return Metrics(
            columns={
                **parts,
                "round_time": round_s,
                **{
                    f"round_{name}": fixed_s + tail_s * crowd.quantile(chance)
                    for name, chance in _CHANCES.items()
                },
                "gradient_time": round_s / (1.0 - lost),
                "gradient_share": 1.0 - lost,
                "load": load,
                "tolerated": tolerated,
                "delay": delay,
                "lower_bound": np.isin(scheme, _OVER_ROUNDS).astype(np.float64),
                "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
            },
            failures=faults,
        )


def _duties(inputs: Mapping[str, Floats]) -> tuple[Floats, Floats, Floats, dict[int, Failure]]:
    """Return load, tolerated stragglers and delay of n designs, and faults; equal codes once."""
    columns = np.stack([inputs[name] for name in _CODE], axis=1)
    codes, place = np.unique(columns, axis=0, return_inverse=True)
    found = [_duty(*map(int, code)) for code in codes.tolist()]
    duties = [one if isinstance(one, Duty) else _NOTHING for one in found]
    table = np.array([[float(part) for part in one] for one in duties]).reshape(-1, 3)[place]
    faults = infeasible_rows(found[at] for at in place.tolist())
    return table[:, 0], table[:, 1], table[:, 2], faults


def _duty(scheme: int, workers: int, stragglers: int, burst: int, window: int) -> Duty | str:
    code = Code(workers=workers, stragglers=stragglers, burst=burst, window=window)
    return duty(SCHEMES[scheme], code)
