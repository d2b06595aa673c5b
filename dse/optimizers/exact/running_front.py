"""Front of the designs enumerated so far, merged from ranges that finish in any order."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from dse.core.pareto import nondominated
from dse.core.values import Floats, Ints, Mask

_SAMPLE = 128
_CANDIDATES = 512
_MOST_MEMBERS = 48


def _nowhere() -> Ints:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningFront:
    """Pareto front and counts of the designs in a range of the enumeration.

    ``places`` are the enumeration indices of the front's designs. Of designs with equal losses the
    first of the enumeration is kept, so that ranges may be joined in any order. If no design is
    feasible, ``least`` is the index of the design with the least ``violation``. ``impossible``
    counts designs that cannot exist, ``failed`` the other designs without a value; ``lost`` is the
    index of the first failed design, or -1.
    """

    losses: Floats  # (k, m)
    places: Ints = field(default_factory=_nowhere)  # (k,), ascending
    total: int = 0
    feasible: int = 0
    least: int = -1
    violation: float = np.inf
    impossible: int = 0
    failed: int = 0
    lost: int = -1

    @staticmethod
    def nothing(objectives: int) -> RunningFront:
        """Return the front and counts of an empty range of designs."""
        return RunningFront(losses=np.zeros((0, objectives)))

    def joined(self, other: RunningFront) -> RunningFront:
        """Join the fronts and counts of two disjoint ranges of designs."""
        places = np.concatenate([self.places, other.places])
        order = np.argsort(places, kind="stable")
        losses = np.concatenate([self.losses, other.losses])[order]
        best = nondominated(losses)
        near = min(self, other, key=lambda one: (one.violation, one.least))
        return RunningFront(
            losses=losses[best],
            places=places[order][best],
            total=self.total + other.total,
            feasible=self.feasible + other.feasible,
            least=near.least,
            violation=near.violation,
            impossible=self.impossible + other.impossible,
            failed=self.failed + other.failed,
            lost=min({self.lost, other.lost} - {-1}, default=-1),
        )


def found_in(
    losses: Floats,  # (n, m)
    violations: Floats,  # (n,)
    possible: Mask,  # (n,), False where there are no metrics
    *,
    first: int,
    beaters: Floats,  # (k, m)
    impossible: Mask | None = None,  # (n,)
) -> RunningFront:
    """Return the Pareto front and counts of n consecutive designs of the enumeration.

    Args:
        losses: losses of the designs.
        violations: total constraint violation of each.
        possible: mask of the designs that have values.
        first: enumeration index of the first design.
        beaters: losses of some earlier designs, for pruning before the non-dominated sort.
        impossible: mask of the designs without a value that cannot exist; the others failed.
    """
    kept = np.flatnonzero(possible & (violations == 0))
    least, violation = -1, np.inf
    if not len(kept) and possible.any():
        near = int(np.argmin(np.where(possible, violations, np.inf)))
        least, violation = first + near, float(violations[near])
    left = kept[_unbeaten(losses[kept], beaters)]
    left = left[nondominated(losses[left])]
    none = np.zeros(len(losses), dtype=bool) if impossible is None else impossible
    lost = np.flatnonzero(~possible & ~none)
    return RunningFront(
        losses=losses[left],
        places=first + left,
        total=len(losses),
        feasible=len(kept),
        least=least,
        violation=violation,
        impossible=int(none.sum()),
        failed=len(lost),
        lost=first + int(lost[0]) if len(lost) else -1,
    )


def _unbeaten(
    losses: Floats,  # (n, m)
    beaters: Floats,  # (k, m)
) -> Ints:
    """Return the indices of designs that a few known losses (beaters) do not dominate.

    This is a pre-filter of the non-dominated sort. The beaters that dominate most of a sample of
    the designs are applied first, each to the designs that earlier beaters do not dominate.
    """
    left = np.arange(len(losses))
    if not len(losses) or not len(beaters):
        return left
    beaters = beaters[spread(len(beaters), _CANDIDATES)]
    sample = losses[spread(len(losses), _SAMPLE)]
    wins: Mask = np.asarray((beaters[:, None, :] <= sample[None, :, :]).all(axis=2))
    columns = list(np.ascontiguousarray(losses.T))
    for _ in range(_MOST_MEMBERS):
        best = int(np.argmax(wins.sum(axis=1)))
        if not wins[best].any():
            break
        stays = np.flatnonzero(~_beaten(columns, beaters[best]))
        left, columns = left[stays], [column[stays] for column in columns]
        wins = wins[:, ~wins[best]]
    return left


def _beaten(
    columns: list[Floats],  # m times (n,)
    member: Floats,  # (m,)
) -> Mask:
    beaten = columns[0] >= member[0]
    for column, bound in zip(columns[1:], member[1:], strict=True):
        beaten &= column >= bound
    return beaten


def spread(count: int, most: int) -> Ints:
    """Return up to ``most`` evenly spaced indices from 0 to ``count`` - 1."""
    return np.arange(count) if count <= most else np.linspace(0, count - 1, most).astype(np.int64)
