"""Helpers for evaluating a batch: each distinct design once, or grouped by shared values."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Metrics
from dse.core.values import Ints, Mask, Value


def evaluate_distinct(
    batch: Batch, names: Iterable[str], evaluate: Callable[[Batch], Metrics]
) -> Metrics:
    """Return the metrics of n designs, evaluating those with equal values of ``names`` once.

    Where finding equal designs costs more than it saves, each is evaluated (see
    ``Batch.distinct``).
    """
    among = batch.distinct(names)
    found = evaluate(batch if among.place is None else batch.take(among.rows))
    return Metrics(
        columns={name: among.spread(values) for name, values in found.columns.items()},
        failures=among.spread_rows(found.failures),
    )


def row_by_row(
    designs: Sequence[Mapping[str, float]],
    provides: Collection[str],
    compute: Callable[[Mapping[str, float]], Mapping[str, float] | str],
) -> Metrics:
    """Return the metrics of n designs, evaluating equal designs once.

    Args:
        designs: the inputs of each design by name, all with the same names in the same order.
        provides: the names of the metrics.
        compute: computes the metrics of one design, or returns the reason why it is infeasible.
    """
    keys = [tuple(design.values()) for design in designs]
    seen = {key: compute(design) for key, design in dict(zip(keys, designs, strict=True)).items()}
    found = [seen[key] for key in keys]
    columns = {
        name: np.array([0.0 if isinstance(one, str) else one[name] for one in found])
        for name in provides
    }
    return Metrics(columns=columns, failures=infeasible_rows(found))


def infeasible_rows(found: Iterable[object]) -> dict[int, Failure]:
    """Mark the designs whose result is a text as infeasible; return the marks by index.

    The string is the reason why the design is infeasible; other results have no fault.
    """
    return {
        row: Failure(kind="infeasible", reason=one)
        for row, one in enumerate(found)
        if isinstance(one, str)
    }


def infeasible(rows: Mask, reason: Callable[[int], str]) -> dict[int, Failure]:
    """Mark the designs where the mask is true as infeasible; return the marks by index.

    ``reason`` gives the message for a design's index.
    """
    return {
        row: Failure(kind="infeasible", reason=reason(row)) for row in np.flatnonzero(rows).tolist()
    }


def groups(batch: Batch, usual: Mapping[str, str]) -> Iterator[tuple[tuple[str, ...], Ints]]:
    """Yield each combination of values in some columns, with the designs that have it.

    The designs are given by index. ``usual`` maps each column to the default that is used if the
    batch lacks the column.
    """
    codes, words = np.zeros(len(batch), dtype=np.int64), [tuple[str, ...]()]
    for name, otherwise in usual.items():
        own, found = _places(batch, name, otherwise)
        codes = codes * len(own) + found
        words = [(*before, str(each)) for before in words for each in own]
    for code in np.unique(codes).tolist():
        yield words[code], np.flatnonzero(codes == code)


def _places(batch: Batch, name: str, otherwise: str) -> tuple[Sequence[Value], Ints]:
    """Return the sorted distinct values of a column, and each design's index into them, (n,)."""
    values = batch.get(name, otherwise).tolist()
    own = sorted(set(values))
    places = {each: place for place, each in enumerate(own)}
    return own, np.fromiter(map(places.__getitem__, values), dtype=np.int64, count=len(values))


def fix_columns(batch: Batch, values: Mapping[str, Value]) -> Batch:
    """Return the batch with some columns set to one value each, replacing existing ones."""
    code = np.zeros(len(batch), dtype=np.int64)
    return batch.with_columns({k: Column.coded((value,), code) for k, value in values.items()})


def gather_parts(
    size: int, provides: Collection[str], parts: Iterable[tuple[Ints, Metrics]]
) -> Metrics:
    """Merge metrics of separate sets of designs into those of all ``size`` designs.

    Each of ``parts`` is the indices of some designs and their metrics. Metrics of designs in no
    part are NaN.
    """
    columns = {name: np.full(size, np.nan) for name in provides}
    failures: dict[int, Failure] = {}
    undefined: dict[str, dict[int, str]] = {}
    for rows, found in parts:
        for name in columns.keys() & found.columns.keys():
            columns[name][rows] = found.columns[name]
        failures |= {int(rows[at]): failure for at, failure in found.failures.items()}
        for name, reasons in found.undefined.items():
            placed = {int(rows[at]): reason for at, reason in reasons.items()}
            undefined.setdefault(name, {}).update(placed)
    return Metrics(columns=columns, failures=failures, undefined=undefined)
