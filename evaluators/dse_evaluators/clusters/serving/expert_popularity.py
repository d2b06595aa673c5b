"""Unequal popularity of the experts of a layer: experts that are read, and the busiest group.

With an exponent a above 0, the weights x of the experts follow a power law, ``f(x) ~ x^-a`` for
``1 <= x <= 100``; with 0 every expert is equally popular. A token selects expert i with probability
``1 - exp(-c x_i)``, where c is such that a token selects k experts on average. The experts are
placed on the expert groups at random.

Source:
    ai-dynamo/aiconfigurator (Apache-2.0), docs/POWER_LAW_DISTRIBUTION.md: the power law, its range,
    and the exponents 1.01 (DeepSeek-V3) and 1.2 (Qwen3-235B). Efraimidis, Spirakis: Weighted random
    sampling with a reservoir, 2006 (the probability, by exponential arrival times). Blom:
    Statistical Estimates and Transformed Beta-Variables, 1958 (the expected largest of G normal
    values).
"""

from __future__ import annotations

from functools import lru_cache
from statistics import NormalDist

import numpy as np

from dse.core.values import Floats

_RANGE = 100.0
"""Weight of the most popular expert over that of the least."""
_HALVINGS = 100


@lru_cache(maxsize=64)
def selection_chances(experts: int, chosen: int, exponent: float) -> Floats:
    """Return the probability that a token selects each expert of a layer, (E,), ascending.

    Args:
        experts: number of experts E.
        chosen: number k of experts that a token selects.
        exponent: exponent of the power law; 0 for equal popularity.
    """
    if exponent == 0 or chosen >= experts:
        return np.full(experts, chosen / experts)
    quantiles = (np.arange(experts) + 0.5) / experts
    if exponent == 1:
        weights = _RANGE**quantiles
    else:
        weights = ((_RANGE ** (1 - exponent) - 1) * quantiles + 1) ** (1 / (1 - exponent))
    low, high = 0.0, 1e6
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_low = -np.expm1(-middle * weights).sum() < chosen
        low, high = (middle, high) if is_low else (low, middle)
    return np.asarray(-np.expm1(-low * weights))


def busiest_of_groups(values: Floats, groups: Floats | float) -> Floats:
    """Return the expected largest sum over groups of experts, over the mean of the groups, (n,).

    Sums of groups are taken as normal; for 16 groups of 256 experts this is 4 % too low.

    Args:
        values: a value of each expert, at least 0, (n, E) or (E,).
        groups: number G of groups, which hold E / G experts each at random, (n,) or ().
    """
    experts = values.shape[-1]
    mean, spread = values.mean(axis=-1), values.std(axis=-1)
    groups = np.minimum(np.asarray(groups, dtype=float), experts)
    held = experts / groups
    deviation = spread * np.sqrt(held * (experts - held) / max(experts - 1, 1))
    largest = np.vectorize(_largest_of_normals, otypes=[float])(groups)
    ratio = 1.0 + largest * deviation / np.maximum(held * mean, 1e-300)
    return np.asarray(np.minimum(ratio, groups))


def _largest_of_normals(count: float) -> float:
    return 0.0 if count <= 1 else NormalDist().inv_cdf((count - 0.375) / (count + 0.25))
