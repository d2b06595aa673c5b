"""A space as Ax can state it, and the way back to legal designs.

Ax refuses products, divisibility and most conditions, and reads a scale into the values it is
given. So it gets every parameter as a bare number (the rank of an ordered value, the share of a
real one's range) or as one of several names, and its wishes are taken to the nearest legal
designs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np

from dse.core.design import Design
from dse.core.encoding import encoded
from dse.core.legal_set.component import Component
from dse.core.legal_set.diagram_builder import Codes
from dse.core.legal_set.neighbours import nearest
from dse.core.parameter import Choice, Finite, Real
from dse.core.problem import Problem
from dse.core.space import Space
from dse.core.values import Floats
from dse.optimizers.bayesian.candidates import admissible, around
from dse.optimizers.support.unseen_designs import fresh, unseen

Wish = Mapping[str, float | int | str]
"""A point in Ax's terms, by the names that :func:`axes` gives."""

_OTHERS = 64


def axes(space: Space) -> dict[str, Real | Finite]:
    """Ax's names of the parameters that can vary; a name of ours may be a word of sympy's."""
    return {
        f"p{place}": parameter
        for place, parameter in enumerate(space.parameters)
        if (parameter.low < parameter.high if isinstance(parameter, Real) else _size(parameter) > 1)
    }


def has_no_order(parameter: Real | Finite) -> bool:
    """Return whether the parameter is a choice of three values or more.

    With two values there is no order that could mislead the model.
    """
    return isinstance(parameter, Choice) and len(parameter.values) > 2


def wish_of(space: Space, design: Design) -> dict[str, float | int | str]:
    """The design in Ax's terms; inactive parameters stand in the middle."""
    batch = space.batch([design])
    wish: dict[str, float | int | str] = {}
    for name, parameter in axes(space).items():
        column = batch.columns[parameter.name]
        if isinstance(parameter, Real):
            share = float(np.nan_to_num(parameter.shares(column.values)[0], nan=0.5))
            wish[name] = min(max(share, 0.0), 1.0)
            continue
        assert column.codes is not None
        code = int(column.codes[0])
        code = code if code >= 0 else (_size(parameter) - 1) // 2
        wish[name] = f"v{code}" if has_no_order(parameter) else code
    return wish


def nearest_unseen_design(
    problem: Problem, wish: Wish, taken: Collection[Design], rng: np.random.Generator
) -> list[Design]:
    """Return the unseen legal design nearest to the wish, or no design if none is left.

    Each group of coupled parameters goes to its nearest legal combination. If that design was
    asked before, or breaks a known limit, the nearest of some around it and some others is taken.
    """
    space = problem.space
    codes = [_nearest_rows(component, space, wish) for component in space.legal.components]
    target = space.legal.assembled(codes, _shares(space, wish))
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


def _nearest_rows(component: Component, space: Space, wish: Wish) -> Codes:
    wanted = {parameter.name: wish[name] for name, parameter in axes(space).items() if name in wish}
    codes = np.array([[_code(wanted.get(name, 0)) for name in component.names]], dtype=np.int32)
    return nearest(component, codes)


def _code(value: float | str) -> int:
    return int(value.removeprefix("v")) if isinstance(value, str) else round(value)


def _shares(space: Space, wish: Wish) -> Floats:
    names = {parameter.name: name for name, parameter in axes(space).items()}
    shares = [float(wish.get(names.get(real.name, ""), 0.5)) for real in space.legal.reals]
    return np.array([shares])


def _size(parameter: Finite) -> int:
    return len(parameter.values)
