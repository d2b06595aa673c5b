"""Strata of the flips in a layer by the change of the weight that is read, and samples of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse_evaluators.faults.protections import Masks, Protection
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.formats.arrays import Single

MOST_WEIGHTS = 1 << 18
"""Most weights of a layer whose flips are classified; larger layers have this many drawn."""

_FLIPS_IN_STRATUM = 5  # of a proportional sample: so that each stratum has some
_LEAST, _MOST = -40, 20  # half octaves of a change, relative to the largest weight
_PILOT = 5  # the reciprocal of its share of the flips
_PROPORTIONAL = 0.3  # of the flips after the pilot sample
_PRIOR = 0.005  # events and other flips that are added to the pilot's
_NEIGHBOUR = 0.1  # what a flip in the next stratum counts for the pilot's share in this one


@dataclass(frozen=True, slots=True)
class FlipSample:
    """Sampled bit flips: weights, (k,), flips of their codes, (k,), and of the copies.

    Flips of the copies have shape (copies, k).
    """

    places: Ints
    masks: Masks
    copies: Masks


@dataclass(frozen=True, slots=True, kw_only=True)
class FlipStrata:
    """Single bit flips of a layer that change what is read, divided into strata by size.

    A stratum has flips that change the weight, as the protected memory returns it, by a similar
    amount: changes are classified by half octaves, relative to the largest weight, and neighbouring
    classes are joined. Strata are in the order of the change; infinite changes are in the last
    stratum. Flips that change nothing belong to no stratum.

    Attributes:
        shares: share of each stratum in all flips of the layer, (h,).
        sizes: number of classified flips of each stratum, (h,).
        is_whole: whether all flips of the layer are classified, rather than flips of some weights.
    """

    shares: Floats
    sizes: Ints
    is_whole: bool
    _weights: Ints
    _masks: Masks
    _copies: Masks
    _order: Ints

    def draw(self, counts: Ints, rng: np.random.Generator) -> FlipSample:
        """Return flips drawn without repetition, in the order of their strata.

        Args:
            counts: number of flips to draw from each stratum, (h,), at most its size.
            rng: generator of random numbers.
        """
        starts = np.cumsum(self.sizes) - self.sizes
        chosen = [
            start + rng.choice(size, count, replace=False)
            for start, size, count in zip(starts, self.sizes, counts, strict=True)
        ]
        cells = self._order[np.concatenate(chosen)] if chosen else np.zeros(0, dtype=np.int64)
        columns, rows = np.divmod(cells, len(self._weights))
        return FlipSample(self._weights[rows], self._masks[columns], self._copies[:, columns])


def stratify_flips(
    stored: StoredLayer,
    protection: Protection,
    chosen: int,
    read_rows: NDArray[np.bool_] | None,
    trials: int,
    rng: np.random.Generator,
) -> FlipStrata:
    """Return the flips of a protected layer, classified by the change of the weight.

    Args:
        stored: the layer.
        protection: protection of the layer; check bits may flip if ``chosen`` has all bits.
        chosen: mask of the bits of codes that may flip.
        read_rows: which rows of the layer the model reads, (rows,); ``None`` for all.
        trials: number of flips to sample, which limits the number of strata.
        rng: generator of random numbers for the choice of weights in a large layer.
    """
    weights = np.arange(stored.weight.size)
    if read_rows is not None:
        weights = weights[np.repeat(read_rows, stored.weight[0].size)]
    live = len(weights)
    if live > MOST_WEIGHTS:
        weights = np.sort(rng.choice(weights, MOST_WEIGHTS, replace=False))
    masks, copies = _list_flips(stored, protection, chosen)
    classes = np.empty((len(masks), len(weights)), dtype=np.uint8)
    intact = stored.values.reshape(-1)[weights]
    largest = max(float(np.abs(stored.values).max()), float(np.finfo(np.float32).tiny))
    for column, mask in enumerate(masks):
        flips = np.full(len(weights), mask)
        others = np.repeat(copies[:, column : column + 1], len(weights), axis=1)
        classes[column] = _classify(
            stored.read(protection, weights, flips, others), intact, largest
        )
    flat = classes.reshape(-1)
    sizes = np.bincount(flat, minlength=_UNBOUNDED + 1)
    order = np.argsort(flat, kind="stable")[sizes[0] :]
    merged = _merge(sizes[1:], trials // _FLIPS_IN_STRATUM)
    return FlipStrata(
        shares=merged / max(len(flat), 1) * live / stored.weight.size,
        sizes=merged,
        is_whole=live == len(weights),
        _weights=weights,
        _masks=masks,
        _copies=copies,
        _order=order,
    )


_UNBOUNDED = _MOST - _LEAST + 2  # the class of infinite changes; 0 is that of no change


def _classify(values: Single, intact: Single, largest: float) -> NDArray[np.uint8]:
    """Return the class of each change, (k,): 0 for none, else its half octave."""
    with np.errstate(all="ignore"):
        change = np.abs(values.astype(np.float64) - intact) / largest
        octaves = np.clip(np.floor(2 * np.log2(change)), _LEAST, _MOST)
    found = np.where(np.isfinite(change), octaves - _LEAST + 1, _UNBOUNDED)
    return np.where(values == intact, 0, found).astype(np.uint8)


def _list_flips(stored: StoredLayer, protection: Protection, chosen: int) -> tuple[Masks, Masks]:
    """Return each flip of a stored word: masks of its code, (b,), and copies, (copies, b)."""
    bits = [(0, place) for place in positions(chosen).tolist()]
    kinds = protection.copies(stored.code)
    if chosen == stored.code.all:
        bits += [
            (row, one) for row, mask in enumerate(kinds, 1) for one in positions(mask).tolist()
        ]
    found = np.zeros((1 + len(kinds), len(bits)), dtype=np.uint64)
    for column, (row, place) in enumerate(bits):
        found[row, column] = 1 << place
    return found[0], found[1:]


def positions(mask: int) -> NDArray[np.uint64]:
    """Return the positions of the bits of a mask, the lowest first."""
    found = [place for place in range(mask.bit_length()) if mask >> place & 1]
    return np.array(found, dtype=np.uint64)


def _merge(sizes: Ints, most: int) -> Ints:
    """Return the sizes of strata, joined from neighbouring classes to at most ``most``."""
    least = sizes.sum() / max(most, 1)
    found: list[int] = []
    waiting = 0
    for size in sizes.tolist():
        waiting += size
        if waiting and waiting >= least:
            found.append(waiting)
            waiting = 0
    if waiting and found:
        found[-1] += waiting
    elif waiting:
        found.append(waiting)
    return np.array(found, dtype=np.int64)


def pilot_size(strata: FlipStrata, trials: int) -> int:
    """Return the size of the pilot sample of flips; 0 if there is nothing to allocate."""
    is_census = trials >= strata.sizes.sum()
    return 0 if is_census or len(strata.sizes) < 2 else trials // _PILOT


def allocate(shares: Floats, sizes: Ints, total: int) -> Ints:
    """Return the number of flips in each stratum, (h,): at least one, at most its size.

    Args:
        shares: share of the flips that each stratum should have, (h,), in any unit.
        sizes: number of flips in each stratum, (h,).
        total: number of flips to allocate; if there are fewer flips, all are allocated.
    """
    if total >= sizes.sum():
        return sizes.copy()
    target = total * shares / shares.sum()
    counts = np.clip(np.floor(target), 1, sizes).astype(np.int64)
    while counts.sum() < total:
        counts[np.argmax(np.where(counts < sizes, target - counts, -np.inf))] += 1
    while counts.sum() > total and counts.max() > 1:
        counts[np.argmax(np.where(counts > 1, counts - target, -np.inf))] -= 1
    return counts


def allocate_by_pilot(strata: FlipStrata, events: Ints, counts: Ints, total: int) -> Ints:
    """Return the flips in each stratum, (h,), after a pilot sample.

    Three tenths of the flips are allocated in proportion to the sizes of the strata, so that a
    stratum without an event in the pilot sample is not left out; the other flips are allocated in
    proportion to the size of a stratum times its standard deviation.

    Args:
        strata: the strata.
        events: corruptions in each stratum of the pilot sample, (h,).
        counts: flips in each stratum of the pilot sample, (h,).
        total: number of flips to allocate.

    Source:
        Neyman: On the Two Different Aspects of the Representative Method, 1934 (optimal
        allocation). Shares of the pilot sample are smoothed over neighbouring strata.
    """
    places = np.arange(len(counts))
    kernel = _NEIGHBOUR ** np.abs(places[:, None] - places)
    shares = (kernel @ events + _PRIOR) / (kernel @ counts + 2 * _PRIOR)
    optimal = strata.shares * np.sqrt(shares * (1 - shares))
    plain = strata.shares / strata.shares.sum()
    mixed = _PROPORTIONAL * plain + (1 - _PROPORTIONAL) * optimal / optimal.sum()
    return allocate(mixed, strata.sizes, total)
