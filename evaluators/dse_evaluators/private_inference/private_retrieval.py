"""The evaluator ``private.retrieval``: private look-ups in a table with a hot part."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from math import ceil, log2
from pathlib import Path
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.alike import row_by_row
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.private_inference.lookup_trace import (
    MOVIELENS,
    LookupTrace,
    read_trace,
    recovered_share,
)
from dse_evaluators.private_inference.retrieval_rates import PUBLISHED_RATES, rate_at, read_rates
from dse_evaluators.reading_table import NumberInput, Reading, Readings, one_of

INPUTS: Mapping[str, Reading] = {
    "hot_share": NumberInput(0, 1, default=0.0),
    "hot_queries": NumberInput(0, 256, default=1, whole=True),
    "cold_queries": NumberInput(0, 256, default=1, whole=True),
    "bins": NumberInput(1, 256, default=1, whole=True),
    "neighbours": NumberInput(0, 5, default=0, whole=True),
    "device": one_of(("v100", "cpu-32-threads"), "v100"),
    "prf": one_of(("aes128", "salsa20", "chacha20"), "aes128"),
}
METRICS = (
    Metric(name="recovered", goal="maximize"),
    Metric(name="evaluations", goal="minimize"),
    Metric(name="traffic", unit="B", goal="minimize"),
    Metric(name="computation_gain", goal="maximize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
)


class PrivateRetrieval(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="1"):
    """Private look-ups in a table, by distributed point functions that hide them from the server.

    A hot table holds the entries looked up most often, a cold table all entries. Each table is
    divided into bins, and an inference sends a fixed number of queries to each bin, so that the
    server learns nothing. A look-up in a bin without a remaining query is lost. ``recovered`` is
    the share of look-ups that are not lost, on the half of the users whose look-ups did not
    determine the hot table; ``evaluations`` is the number of entries that the queries of an
    inference scan. ``computation_gain`` is relative to one query of the entire table for each
    look-up, ``throughput`` is in inferences per second.

    Args:
        trace: CSV file with the columns ``user`` and ``item``, or ``movielens``, an asset.
        lookups: look-ups of an inference.
        entry_bytes: bytes of an entry.
        sessions: largest number of inferences on which a design is evaluated.
        table_entries: number of entries of the deployed table, for rates and traffic; by default
            the number of entries of the trace.
        rates: CSV file of rates that you measured, with the columns ``device``, ``prf``,
            ``entries`` (of the table) and ``rate_per_s`` (queries per second), whose devices and
            functions replace the published ones.

    Inputs:
        hot_share: share of the entries that the hot part holds.
        hot_queries: queries to each bin of the hot part.
        cold_queries: queries to each bin of the cold part.
        bins: bins of each part.
        neighbours: number of entries, often looked up together, that are stored with each entry.
        device, prf: device and pseudorandom function of the rates. Of the published ones, the CPU
            has rates of ``aes128`` alone.

    Limits:
        Rates were published for one batch size, and are interpolated between table sizes. Latency
        is not modelled, nor the loss of accuracy of lost look-ups. A trace is simulated for each
        design: tens of milliseconds.

    Error:
        Rates equal the published rates. ``recovered`` is counted on one trace, and holds for that
        trace alone.

    Source:
        Lam et al.: GPU-based Private Information Retrieval for On-Device Machine Learning
        Inference, 2023, and its published artifact: rates. Harper, Konstan: The MovieLens Datasets,
        2015.

    Example:
        files:
          trace.csv: |
            user,item
            1,1
            1,2
            2,1
            2,3
            3,1
            3,2
            4,3
            4,1
        options: {trace: trace.csv, lookups: 2}
        parameters: {hot_share: [0.0, 0.4], cold_queries: [1, 2], bins: [1, 2]}
        objectives: {evaluations: minimize, recovered: maximize}

    Raises:
        SpecError: the trace cannot be read, or an input is invalid.
        PluginError: a count is invalid, or the asset is not installed.
    """

    user_options: ClassVar[Sequence[str]] = ("trace", "rates")

    trace: str = MOVIELENS
    lookups: int = 12
    entry_bytes: int = 256
    sessions: int = 400
    table_entries: int | None = None
    rates: str | None = None
    device: str | None = None
    prf: str | None = None

    def __post_init__(self) -> None:
        for name in ("lookups", "entry_bytes", "sessions"):
            check_count(name, getattr(self, name), least=1)
        if self.table_entries is not None:
            check_count("table_entries", self.table_entries, least=1)
        if self.trace != MOVIELENS and not Path(self.trace).is_file():
            hint = f"a CSV file with the columns user and item, or {MOVIELENS}"
            raise SpecError(f"there is no file {self.trace}", hint=hint, part=["trace"])
        self._rates = read_rates(PUBLISHED_RATES if self.rates is None else Path(self.rates))
        self._devices = tuple(dict.fromkeys(device for device, _ in self._rates))
        self._prfs = tuple(dict.fromkeys(prf for _, prf in self._rates))
        choices = {"device": one_of(self._devices, self._devices[0])}
        choices["prf"] = one_of(self._prfs, self._prfs[0])
        self.declare(Readings.of({**INPUTS, **choices}, self))
        self.version = "-".join(filter(None, (type(self).version, self._edition())))

    def _edition(self) -> str:
        """Return a hash of the user's rates, or an empty text for the published ones."""
        if self.rates is None:
            return ""
        rows = {key: rows.tolist() for key, rows in self._rates.items()}
        return hashlib.sha256(repr(rows).encode()).hexdigest()[:12]

    @cached_property
    def _trace(self) -> LookupTrace:
        return read_trace(self.trace, self.lookups, self.sessions)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, simulating equal ones once."""
        return row_by_row(self._readings.rows(batch), self.provides, self._compute)

    def _compute(self, design: Mapping[str, float]) -> Mapping[str, float] | str:
        bins, near = int(design["bins"]), int(design["neighbours"])
        queries = int(design["hot_queries"]), int(design["cold_queries"])
        trace = self._trace
        hot = round(design["hot_share"] * trace.entries)
        parts = (trace.order[:hot], trace.order)
        tables = [
            (part, min(bins, len(part)), count)
            for part, count in zip(parts, queries, strict=True)
            if len(part) and count
        ]
        pair = self._devices[int(design["device"])], self._prfs[int(design["prf"])]
        rates = self._rates.get(pair)
        if rates is None:
            return f"{pair[0]} has no rates of {pair[1]}"
        if not tables:
            return "no table has a query"
        if queries[1] == 0:
            return "the cold part has no query, so that its entries cannot be retrieved"
        return self._costs(tables, near, rates) | {
            "recovered": recovered_share(trace, tables, near)
        }

    def _costs(
        self, tables: Sequence[tuple[np.ndarray, int, int]], near: int, rates: Floats
    ) -> dict[str, float]:
        trace, scale = self._trace, 1.0
        if self.table_entries is not None:
            scale = self.table_entries / trace.entries
        evaluations = traffic = seconds = 0.0
        for part, bins, count in tables:
            entries = len(part) * scale
            size = max(entries / bins, 2.0)
            evaluations += count * entries
            key_bytes = ceil(16 * 4 * log2(size))
            traffic += count * bins * (key_bytes + self.entry_bytes * (1 + near))
            seconds += count * bins / rate_at(size, rates)
        return {
            "evaluations": evaluations,
            "traffic": traffic,
            "computation_gain": self.lookups * trace.entries * scale / evaluations,
            "throughput": 1.0 / seconds,
        }
