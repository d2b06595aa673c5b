"""Designs as points that a surrogate can learn from, whatever their parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.parameter import Choice, Parameter, Real, size
from dse.core.space import Space
from dse.core.values import Floats


@dataclass(frozen=True, slots=True)
class Block:
    """One parameter's coordinates, ``start`` to ``stop``; one-hot for three or more choices."""

    parameter: Parameter
    start: int
    stop: int


def blocks(space: Space, names: frozenset[str] | None = None) -> tuple[Block, ...]:
    """Where each parameter (of ``names``, or every one) stands in the encoded vector."""
    found, start = [], 0
    for parameter in space.parameters:
        if names is not None and parameter.name not in names:
            continue
        width = _width(parameter)
        found.append(Block(parameter, start, start + width))
        start += width
    return tuple(found)


def encoded(space: Space, batch: Batch, names: frozenset[str] | None = None) -> Floats:
    """The designs in the unit cube, (n, coordinates).

    Numbers: their share of the range on their scale; an ordinal: the share of its rank, so that
    1, 2, 4, 8 are evenly spaced. Choices: one-hot, or 0 and 1 for two values. An inactive
    parameter stands in the middle (a number) or nowhere (all zeros).
    """
    layout = blocks(space, names)
    points = np.zeros((len(batch), layout[-1].stop if layout else 0))
    for block in layout:
        points[:, block.start : block.stop] = _coordinates(
            block.parameter, batch.columns[block.parameter.name]
        )
    return points


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
    if not isinstance(parameter, Choice) and getattr(parameter, "scale", "linear") == "log":
        values = np.log(np.asarray(parameter.values, dtype=float))
        ranks = (values - values[0]) / max(values[-1] - values[0], 1e-300)
    else:
        ranks = np.arange(size(parameter)) / max(size(parameter) - 1, 1)
    return np.append(ranks, 0.5)[codes][:, None]
