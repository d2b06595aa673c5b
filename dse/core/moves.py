"""Moves from legal designs to legal designs: crossover, mutation, repair.

A component (parameters that rules tie together) is the gene: whole components can be swapped
between parents without a second thought, and inside one the result is taken to the nearest legal
combination. Real parameters move as shares of their range.
"""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch
from dse.core.solving.component import Component
from dse.core.solving.growth import Codes
from dse.core.solving.nearby import near, nearest, steps
from dse.core.space import Space
from dse.core.values import Floats, Mask

_CROSSOVER_INDEX = 15.0
_MUTATION_INDEX = 20.0
_LEAST_MOVE = 1e-9


def crossed(space: Space, mothers: Batch, fathers: Batch, rng: np.random.Generator) -> Batch:
    """One child of each pair of parents; a child that breaks a rule over reals is left out."""
    legal = space.legal
    codes = [
        _mixed(component, legal.codes(component, mothers), legal.codes(component, fathers), rng)
        for component in legal.components
    ]
    return legal.assembled(codes, _blended(legal.shares(mothers), legal.shares(fathers), rng))


def mutated(
    space: Space, batch: Batch, rng: np.random.Generator, *, chance: float | None = None
) -> Batch:
    """Each design with one or more of its components and reals moved a step.

    One always moves, and each other with ``chance``: by default one in as many as there are.
    What stayed where it was is left out: its reals would come back with another rounding, and
    pass for a new design.
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
        for row in np.flatnonzero(moves[:, place]):
            after[row] = _stepped(component, before[row], rng)
        moved |= (before != after).any(axis=1)
        codes.append(after)
    shares = legal.shares(batch)
    shaken = _shaken(shares, moves[:, len(legal.components) :], rng)
    for place, real in enumerate(legal.reals):
        moved |= (np.abs(shaken - shares)[:, place] > _LEAST_MOVE) & ~batch.absent(real.name)
    return legal.assembled([rows[moved] for rows in codes], shaken[moved])


def _mixed(
    component: Component,
    mothers: Codes,  # (n, k)
    fathers: Codes,  # (n, k)
    rng: np.random.Generator,
) -> Codes:
    """The component as a whole from either parent; in half the rows mixed inside, and repaired."""
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
        children[broken] = nearest(component, mix[broken])
    return children


def _stepped(
    component: Component,
    row: Codes,  # (k,)
    rng: np.random.Generator,
) -> Codes:
    """A legal combination near ``row``, drawn the less often the longer the step is.

    One over the length favours no scale: of a hundred values, steps of 1 to 3 come as often as
    steps of 10 to 30.
    """
    others = near(component, row)
    if not len(others):
        return row
    weights = 1 / np.maximum(_lengths(component, others, row), 1e-6)
    return others[rng.choice(len(others), p=weights / weights.sum())]


def _lengths(
    component: Component,
    rows: Codes,  # (r, k)
    row: Codes,  # (k,)
) -> Floats:
    """Like the distance of a repair, but switching a parameter on or off is a step of 1."""
    switched = ((rows < 0) != (row < 0)).sum(axis=1)
    both = np.where((rows < 0) | (row < 0), row, rows)
    return steps(component, both, row) + switched


def _blended(
    mothers: Floats,  # (n, r), shares
    fathers: Floats,  # (n, r)
    rng: np.random.Generator,
) -> Floats:
    """Simulated binary crossover of half the shares; the rest come whole from either parent.

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
    """Polynomial mutation of the shares that are to move, within 0 and 1.

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
