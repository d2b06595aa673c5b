"""Numeric encoding of designs as points of the unit cube, for surrogates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Batch, Column
from dse.core.parameter import Choice, Finite, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Floats, Value


@dataclass(frozen=True, slots=True)
class CoordinateBlock:
    """Range of columns of the encoded design vector that encode one parameter.

    The range is ``start`` to ``stop`` (exclusive). The encoding is one-hot for a categorical
    parameter with three or more values.
    """

    parameter: Parameter
    start: int
    stop: int


def blocks(space: DesignSpace, names: frozenset[str] | None = None) -> tuple[CoordinateBlock, ...]:
    """Return the range of columns that each parameter has in the encoded design vector.

    Args:
        space: the space of the parameters.
        names: the parameters to encode; ``None`` for all.
    """
    found, start = [], 0
    for parameter in space.parameters:
        if names is not None and parameter.name not in names:
            continue
        width = _width(parameter)
        found.append(CoordinateBlock(parameter, start, start + width))
        start += width
    return tuple(found)


def encoded(space: DesignSpace, batch: Batch, names: frozenset[str] | None = None) -> Floats:
    """Encode n designs as points of the unit cube, (n, coordinates).

    A number is encoded as its position in its range, from 0 to 1, on its linear or logarithmic
    scale, and an ordinal as its relative rank, so that 1, 2, 4, 8 are evenly spaced. A choice is
    one-hot, or 0 or 1 if it has two values. An inactive parameter is encoded as 0.5, or as all
    zeros if it is one-hot.

    Args:
        space: the space of the designs.
        batch: designs as columns, made by :meth:`DesignSpace.batch`.
        names: the parameters to encode; ``None`` for all.
    """
    layout = blocks(space, names)
    points = np.zeros((len(batch), layout[-1].stop if layout else 0))
    for block in layout:
        points[:, block.start : block.stop] = _coordinates(
            block.parameter, batch.columns[block.parameter.name]
        )
    return points


def encoded_designs(space: DesignSpace, designs: Sequence[Mapping[str, Value]]) -> Floats:
    """Encode n designs of this space or an older version of it, (n, coordinates).

    A number outside the parameter's domain is extrapolated on its linear or logarithmic scale,
    possibly below 0 or above 1. An unknown value of a choice is encoded as all zeros, or 0.5 in a
    single coordinate.
    """
    inside = np.array([space.knows(design) for design in designs], dtype=bool)
    layout = blocks(space)
    points = np.zeros((len(designs), layout[-1].stop if layout else 0))
    points[inside] = encoded(
        space, space.batch([designs[row] for row in np.flatnonzero(inside).tolist()])
    )
    for row in np.flatnonzero(~inside).tolist():
        for block in layout:
            points[row, block.start : block.stop] = _coordinate_of(
                block.parameter, designs[row].get(block.parameter.name)
            )
    return points


def _coordinate_of(parameter: Parameter, value: Value | None) -> Floats:
    """Return the coordinates of one value, which need not be in the parameter's domain."""
    if isinstance(parameter, Choice):
        if value in parameter:
            return _coordinates(parameter, Column.coded(parameter.values, _code(parameter, value)))[
                0
            ]
        return np.zeros(_width(parameter)) if _width(parameter) > 1 else np.array([0.5])
    if value is None or isinstance(value, bool | str):
        return np.array([0.5])
    if isinstance(parameter, Real):
        with np.errstate(all="ignore"):
            return np.nan_to_num(parameter.shares(np.array([float(value)])), nan=0.5)
    order = np.argsort(parameter.values)
    values = np.array(parameter.values, dtype=float)[order]
    ranks = _ranks(parameter)[order]
    place = int(np.clip(np.searchsorted(values, value) - 1, 0, max(len(values) - 2, 0)))
    if len(values) == 1:
        return np.array([0.5])
    slope = (ranks[place + 1] - ranks[place]) / (values[place + 1] - values[place])
    return np.array([ranks[place] + slope * (float(value) - values[place])])


def _code(parameter: Choice, value: Value | None) -> NDArray[np.int32]:
    same = [v == value and type(v) is type(value) for v in parameter.values]
    return np.array([same.index(True)], dtype=np.int32)


def _width(parameter: Parameter) -> int:
    if isinstance(parameter, Choice) and len(parameter.values) > 2:
        return len(parameter.values)
    return 1


def _coordinates(parameter: Parameter, column: Column) -> Floats:
    if isinstance(parameter, Real):
        shares = parameter.shares(column.values)
        return np.nan_to_num(shares, nan=0.5)[:, None]
    assert column.codes is not None
    codes = column.codes
    if _width(parameter) > 1:
        hot = np.zeros((len(codes), len(parameter.values)))
        active = np.flatnonzero(codes >= 0)
        hot[active, codes[active]] = 1.0
        return hot
    return np.append(_ranks(parameter), 0.5)[codes][:, None]


@lru_cache(maxsize=1024)
def _ranks(parameter: Finite) -> Floats:
    """Return the coordinates of the parameter's values, equally spaced from 0 to 1, (values,).

    On a logarithmic scale, a coordinate is instead the value's position in the logarithm of the
    range.
    """
    if not isinstance(parameter, Choice) and parameter.scale == "log":
        values = np.log(np.asarray(parameter.values, dtype=float))
        return np.asarray((values - values.min()) / max(np.ptp(values), 1e-300))
    return np.arange(len(parameter.values)) / max(len(parameter.values) - 1, 1)
