"""Encoding of a space for Ax and Optuna, and mapping of their proposals to legal designs.

Ax supports neither rules with products or divisibility nor most activity conditions, and it infers
a scale from the values of a parameter. So each parameter is encoded as a plain number (an ordered
value by its rank, a real one by its position in its range, 0 to 1) or as one of several names, and
each proposal is mapped to the nearest legal design.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dse.core.design import Design
from dse.core.encoding import encoded
from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.legal_set.neighbours import nearest
from dse.core.parameter import Choice, Finite, Real
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.values import Floats
from dse.optimizers.bayesian.candidates import admissible, around
from dse.optimizers.support.unseen_designs import fresh, unseen

EncodedPoint = Mapping[str, float | int | str]
"""Proposed point in Ax's encoding, by the names that :func:`axes` gives."""

_OTHERS = 64


def axes(space: DesignSpace) -> dict[str, Real | Finite]:
    """Return the parameters with two or more values, by the names used in Ax (``p0`` ...).

    The user's names are not used, since one of them may be a function or a constant of sympy.
    """
    return {
        f"p{place}": parameter
        for place, parameter in enumerate(space.parameters)
        if (parameter.low < parameter.high if isinstance(parameter, Real) else _size(parameter) > 1)
    }


def has_no_order(parameter: Real | Finite) -> bool:
    """Return whether a parameter is encoded without an order: a choice of three or more values.

    An order of two values cannot mislead the model.
    """
    return isinstance(parameter, Choice) and len(parameter.values) > 2


def encode_design(space: DesignSpace, design: Design) -> dict[str, float | int | str]:
    """Return a design as a point in Ax's encoding; inactive parameters get a middle value."""
    batch = space.batch([design])
    point: dict[str, float | int | str] = {}
    for name, parameter in axes(space).items():
        column = batch.columns[parameter.name]
        if isinstance(parameter, Real):
            share = float(np.nan_to_num(parameter.shares(column.values)[0], nan=0.5))
            point[name] = min(max(share, 0.0), 1.0)
            continue
        assert column.codes is not None
        code = int(column.codes[0])
        code = code if code >= 0 else (_size(parameter) - 1) // 2
        point[name] = f"v{code}" if has_no_order(parameter) else code
    return point


def nearest_unseen_design(
    problem: Problem, point: EncodedPoint, taken: Collection[Design], rng: np.random.Generator
) -> list[Design]:
    """Return the unused legal design nearest to a proposed point, as a list of at most one.

    Each group of coupled parameters is mapped to its nearest legal combination. If that design was
    suggested before or violates a modelled limit, the nearest of some neighbours and random designs
    is taken. The list is empty if no unused design is left.

    Args:
        problem: problem to optimise.
        point: proposed point.
        taken: designs that were suggested before.
        rng: generator of the neighbours and random designs.
    """
    space = problem.space
    codes = [_nearest_rows(component, space, point) for component in space.legal.components]
    target = space.legal.assemble(codes, _shares(space, point))
    centre = target.designs() or fresh(space, 1, rng, ())
    choices = [
        *unseen(target, taken),
        *around(problem, centre, taken, rng),
        *fresh(space, _OTHERS, rng, taken),
    ]
    if not choices:
        return []
    kept = admissible(problem, choices, taken, rng)
    gaps = encoded(space, space.batch(kept)) - encoded(space, space.batch(centre))
    return [kept[int(np.argmin((gaps**2).sum(axis=1)))]]


def _nearest_rows(component: Component, space: DesignSpace, point: EncodedPoint) -> Codes:
    wanted = {
        parameter.name: point[name] for name, parameter in axes(space).items() if name in point
    }
    codes = np.array([[_code(wanted.get(name, 0)) for name in component.names]], dtype=np.int32)
    return nearest(component, codes)


def _code(value: float | str) -> int:
    return int(value.removeprefix("v")) if isinstance(value, str) else round(value)


def _shares(space: DesignSpace, point: EncodedPoint) -> Floats:
    names = {parameter.name: name for name, parameter in axes(space).items()}
    shares = [float(point.get(names.get(real.name, ""), 0.5)) for real in space.legal.reals]
    return np.array([shares])


def _size(parameter: Finite) -> int:
    return len(parameter.values)
