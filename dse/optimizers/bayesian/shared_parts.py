"""Merging of the measured parameters of one design with the other parameters of another."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.space import DesignSpace
from dse.core.values import Ints, Mask


def merge_parts(
    space: DesignSpace,
    measured: Batch,  # n designs
    free: Batch,  # n designs
    part: frozenset[str],
) -> tuple[Batch, Mask]:
    """Merge two batches of n designs, design by design.

    The parameters of ``part`` come from ``measured``, all others from ``free``.

    Returns:
        The n designs, and which of them are legal, (n,).
    """
    columns = {
        parameter.name: (measured if parameter.name in part else free).columns[parameter.name]
        for parameter in space.parameters
    }
    batch = Batch(columns, len(measured))
    return batch, _legal(space, batch, part)


def pair_parts(
    space: DesignSpace, measured: Batch, free: Batch, part: frozenset[str]
) -> tuple[Batch, Mask]:
    """Merge the measured parameters of each design with each set of free parameters.

    Free parameters are those that no measurement reads. The result has the form of
    :func:`merge_parts`, for all pairs; the free parameters vary fastest.
    """
    first = np.repeat(np.arange(len(measured)), len(free))
    second = np.tile(np.arange(len(free)), len(measured))
    return merge_parts(space, measured.take(first), free.take(second), part)


def keys(batch: Batch, names: Sequence[str]) -> list[bytes]:
    """Return one key per design, equal for designs with equal values of the named parameters."""
    if not names:
        return [b""] * len(batch)
    columns = [batch.columns[name] for name in names]
    table = np.column_stack(
        [
            np.nan_to_num(c.values.astype(float), nan=-1e300) if c.codes is None else c.codes
            for c in columns
        ]
    )
    return [row.tobytes() for row in np.ascontiguousarray(table, dtype=np.float64)]


def firsts(tags: Sequence[bytes]) -> Ints:
    """Return the index of the first occurrence of each distinct key, in ascending order."""
    places = {tag: row for row, tag in reversed(list(enumerate(tags)))}
    return np.array(sorted(places.values()), dtype=np.int64)


def _legal(space: DesignSpace, batch: Batch, part: frozenset[str]) -> Mask:
    """Return which merged designs are legal, (n,).

    Only rules that read parameters of both sources are checked.
    """
    legal = space.legal
    keep: Mask = np.ones(len(batch), dtype=bool)
    for component in legal.components:
        if _has_both_parts(frozenset(component.names), part):
            keep &= component.legal(legal.codes(component, batch))
    for real in legal.reals:
        rule = legal.conditions.get(real.name)
        if rule is not None and _has_both_parts(rule.names | {real.name}, part):
            active = rule.holds(batch.columns, len(batch), unknown=False)
            keep &= active == ~batch.absent(real.name)
    for rule in legal.mixed:
        if _has_both_parts(rule.names, part):
            keep &= rule.holds(batch.columns, len(batch), unknown=True)
    return keep


def _has_both_parts(names: frozenset[str], part: frozenset[str]) -> bool:
    return bool(names & part) and bool(names - part)
