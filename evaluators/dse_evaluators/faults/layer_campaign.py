"""Fault-injection campaign: sampled flips in each layer, and the share that corrupts outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.faults.fault_runner import FaultOutcome, FaultRunner
from dse_evaluators.faults.flip_strata import (
    MOST_WEIGHTS,
    FlipSample,
    FlipStrata,
    allocate,
    allocate_by_pilot,
    pilot_size,
    positions,
    stratify_flips,
)
from dse_evaluators.faults.proportions import Proportion, stratified_proportion, sum_proportions
from dse_evaluators.faults.protections import Protection
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.formats.arrays import Single


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFaults:
    """Result of the flips in one layer under a protection.

    Attributes:
        layer: name of the layer.
        code_bits: number of bits of the layer's codes that may flip.
        check_bits: number of bits added by the protection that may flip.
        sdc: silent data corruptions for each flip that the unprotected layer suffers, with a 95 %
            interval. Check bits suffer flips at the same rate, and are included.
        quality: mean of each quality metric over flips in all stored bits, (q,).
        quality_stderr: standard errors of ``quality``, (q,).
        flips: number of sampled flips, without the pilot sample.
    """

    layer: str
    code_bits: int
    check_bits: int
    sdc: Proportion
    quality: Floats
    quality_stderr: Floats
    flips: int


class FlipCampaign:
    """Fault-injection campaign of single bit flips in the stored codes of a model's layers.

    Flips are stratified by the change of the weight that is read: flips that change nothing are
    not run. A pilot sample of a fifth of the flips shows in which strata some flips corrupt and
    others do not, and most runs are of these strata. Outcomes are kept: a weight that is read as
    the same value under two protections is run once.

    Args:
        runner: runs the model with faulty weights.
        layers: the stored layers by name.
        bits: the bits that may flip: a field of the codes or a position; see ``CodeBits.chosen``.
        trials: number of flips in each layer, including the pilot sample; if fewer flips are
            possible, all are run.
    """

    def __init__(
        self, runner: FaultRunner, layers: Mapping[str, StoredLayer], bits: str, trials: int
    ) -> None:
        self.runner, self.layers = runner, layers
        self._bits, self._trials = bits, trials
        self._runs: dict[str, dict[tuple[int, int], FaultOutcome]] = {name: {} for name in layers}
        self._found: dict[tuple[str, str, int], LayerFaults] = {}

    def measure_layer(self, layer: str, protection: Protection, seed: int) -> LayerFaults:
        """Return the result of the flips in a layer under a protection.

        Args:
            layer: name of the layer.
            protection: protection of the layer.
            seed: seed of the sampled flips.
        """
        key = (layer, protection.name, seed)
        if key not in self._found:
            self._found[key] = self._measure(layer, protection, seed)
        return self._found[key]

    def exposed_bits(self, layer: str, protection: Protection) -> tuple[int, int]:
        """Return the numbers of bits of a layer's codes, and of its checks, that may flip."""
        stored = self.layers[layer]
        count, chosen = stored.weight.size, stored.code.chosen(self._bits)
        checks = protection.check_bits(stored.code) if chosen == stored.code.all else 0
        return count * chosen.bit_count(), count * checks

    def _measure(self, layer: str, protection: Protection, seed: int) -> LayerFaults:
        stored = self.layers[layer]
        code_bits, check_bits = self.exposed_bits(layer, protection)
        rng = np.random.default_rng([seed, crc32(layer.encode())])
        chosen, rows = stored.code.chosen(self._bits), self.runner.read_rows(layer)
        strata = stratify_flips(stored, protection, chosen, rows, self._trials, rng)
        counts, outcomes = self._sample(layer, protection, strata, rng)
        corrupt = np.array([one.corrupt for one in outcomes], dtype=np.int64)
        clusters = None if strata.is_whole else MOST_WEIGHTS
        sdc = stratified_proportion(
            _add_strata(corrupt, counts), counts, strata.sizes, strata.shares, clusters
        )
        intact = np.array(self._intact(layer).quality)  # (q,)
        quality = np.array([one.quality for one in outcomes]).reshape(-1, len(intact))
        mean, error = _mean_quality(quality, counts, strata, intact)
        return LayerFaults(
            layer=layer,
            code_bits=code_bits,
            check_bits=check_bits,
            sdc=sdc.scaled(1 + check_bits / code_bits),
            quality=mean,
            quality_stderr=error,
            flips=len(outcomes),
        )

    def _sample(
        self, layer: str, protection: Protection, strata: FlipStrata, rng: np.random.Generator
    ) -> tuple[Ints, list[FaultOutcome]]:
        """Return the number and the outcomes of each stratum's flips, without the pilot sample."""
        pilot = pilot_size(strata, self._trials)
        counts = allocate(strata.shares, strata.sizes, pilot or self._trials)
        outcomes = self._outcomes(layer, protection, strata.draw(counts, rng))
        if pilot:
            # The pilot sample decides on the allocation only: with it, the mean would be biased.
            events = _add_strata(np.array([one.corrupt for one in outcomes], np.int64), counts)
            counts = allocate_by_pilot(strata, events, counts, self._trials - pilot)
            outcomes = self._outcomes(layer, protection, strata.draw(counts, rng))
        return counts, outcomes

    def _intact(self, layer: str) -> FaultOutcome:
        """Return the outcome of the run without faults."""
        runs = self._runs[layer]
        if _INTACT not in runs:
            value = self.layers[layer].values.reshape(-1)[:1]
            runs[_INTACT] = self.runner.run_flips(layer, np.zeros(1, dtype=np.int64), value)[0]
        return runs[_INTACT]

    def _outcomes(
        self, layer: str, protection: Protection, sample: FlipSample
    ) -> list[FaultOutcome]:
        """Return the outcome of each flip; runs that were made before are not repeated."""
        stored, runs = self.layers[layer], self._runs[layer]
        values = read_flips(stored, protection, sample)
        words = values.view(np.uint32).tolist()
        keys = list(zip(sample.places.tolist(), words, strict=True))
        new = [key for key in dict.fromkeys(keys) if key not in runs]
        if new:
            places = np.array([place for place, _ in new])
            changed = np.array([word for _, word in new], dtype=np.uint32).view(np.float32)
            runs |= zip(new, self.runner.run_flips(layer, places, changed), strict=True)
        return [runs[key] for key in keys]


