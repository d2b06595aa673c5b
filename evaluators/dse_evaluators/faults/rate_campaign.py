"""Fault patterns of a bit error rate: many flips at once, in all layers of a model."""

from __future__ import annotations

from collections.abc import Mapping
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.faults.fault_runner import FaultOutcome, FaultRunner
from dse_evaluators.faults.protections import Masks, Protection
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.formats.arrays import Single

_MOST_FLIPS = 50_000_000


def run_patterns(
    runner: FaultRunner,
    layers: Mapping[str, StoredLayer],
    protections: Mapping[str, Protection],
    bits: str,
    rate: float,
    seeds: tuple[int, int],
) -> list[FaultOutcome]:
    """Return the outcome of runs of a model in which each stored bit flips with a probability.

    Flips of codes do not depend on the protection.

    Args:
        runner: runs the model with faulty weights.
        layers: the layers whose bits may flip, by name.
        protections: the protections of these layers, by name.
        bits: the bits of codes that may flip; check bits flip only with ``all``.
        rate: probability that a stored bit flips.
        seeds: seed of the patterns, and number of patterns.

    Raises:
        EvaluationError: a pattern has too many flips for the memory.
    """
    seed, count = seeds
    stored_bits = sum(one.weight.size * one.code.bits for one in layers.values())
    if rate * stored_bits > _MOST_FLIPS:
        raise EvaluationError(
            f"a pattern has about {rate * stored_bits:.3g} flips",
            hint=f"at most {_MOST_FLIPS:.0g}: a rate up to {_MOST_FLIPS / stored_bits:.2g}",
        )
    found = []
    for trial in range(count):
        weights = {}
        for name, stored in layers.items():
            start = [seed, trial, crc32(name.encode())]
            faulty = _faulty_weights(stored, protections[name], bits, rate, start)
            if faulty is not None:
                weights[name] = faulty
        found.append(runner.run_weights(weights))
    return found


def _faulty_weights(
    stored: StoredLayer, protection: Protection, bits: str, rate: float, start: list[int]
) -> Single | None:
    """Return a layer's weights as they are read under random flips; None if nothing flips."""
    chosen = stored.code.chosen(bits)
    copies = protection.copies(stored.code) if chosen == stored.code.all else ()
    drawn = [
        _draw_flips(stored.weight.size, mask, rate, [*start, number])
        for number, mask in enumerate((chosen, *copies))
    ]
    places = np.unique(np.concatenate([one for one, _ in drawn]))
    if not len(places):
        return None
    count = max(1 + len(protection.copies(stored.code)), 1)
    masks = np.zeros((count, len(places)), dtype=np.uint64)
    for row, (weights, flips) in zip(masks, drawn, strict=False):
        np.bitwise_or.at(row, np.searchsorted(places, weights), flips)
    faulty = stored.values.copy()
    faulty.reshape(-1)[places] = stored.read(protection, places, masks[0], masks[1:])
    return faulty


def _draw_flips(
    count: int, mask: int, rate: float, start: list[int]
) -> tuple[Ints, NDArray[np.uint64]]:
    """Return the weights and bits that flip among the masked bits of some words."""
    positions = np.array(
        [place for place in range(mask.bit_length()) if mask >> place & 1], dtype=np.uint64
    )
    rng = np.random.default_rng(start)
    total = count * len(positions)
    cells = rng.choice(total, int(rng.binomial(total, rate)), replace=False)
    flips: Masks = np.uint64(1) << positions[cells % len(positions)]
    return cells // len(positions), flips
