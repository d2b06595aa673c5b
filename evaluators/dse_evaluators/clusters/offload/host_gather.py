"""The evaluator ``clusters.host-gather``: scattered rows of host memory, brought to a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_ACCESSES = ("staged", "direct", "aligned")
_STAGED, _DIRECT, _ALIGNED = range(3)
LINE_BYTES = 128
"""Bytes of a cache line of the device: the largest read request, and what a warp loads at once."""
SECTOR_BYTES = 32
"""Bytes of a sector of a line: the smallest read request."""

_INPUTS: Mapping[str, Reading] = {
    "access": one_of(_ACCESSES),
    "rows": NumberInput(1, 1e12, whole=True),
    "row_size": NumberInput(4, 1 << 20, "B", whole=True),
    "table_rows": NumberInput(1, 1e13, default=1e6, whole=True),
    "threads": NumberInput(1, 4096, default=1, whole=True),
    "thread_bandwidth": NumberInput(1e6, 1e13, "B/s", default=6e9),
    "host_bandwidth": NumberInput(1e6, 1e15, "B/s", default=100e9),
    "link_bandwidth": NumberInput(1e6, 1e14, "B/s", default=15.75e9),
    "header": NumberInput(0, 256, "B", default=18),
    "round_trip": NumberInput(1e-9, 1, "s", default=1.3e-6),
    "outstanding": NumberInput(1, 1 << 20, default=256, whole=True),
    "compute_time": NumberInput(0, 1e6, "s", default=0),
}
_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    Metric(name="transfer_time", unit="s", goal="minimize"),
    Metric(name="gather_time", unit="s", goal="minimize"),
    Metric(name="cpu_time", unit="s", goal="minimize"),
    Metric(name="requests", goal="minimize"),
    Metric(name="link_traffic", unit="B", goal="minimize"),
    Metric(name="pinned_memory", unit="B", goal="minimize"),
    Metric(name="saving", goal="maximize"),
)


class HostGather(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time to bring scattered rows of a table in host memory to a device, by who gathers them.

    With ``staged``, threads of the host copy the rows into a buffer, which then crosses the link.
    With ``direct``, a kernel of the device reads the rows through the link: a warp loads 128 B at a
    time from the start of the row, and sends a read request for each line of 128 B that it
    touches, for whole sectors of 32 B. With ``aligned``, the warps start at multiples of 128 B
    instead, so that no line is requested twice. Rows follow each other without gaps, and all are
    equally likely. Requests are limited by the bandwidth of the link with their headers, and by
    their number in flight. ``saving`` is the share of the transfer time of ``staged`` that the
    design saves, and ``pinned_memory`` the buffer, or the table if the device reads it.

    Args:
        knobs: inputs that all designs share, such as ``{rows: 100000, link_bandwidth: 32 GB/s}``.

    Inputs:
        access: ``staged``, ``direct``, or ``aligned``.
        rows: rows of a batch.
        row_size: bytes of a row.
        table_rows: rows of the table.
        threads: threads of the host that gather with ``staged``, which ``saving`` compares with.
        thread_bandwidth: bytes of rows that a thread gathers in a second; ``kernels.gather``
            measures it on your machine.
        host_bandwidth: bandwidth of the host's memory, which gathered rows cross twice.
        link_bandwidth: bandwidth of the link, with headers.
        header: bytes of the header of a packet on the link.
        round_trip: time from a read request to its data.
        outstanding: read requests in flight.
        compute_time: time of the rest of the step, which does not overlap with the transfer.

    Limits:
        No caches: rows that a batch needs twice are read twice. Kernel launches and page faults
        take no time. The bandwidth of the host's memory does not limit ``direct``. The default
        ``thread_bandwidth`` was measured with ``numpy.take`` on one core of an AMD EPYC, with rows
        of 400 to 3,200 B of a table of 1 GB (5.4 to 6.7 GB/s); rows of 64 B reached 2.0 GB/s. The
        default ``host_bandwidth`` is assumed; those of the link are of PCIe 3.0 x16.

    Error:
        Not validated: no measurement was available. The mean saving of PyTorch-Direct is compared
        in ``studies/reproductions/pytorch_direct.yaml``.

    Source:
        Min et al.: PyTorch-Direct, arXiv 2101.07956, 2021; requests, headers and round trips: Min
        et al., EMOGI, VLDB 2021, recalled and not read again.

    Example:
        options: {knobs: {rows: 100000, table_rows: 2400000}}
        parameters: {access: [staged, direct, aligned], row_size: [400, 512], threads: [1, 8]}

    Raises:
        SpecError: a knob has an invalid value.
    """

    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); more rows than the table has are infeasible."""
        inputs = self.readings.columns(batch)
        many = np.flatnonzero(inputs["rows"] > inputs["table_rows"]).tolist()
        failure = Failure(kind="infeasible", reason="a batch has more rows than the table")
        return Metrics(columns=_compute(inputs), failures=dict.fromkeys(many, failure))


def _compute(inputs: Mapping[str, Floats]) -> dict[str, Floats]:
    staged = inputs["access"] == _STAGED
    gathered = inputs["rows"] * inputs["row_size"]
    rate = np.minimum(inputs["threads"] * inputs["thread_bandwidth"], inputs["host_bandwidth"] / 2)
    gather_s = gathered / rate
    packets = np.ceil(gathered / LINE_BYTES)
    copied = gathered + packets * inputs["header"]
    per_row, moved = count_requests(inputs["row_size"], inputs["access"] == _ALIGNED)
    requests = inputs["rows"] * per_row
    read = inputs["rows"] * moved + requests * inputs["header"]
    staged_s = gather_s + copied / inputs["link_bandwidth"]
    waited_s = requests * inputs["round_trip"] / inputs["outstanding"]
    direct_s = np.maximum(read / inputs["link_bandwidth"], waited_s)
    transfer_s = np.where(staged, staged_s, direct_s)
    pinned_rows = np.where(staged, inputs["rows"], inputs["table_rows"])
    return {
        "step_time": transfer_s + inputs["compute_time"],
        "transfer_time": transfer_s,
        "gather_time": np.where(staged, gather_s, 0.0),
        "cpu_time": np.where(staged, gather_s * inputs["threads"], 0.0),
        "requests": np.where(staged, packets, requests),
        "link_traffic": np.where(staged, copied, read),
        "pinned_memory": pinned_rows * inputs["row_size"],
        "saving": 1 - transfer_s / staged_s,
    }


def count_requests(row_bytes: Floats, aligned: Floats | np.ndarray) -> tuple[Floats, Floats]:
    """Return the read requests of one row of a table, and the bytes of their sectors, (n,).

    Both numbers are means over the places in a line at which rows of a dense table start.
    """
    # Many designs share few sizes, and each size needs LINE_BYTES numbers.
    sizes, places = np.unique(row_bytes, return_inverse=True)
    starts = (np.arange(LINE_BYTES)[:, None] * sizes) % LINE_BYTES  # (128, sizes)
    loads, rest = np.divmod(sizes, LINE_BYTES)
    counts: list[Floats] = []
    for unit in (LINE_BYTES, SECTOR_BYTES):
        whole = _count_units(starts, sizes, unit).mean(axis=0)
        split = loads * _count_units(starts, float(LINE_BYTES), unit)
        split += np.where(rest > 0, _count_units(starts, rest, unit), 0.0)
        counts.append(np.where(aligned, whole[places], split.mean(axis=0)[places]))
    requests, sectors = counts
    return requests, SECTOR_BYTES * sectors


def _count_units(starts: Floats, length: Floats | float, unit: int) -> Floats:
    """Return how many units of memory the bytes from ``starts`` on touch."""
    return np.ceil((starts + length) / unit) - np.floor(starts / unit)
