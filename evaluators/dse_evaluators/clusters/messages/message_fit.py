"""Fit of a machine's constants to round trips of strided messages, and its held-out error."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.messages.message_machine import FittedMachine
from dse_evaluators.clusters.messages.message_methods import message_times
from dse_evaluators.csv_files.csv_records import read_rows

TABLE = Path(__file__).with_name("message_times.csv")
_NAMES = ("launch", "sector_time", "block_time", "host_link", "host_latency")
_START = (6e-6, 1e-10, 1e-5, 5e10, 2e-6)
_HOST_BANDWIDTH = 23e9
"""Assumed: two ports of EDR InfiniBand are 25 GB/s before overheads."""
_COPY_LATENCY = 1e-5
"""Assumed; only the method ``staged`` needs it, which was not measured."""


Point = tuple[str, int, int]
"""Method, bytes of the message, and bytes of a block."""


def measured_times(machine: str) -> dict[Point, float]:
    """Return the one-way times of a machine [s]: half of the round trips of the table."""
    return {
        (row["method"], int(row["size"]), int(row["block"])): float(row["round_trip_s"]) / 2
        for row in read_rows(TABLE)
        if row["machine"] == machine
    }


def split_points(times: Mapping[Point, float]) -> tuple[list[Point], list[Point]]:
    """Return the strided messages to fit to, and those held out: the largest size."""
    stride = max(block for _, _, block in times)
    largest = max(size for _, size, _ in times)
    strided = [point for point in times if point[2] < stride]
    return [p for p in strided if p[1] < largest], [p for p in strided if p[1] == largest]


def fit_machine(machine: str) -> FittedMachine:
    """Return the constants that fit the messages of all sizes but the largest.

    The times of contiguous messages between devices are those of the table, as a machine's own
    measurement of them would give.
    """
    from scipy.optimize import least_squares  # slow to import, and only this needs it

    times = measured_times(machine)
    stride = max(block for _, _, block in times)
    sent = sorted((size, t) for (m, size, b), t in times.items() if m == "device" and b == stride)
    fitted, _ = split_points(times)

    def built(logs: Floats) -> FittedMachine:
        return FittedMachine(
            name=machine,
            host_bandwidth=_HOST_BANDWIDTH,
            copy_latency=_COPY_LATENCY,
            device_messages=tuple((float(size), time) for size, time in sent),
            **dict(zip(_NAMES, np.exp(logs).tolist(), strict=True)),
        )

    def deviations(logs: Floats) -> Floats:
        return np.log(modelled_times(built(logs), fitted) / np.array([times[p] for p in fitted]))

    found = least_squares(deviations, np.log(_START), loss="soft_l1", f_scale=0.1)
    return built(found.x)


def modelled_times(machine: FittedMachine, points: list[Point]) -> Floats:
    """Return the modelled one-way times of messages [s], (n,)."""
    rows = []
    for method, size, block in points:
        one = np.array([float(size)]), np.array([float(block)])
        rows.append(message_times(machine, method, *one)["time"][0])
    return np.array(rows)
