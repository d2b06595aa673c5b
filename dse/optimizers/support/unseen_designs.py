"""Draws of legal designs that were not suggested before."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.space import DesignSpace

_LISTED = 4_096
"""Largest space that is listed, so that draws are from the list of its remaining designs."""
_ROUNDS = 64


def fresh(
    space: DesignSpace, count: int, rng: np.random.Generator, taken: Collection[Design]
) -> list[Design]:
    """Draw up to ``count`` legal designs uniformly from those that are not ``taken``.

    The result has fewer if no other design is left or, in a space too large to list, if repeated
    draws found no other.

    Raises:
        DesignError: no legal design was found at all.
    """
    total = space.count()
    if total is not None and total <= max(_LISTED, 2 * len(taken)):
        return _left(space, count, rng, taken)
    known, found = set(taken), list[Design]()
    for _ in range(_ROUNDS):
        drawn = unseen(space.sample(max(count - len(found), 4), rng), known)
        found += drawn
        known.update(drawn)
        if len(found) >= count:
            break
    return found[:count]


def unseen(batch: Batch, taken: Collection[Design]) -> list[Design]:
    """Return the distinct designs of the batch that are not in ``taken``, in their order."""
    return [design for design in dict.fromkeys(batch) if design not in taken]


def _left(
    space: DesignSpace, count: int, rng: np.random.Generator, taken: Collection[Design]
) -> list[Design]:
    """Draw up to ``count`` legal designs not ``taken`` from a list of all legal designs."""
    total = space.count() or 0
    gone = space.indices(space.batch([design for design in taken if space.knows(design)]))
    left = np.setdiff1d(np.arange(total), gone)
    if not len(left):
        return []
    picked = rng.choice(left, size=min(count, len(left)), replace=False)
    return space.legal.at_indices(picked).designs()