_INTACT = (-1, 0)
"""Key of the run without faults."""


def _add_strata(values: Ints, counts: Ints) -> Ints:
    """Return the sum of the values of each stratum's flips, (h,)."""
    return np.bincount(np.repeat(np.arange(len(counts)), counts), values, len(counts)).astype(int)


def _mean_quality(
    quality: Floats, counts: Ints, strata: FlipStrata, intact: Floats
) -> tuple[Floats, Floats]:
    """Return the mean of each quality metric, (q,), and its standard error, (q,).

    Args:
        quality: metrics of the sampled flips by stratum, (k, q).
        counts: number of flips in each stratum, (h,).
        strata: the strata.
        intact: metrics without faults, (q,), which flips outside of all strata have.
    """
    rest = 1 - strata.shares.sum()
    mean, variance = rest * intact, np.zeros(len(intact))
    parts = np.split(quality, np.cumsum(counts)[:-1]) if len(counts) else []
    for share, size, part in zip(strata.shares, strata.sizes, parts, strict=True):
        mean = mean + share * part.mean(axis=0)
        variance += share**2 * part.var(axis=0) / len(part) * (1 - len(part) / size)
    return mean, np.sqrt(variance)


def sample_flips(stored: StoredLayer, bits: str, trials: int, seed: int, layer: str) -> FlipSample:
    """Return flips in different bits of a layer's codes, all bits with equal probability.

    Args:
        stored: the layer.
        bits: the bits that may flip.
        trials: number of flips; if the layer has fewer bits, each is flipped once.
        seed: seed of the sample.
        layer: name of the layer, on which the sample depends.
    """
    places = positions(stored.code.chosen(bits))
    total = stored.weight.size * len(places)
    rng = np.random.default_rng([seed, crc32(layer.encode())])
    cells = rng.choice(total, min(trials, total), replace=False)
    masks = np.uint64(1) << places[cells % len(places)]
    return FlipSample(cells // len(places), masks, np.zeros((0, len(masks)), dtype=np.uint64))


def read_flips(stored: StoredLayer, protection: Protection, sample: FlipSample) -> Single:
    """Return each flipped weight as it is read, (k,), each flip by itself."""
    found = np.empty(len(sample.places), dtype=np.float32)
    copies = sample.copies
    if not len(copies):  # the copies of the protection are intact
        copies = np.zeros((len(protection.copies(stored.code)), len(found)), dtype=np.uint64)
    for chosen in _distinct_rounds(sample.places):
        found[chosen] = stored.read(
            protection, sample.places[chosen], sample.masks[chosen], copies[:, chosen]
        )
    return found


def _distinct_rounds(places: Ints) -> Iterator[Ints]:
    """Yield the positions of places in rounds, such that no place occurs twice in a round."""
    left = np.arange(len(places))
    while len(left):
        _, first = np.unique(places[left], return_index=True)
        yield left[first]
        left = np.delete(left, first)


def sum_layer_faults(found: Sequence[LayerFaults]) -> tuple[Proportion, Floats]:
    """Return the corruptions of a model for each flip without protection, and its mean quality.

    Args:
        found: the results of the model's layers.

    Returns:
        The corruptions with their interval, and the mean and standard error of each quality metric
        over flips in all stored bits, (2, q).
    """
    total = sum(one.code_bits for one in found)
    sdc = sum_proportions([one.sdc.scaled(one.code_bits / total) for one in found])
    stored = np.array([[one.code_bits + one.check_bits] for one in found], dtype=np.float64)
    shares = stored / stored.sum()
    mean = (shares * [one.quality for one in found]).sum(axis=0)
    error = np.sqrt(((shares * [one.quality_stderr for one in found]) ** 2).sum(axis=0))
    return sdc, np.stack([mean, error])


def rank_layers(found: Sequence[LayerFaults]) -> list[LayerFaults]:
    """Rank the layers by the corruptions that each adds to the model's, greatest first."""
    return sorted(found, key=lambda one: -one.sdc.value * one.code_bits)
