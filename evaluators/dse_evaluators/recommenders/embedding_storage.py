"""The evaluator ``recommenders.storage``: tables in DRAM, on an SSD, or added up inside of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_PLACEMENTS = ("dram", "ssd", "near-data")
_DRAM, _SSD, _NEAR_DATA = range(3)
_INPUTS: Mapping[str, Reading] = {
    "placement": one_of(_PLACEMENTS),
    "batch": NumberInput(1, 1 << 20, whole=True),
    "tables": NumberInput(1, 1 << 16, whole=True),
    "lookups": NumberInput(1, 1 << 16, whole=True),
    "rows": NumberInput(1, 1e12, default=1e6, whole=True),
    "row_size": NumberInput(1, 1 << 16, "B", default=128),
    "cached_rows": NumberInput(0, 1e12, default=0, whole=True),
    "skew": NumberInput(0, 4, default=0),
    "rows_per_page": NumberInput(1, 1 << 12, default=1),
    "page_size": NumberInput(512, 1 << 20, "B", default=16384),
    "channels": NumberInput(1, 1024, default=8, whole=True),
    "dense_time": NumberInput(0, 1e4, "s", default=0),
    "channel_bandwidth": NumberInput(1e3, 1e12, "B/s", default=200e6),
    "link_bandwidth": NumberInput(1e3, 1e13, "B/s", default=2e9),
    "dram_bandwidth": NumberInput(1e3, 1e14, "B/s", default=20e9),
    "command_time": NumberInput(0, 1, "s", default=8e-6),
    "row_time": NumberInput(0, 1, "s", default=0.35e-6),
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="dram", unit="B", goal="minimize"),
    Metric(name="hit_rate", goal="maximize"),
    Metric(name="speedup", goal="maximize"),
)


class EmbeddingStorage(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time of a batch of recommendations, by where the embedding tables are.

    A sample looks up ``lookups`` rows of each table and adds them. Rows that the host caches come
    from its DRAM, others from pages of the SSD. With ``ssd``, each page is a command that crosses
    the link; the firmware handles them one after the other. With ``near-data`` the SSD adds the
    rows itself, two commands a table, and only sums cross the link. ``dram`` is the size of the
    rows in DRAM, ``throughput`` the samples a second, and ``speedup`` the time with ``ssd`` and the
    same cache over the time of the design.

    Args:
        knobs: inputs that all designs share, such as ``{tables: 8, lookups: 80}``.

    Inputs:
        placement: ``dram``, ``ssd``, or ``near-data``.
        batch: samples of a batch.
        tables: number of tables.
        lookups: rows of each table that a sample looks up.
        rows: rows of each table.
        row_size: bytes of a row.
        cached_rows: most popular rows of each table that the host's DRAM holds; not with ``dram``.
        skew: exponent of Zipf's law of the rows' popularity; 0: all alike.
        rows_per_page: rows of a page that is read that are needed; above 1 with a layout by use.
        dense_time: time of the rest of the model for a batch.
        channel_bandwidth: bandwidth of a flash channel.
        link_bandwidth: bandwidth between SSD and host.
        command_time: time of the firmware for a command.
        row_time: time of the firmware to add a row.

    Limits:
        The time of the dense layers does not overlap with the lookups. No queue of other requests,
        no writes. The default constants are of an SSD with ARM firmware and eight channels;
        ``link_bandwidth`` and ``dram_bandwidth`` are assumed.

    Error:
        Not validated: the measurements of the paper are not public; its doubled speed is compared
        as a direction (``studies/reproductions/recssd.yaml``).

    Source:
        Wilkening et al.: RecSSD, ASPLOS 2021, sections 3 and 4.

    Example:
        options: {knobs: {tables: 8, lookups: 80, skew: 0.8}}
        parameters: {placement: [ssd, near-data], batch: [1, 16], cached_rows: [0, 10000]}

    Raises:
        SpecError: a knob has an invalid value.
    """

    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); a cache beside tables in DRAM is infeasible."""
        inputs = self.readings.columns(batch)
        in_dram = inputs["placement"] == _DRAM
        idle = np.flatnonzero(in_dram & (inputs["cached_rows"] > 0)).tolist()
        reason = "cached_rows has no effect with the placement dram, which holds all rows"
        failure = Failure(kind="infeasible", reason=reason)
        return Metrics(columns=_compute(inputs), failures=dict.fromkeys(idle, failure))


def _compute(inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    in_dram, near = inputs["placement"] == _DRAM, inputs["placement"] == _NEAR_DATA
    sums = inputs["batch"] * inputs["tables"]
    lookups = sums * inputs["lookups"]
    hit_rate = np.where(in_dram, 1.0, _find_hit_rate(inputs))
    host_s = hit_rate * lookups * inputs["row_size"] / inputs["dram_bandwidth"]
    missed = (1 - hit_rate) * lookups
    plain_s = _read_pages_s(inputs, missed)
    own_s = np.where(near, _gather_in_ssd_s(inputs, missed, sums), plain_s)
    dense_s = inputs["dense_time"] + host_s
    held = np.where(in_dram, inputs["rows"], np.minimum(inputs["cached_rows"], inputs["rows"]))
    latency = own_s + dense_s
    return {
        "latency": latency,
        "throughput": inputs["batch"] / latency,
        "dram": held * inputs["tables"] * inputs["row_size"],
        "hit_rate": hit_rate,
        "speedup": (plain_s + dense_s) / latency,
    }


def _read_pages_s(inputs: Mapping[str, Floats], missed: Floats) -> Floats:
    """Return the time in which the host reads the pages of the missed rows, one at a time."""
    pages = missed / inputs["rows_per_page"]
    across_s = inputs["page_size"] / inputs["link_bandwidth"]
    return pages * (_page_s(inputs) + inputs["command_time"] + across_s)


def _gather_in_ssd_s(inputs: Mapping[str, Floats], missed: Floats, sums: Floats) -> Floats:
    """Return the time in which the SSD reads and adds the missed rows and sends the sums."""
    pages = missed / inputs["rows_per_page"]
    across_s = sums * inputs["row_size"] / inputs["link_bandwidth"]
    stages = (pages * _page_s(inputs), missed * inputs["row_time"], across_s)
    commands_s = 2 * inputs["tables"] * inputs["command_time"]
    return np.where(missed > 0, np.maximum.reduce(stages) + commands_s, 0.0)


def _page_s(inputs: Mapping[str, Floats]) -> Floats:
    """Return the time of a page if the channels share the pages evenly."""
    return inputs["page_size"] / (inputs["channel_bandwidth"] * inputs["channels"])


_SUMMED = 16
"""Terms of the harmonic sum that are added; the rest is integrated."""


def _find_hit_rate(inputs: Mapping[str, Floats]) -> Floats:
    """Return the share of lookups that go to the cached rows, the most popular ones."""
    cached = np.minimum(inputs["cached_rows"], inputs["rows"])
    return sum_popularity(cached, inputs["skew"]) / sum_popularity(inputs["rows"], inputs["skew"])


def sum_popularity(rows: Floats, skew: Floats) -> Floats:
    """Return the sum of i ** -skew over the first rows, (n,), to a relative error of 1e-4.

    Source:
        Euler-Maclaurin formula to its first correction: Abramowitz, Stegun, 1964, 23.1.30.
    """
    found = np.zeros(np.broadcast(rows, skew).shape)
    for place in range(1, _SUMMED + 1):
        found += np.where(place <= rows, float(place) ** -skew, 0.0)
    last = np.maximum(rows, _SUMMED)
    is_one = np.isclose(skew, 1.0)
    power = np.where(is_one, 0.5, 1 - skew)  # 0.5: replaced below
    integral = np.where(
        is_one, np.log(last / _SUMMED), (last**power - float(_SUMMED) ** power) / power
    )
    return found + integral + (last**-skew - float(_SUMMED) ** -skew) / 2
