"""Variation operators that keep designs legal: crossover, mutation and repair.

The unit of variation (the gene) is a component: a group of parameters coupled by constraints.
Exchanging components between parents keeps them legal; a mix inside a component is repaired to the
nearest legal combination. Real parameters vary as fractions of their range.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Batch
from dse.core.legal_set.component import Component
from dse.core.legal_set.decision_diagram import Codes
from dse.core.legal_set.neighbours import near, nearest, steps
from dse.core.parameter import Choice, Finite
from dse.core.space import DesignSpace
from dse.core.values import Floats, Mask

_CROSSOVER_INDEX = 15.0
_MUTATION_INDEX = 20.0
_LEAST_MOVE = 1e-9
_KEPT_MOVES = 200_000
"""About how many nearby combinations are cached for one component."""


def cross_parents(
    space: DesignSpace, mothers: Batch, fathers: Batch, rng: np.random.Generator
) -> Batch:
    """Recombine pairs of parents; return one child per pair, without illegal children.

    Args:
        space: the space of the designs.
        mothers: n legal designs.
        fathers: n legal designs, the other parent of each pair.
        rng: the source of randomness.
    """
    legal = space.legal
    codes = [
        _mix_component(
            component, legal.codes(component, mothers), legal.codes(component, fathers), rng
        )
        for component in legal.components
    ]
    return legal.assemble(codes, _blend_shares(legal.shares(mothers), legal.shares(fathers), rng))


def mutate_designs(
    space: DesignSpace, batch: Batch, rng: np.random.Generator, *, chance: float | None = None
) -> Batch:
    """Return designs with at least one gene changed (a component or a real parameter).

    One gene is selected at random, and each other gene with probability ``chance``: by default one
    over the number of genes. Designs that did not change are left out, because rounding of their
    real parameters would make them look new.
    """
    legal = space.legal
    genes = len(legal.components) + len(legal.reals)
    if not genes:
        return batch.take(np.arange(0))
    moves = rng.random((len(batch), genes)) < (chance or 1 / genes)
    moves[np.arange(len(batch)), rng.integers(genes, size=len(batch))] = True
    codes = []
    moved = np.zeros(len(batch), dtype=bool)
    for place, component in enumerate(legal.components):
        before = legal.codes(component, batch)
        after = before.copy()
        turn = moves[:, place]
        after[turn] = _step_rows(component, before[turn], rng)
        moved |= (before != after).any(axis=1)
        codes.append(after)
    shares = legal.shares(batch)
    shaken = _shaken(shares, moves[:, len(legal.components) :], rng)
    for place, real in enumerate(legal.reals):
        moved |= (np.abs(shaken - shares)[:, place] > _LEAST_MOVE) & ~batch.absent(real.name)
    return legal.assemble([rows[moved] for rows in codes], shaken[moved])


def _mix_component(
    component: Component,
    mothers: Codes,  # (n, k)
    fathers: Codes,  # (n, k)
    rng: np.random.Generator,
) -> Codes:
    """Return one component of each child, copied from a parent or mixed from both.

    Half the children inherit either parent's combination; in the other half each value is from
    either parent, and illegal combinations are repaired to the nearest legal one.
    """
    heads = rng.random(len(mothers)) < 0.5
    children = np.where(heads[:, None], mothers, fathers)
    mix = np.where(rng.random(mothers.shape) < 0.5, mothers, fathers)
    inside = rng.random(len(mothers)) < 0.5
    if len(component.parameters) == 1:
        return children
    legal = component.legal(mix)
    children[inside & legal] = mix[inside & legal]
    broken = inside & ~legal
    if broken.any():
        wanted, places = np.unique(mix[broken], axis=0, return_inverse=True)
        children[broken] = nearest(component, wanted)[places.reshape(-1)]
    return children


def _step_rows(
    component: Component,
    rows: Codes,  # (n, k)
    rng: np.random.Generator,
) -> Codes:
    """Replace each combination by a nearby legal one, with probability inverse to distance.

    Step lengths are therefore log-uniform: among a hundred values, steps of 1 to 3 are as frequent
    as steps of 10 to 30.
    """
    if not len(rows):
        return rows
    if _is_free(component):
        return _strode(component.parameters[0], rows[:, 0], rng)[:, None]
    stepped = rows.copy()
    distinct, places = np.unique(rows, axis=0, return_inverse=True)
    order = np.argsort(places.reshape(-1), kind="stable")
    ends = np.cumsum(np.bincount(places.reshape(-1), minlength=len(distinct)))
    for row, mine in zip(distinct, np.split(order, ends[:-1]), strict=True):
        others, shares = _weigh_moves(component, row)
        if len(others):
            stepped[mine] = others[shares.searchsorted(rng.random(len(mine)), side="right")]
    return stepped


def _weigh_moves(component: Component, row: Codes) -> tuple[Codes, Floats]:
    """Return the combinations near ``row``, and their cumulated probabilities.

    They are cached, because a search moves from the same good combinations again and again.
    """
    key, known = row.tobytes(), component.moves
    if key not in known:
        others = near(component, row)
        weights = 1 / np.maximum(_lengths(component, others, row), 1e-6)
        shares = (weights / weights.sum()).cumsum()
        if len(known) * len(others) > _KEPT_MOVES:
            known.clear()
        known[key] = others, shares / shares[-1:]
    return known[key]


def _is_free(component: Component) -> bool:
    """Return whether the component is one unconditional parameter whose values are all legal."""
    alone = len(component.parameters) == 1 and not component.conditions
    return alone and component.count == len(component.parameters[0].values)


def _strode(
    parameter: Finite,
    codes: NDArray[np.int32],  # (n,)
    rng: np.random.Generator,
) -> NDArray[np.int32]:
    """Replace each value of an unconstrained parameter by a nearby value, in closed form."""
    last = len(parameter.values) - 1
    if not last:
        return codes
    if isinstance(parameter, Choice):
        drawn = rng.integers(last, size=len(codes))
        return (drawn + (drawn >= codes)).astype(np.int32)
    ladder = np.cumsum(1 / np.arange(1, last + 1))  # weight of all steps up to 1, 2, ...
    weight = np.append(0.0, ladder)
    draw = rng.random(len(codes)) * (weight[codes] + weight[last - codes])
    down = draw < weight[codes]
    steps_away = 1 + np.searchsorted(ladder, draw - np.where(down, 0, weight[codes]), side="right")
    return np.clip(codes + np.where(down, -steps_away, steps_away), 0, last).astype(np.int32)


def _lengths(
    component: Component,
    rows: Codes,  # (r, k)
    row: Codes,  # (k,)
) -> Floats:
    """Return the distance of each of r combinations from the combination ``row``, (r,).

    A parameter that is active in only one of the two combinations adds 1.
    """
    switched = ((rows < 0) != (row < 0)).sum(axis=1)
    both = np.where((rows < 0) | (row < 0), row, rows)
    return steps(component, both, row) + switched


def _blend_shares(
    mothers: Floats,  # (n, r), shares
    fathers: Floats,  # (n, r)
    rng: np.random.Generator,
) -> Floats:
    """Cross over real parameters, given as fractions of their range; return children, (n, r).

    Half of the values result from simulated binary crossover; the others are copied from either
    parent.

    Source:
        Deb, Agrawal: Simulated Binary Crossover for Continuous Search Space, Complex Systems 9,
        1995, eq. 8-11.
    """
    heads = rng.random(mothers.shape) < 0.5
    one, other = np.where(heads, mothers, fathers), np.where(heads, fathers, mothers)
    draw = rng.random(mothers.shape)
    power = 1 / (_CROSSOVER_INDEX + 1)
    ratio = np.where(draw <= 0.5, (2 * draw) ** power, (0.5 / (1 - draw)) ** power)
    blend = np.where(one == other, one, 0.5 * ((1 + ratio) * one + (1 - ratio) * other))
    return np.clip(np.where(rng.random(mothers.shape) < 0.5, blend, one), 0, 1)


def _shaken(
    shares: Floats,  # (n, r)
    moves: Mask,  # (n, r)
    rng: np.random.Generator,
) -> Floats:
    """Apply polynomial mutation to selected fractions of the range, kept in [0, 1], (n, r).

    Source:
        Deb, Goyal: A Combined Genetic Adaptive Search (GeneAS) for Engineering Design, 1996;
        bounded as in Deb's NSGA-II code, revision 1.1.6.
    """
    draw = rng.random(shares.shape)
    power = _MUTATION_INDEX + 1
    down = 2 * draw + (1 - 2 * draw) * (1 - shares) ** power
    up = 2 * (1 - draw) + 2 * (draw - 0.5) * shares**power
    left = np.maximum(down, 0) ** (1 / power) - 1
    right = 1 - np.maximum(up, 0) ** (1 / power)
    return np.where(moves, np.clip(shares + np.where(draw <= 0.5, left, right), 0, 1), shares)
