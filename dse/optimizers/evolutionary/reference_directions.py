"""Reference directions of many-objective methods, spread over the space of losses."""

from __future__ import annotations

from functools import cache
from math import comb

import numpy as np
from moocore import is_nondominated
from pymoo.util.ref_dirs import get_reference_directions
from pymoo.util.reference_direction import get_partition_closest_to_points

from dse.core.problem import Problem
from dse.core.values import Floats
from dse.errors import PluginError, StudyError, nearest
from dse.optimizers.evolutionary.evolution import population
from dse.optimizers.evolutionary.front_shape import shares

KINDS = ("das-dennis", "energy")

_STEPS = 3
"""Steps along an edge covered by the least population; with fewer, directions are corners only."""

_MOST = 128
_INNER = 0.5
"""Size of the inner of two layers relative to the outer one, as in the paper."""


def directed_population(problem: Problem, asked: int | None) -> int:
    """Return the population size of methods with reference directions.

    The default is the number of evenly spaced directions with steps of a third, up to 128, but at
    least 24; or four per parameter, up to 100, if that is more.

    Raises:
        StudyError: there is only one objective, and so only one direction.
        PluginError: the requested size is below the number of objectives.
    """
    if len(problem.objectives) < 2:
        raise StudyError(
            "this optimizer needs directions between objectives, and there is only one objective",
            hint="use optimizer nsga2, or give a second objective",
        )
    return many_population(problem, asked)


def many_population(problem: Problem, asked: int | None) -> int:
    """Return the population size for many objectives: by default enough for a set of directions.

    The default is the number of evenly spaced directions with steps of a third, up to 128, but at
    least 24; or four per parameter, up to 100, if that is more.

    Raises:
        PluginError: the requested size is below the number of objectives.
    """
    objectives = len(problem.objectives)
    least = min(comb(objectives + _STEPS - 1, _STEPS), _MOST)
    return population(problem, asked, least=max(24, least))


def directions_of(objectives: int, size: int, kind: str) -> Floats:
    """Return up to ``size`` reference directions, (k, objectives), each of which sums to one.

    Args:
        objectives: number of objectives.
        size: population size.
        kind: ``das-dennis``, evenly spaced, with a second, inner layer if the first has boundary
            points only; or ``energy``, exactly ``size`` that repel one another, found in seconds.

    Raises:
        PluginError: there is no such kind.

    Source:
        Das, Dennis: Normal-Boundary Intersection, SIAM Journal on Optimization 8(3), 1998; two
        layers: Deb, Jain: NSGA-III, IEEE Transactions on Evolutionary Computation 18(4), 2014;
        Blank, Deb, Dhebar, Bandaru, Seada: Generating Well-Spaced Points on a Unit Simplex, IEEE
        Transactions on Evolutionary Computation 25(1), 2021.
    """
    if kind not in KINDS:
        raise PluginError(f"there are no directions {kind!r}", hint=nearest(kind, KINDS))
    return _compute_directions(objectives, size, kind).copy()


def scale_losses(
    losses: Floats,  # (n, m)
) -> Floats:
    """Scale each loss to 0 at its best value and about 1 at the front's worst, (n, m)."""
    return shares(losses, *extent(losses))


def extent(
    losses: Floats,  # (n, m)
) -> tuple[Floats, Floats]:
    """Return the ideal point of a front, (m,), and the range of each loss, (m,).

    A range of 0 is replaced by 1.
    """
    front = losses[is_nondominated(losses, keep_weakly=True)]
    ideal = losses.min(axis=0)
    with np.errstate(over="ignore"):
        span = np.minimum(front.max(axis=0) - ideal, np.finfo(np.float64).max)
    return ideal, np.where(span > 0, span, 1.0)


@cache
def _compute_directions(objectives: int, size: int, kind: str) -> Floats:
    if kind == "energy":
        pushed: Floats = get_reference_directions(kind, objectives, size)  # draws with a fixed seed
        return pushed
    return _layers(objectives, size)


def _layers(objectives: int, size: int) -> Floats:
    steps = get_partition_closest_to_points(size, objectives)
    outer: Floats = get_reference_directions("das-dennis", objectives, n_partitions=steps)
    left = size - len(outer)
    if steps >= objectives or left < objectives:
        return outer
    inside = get_reference_directions(
        "das-dennis",
        objectives,
        n_partitions=get_partition_closest_to_points(left, objectives),
        scaling=_INNER,
    )
    both: Floats = get_reference_directions("multi-layer", outer, inside)
    return both
