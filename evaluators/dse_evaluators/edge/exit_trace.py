"""Trace of the exits of a network that was run on examples: entropies and hits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import CsvRow, check_columns, open_csv, parse_number

SPLITS = ("search", "test")

_COLUMNS = "split,entropy_1,entropy_2,hit_1,hit_2: the splits search and test, a row per example"

_LEAST_EXITS = 2

_BINS = 20
"""Number of bins of the entropy after the first layer; each bin has a prediction."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitTrace:
    """Exits of a network with l layers on m examples of one split."""

    entropies: Floats  # (m, l), nat
    hits: Floats  # (m, l), 1 where the exit's prediction is right

    def exits(self, threshold: float) -> Ints:
        """Return the layer, from 1, at which each example stops, (m,).

        Args:
            threshold: entropy [nat] below which an exit is taken; the last exit is always taken.
        """
        sure = self.entropies < threshold
        sure[:, -1] = True
        return sure.argmax(axis=1) + 1

    def accuracy_at(self, layers: Ints) -> float:
        """Return the share of examples that are right at these exits, (m,)."""
        return float(self.hits[np.arange(len(layers)), layers - 1].mean())


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitTable:
    """Table that predicts the exit of an example from its entropy after the first layer."""

    edges: Floats  # (bins - 1,), nat
    layers: Ints  # (bins,)

    @staticmethod
    def of(trace: ExitTrace, threshold: float, quantile: float) -> ExitTable:
        """Return the table of the examples of a trace.

        Args:
            trace: examples other than those that the table is used on.
            threshold: entropy [nat] below which an exit is taken.
            quantile: share of the examples of a bin that stop no later than its prediction.
        """
        first, exits = trace.entropies[:, 0], trace.exits(threshold)
        edges = np.unique(np.quantile(first, np.arange(1, _BINS) / _BINS))
        place = np.searchsorted(edges, first, side="right")
        layers = [
            _quantile(exits[place == one], quantile, trace.hits.shape[1])
            for one in range(len(edges) + 1)
        ]
        return ExitTable(edges=edges, layers=np.array(layers))

    def predict(self, first: Floats) -> Ints:
        """Return the predicted exits, (m,), for entropies after the first layer, (m,)."""
        return self.layers[np.searchsorted(self.edges, first, side="right")]


def _quantile(exits: Ints, quantile: float, most: int) -> int:
    if not len(exits):
        return most
    return int(np.ceil(np.quantile(exits, quantile, method="inverted_cdf")))


def read_exit_traces(path: Path) -> dict[str, ExitTrace]:
    """Return the trace of each split of a CSV file.

    Args:
        path: the file; its columns are ``split``, ``entropy_1`` and so on for each layer, and
            ``hit_1`` and so on, 1 where the exit is right.

    Raises:
        SpecError: there is no such file, a column is missing, a value is no number, an entropy is
            negative, a hit is neither 0 nor 1, or a split has no example.
    """
    table = open_csv(path, _COLUMNS)
    count = sum(name.startswith("entropy_") for name in table.names)
    wanted = [f"{what}_{at}" for what in ("entropy", "hit") for at in range(1, count + 1)]
    check_columns(table.names, ("split", *wanted), path, _COLUMNS)
    if count < _LEAST_EXITS:
        raise SpecError("there are fewer than two exits", where=f"{path}:1", hint=_COLUMNS)
    rows = list(table.rows)
    numbers = np.array([_read_numbers(row, wanted) for row in rows])
    splits = np.array([row.cells["split"] for row in rows])
    for split in SPLITS:
        if not (splits == split).any():
            raise SpecError(f"{path} has no example of the split {split!r}", hint=_COLUMNS)
    return {
        split: ExitTrace(
            entropies=numbers[splits == split, :count], hits=numbers[splits == split, count:]
        )
        for split in SPLITS
    }


def _read_numbers(row: CsvRow, names: list[str]) -> list[float]:
    found = [parse_number(row, name, 0) for name in names]
    for name, value in zip(names, found, strict=True):
        if name.startswith("hit_") and value not in (0, 1):
            raise SpecError(f"{name} is {row.cells[name]!r}", where=row.place, hint="0 or 1")
    return found
