"""Fault-injection campaign: sampled flips in each layer, and the share that corrupts outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from dse.core.values import Floats, Ints
from dse_evaluators.faults.fault_runner import FaultOutcome, FaultRunner
from dse_evaluators.faults.proportions import Proportion, sum_proportions, wilson
from dse_evaluators.faults.protections import Masks, Protection
from dse_evaluators.faults.stored_layer import StoredLayer
from dse_evaluators.formats.arrays import Single


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFaults:
    """Result of the flips in one layer under a protection.

    Attributes:
        layer: name of the layer.
        code_bits: bits of its codes that may flip.
        check_bits: additional bits that may flip.
        sdc: silent data corruptions for each flip that the unprotected layer suffers, with a 95 %
            interval. Check bits suffer flips at the same rate, and are included.
        quality: mean of each quality metric over flips in all stored bits, (q,).
        quality_stderr: its standard errors, (q,).
        flips: number of sampled flips in codes.
    """

    layer: str
    code_bits: int
    check_bits: int
    sdc: Proportion
    quality: Floats
    quality_stderr: Floats
    flips: int


class Flips(NamedTuple):
    """Sampled single flips: the weights, (k,), and the flipped bit of each, (k,)."""

    places: Ints
    masks: Masks


class FlipCampaign:
    """Single flips in the stored codes of a model's layers.

    Flips are drawn without repetition and independently of the protection, so that protections are
    compared on the same flips. Outcomes are kept: a weight that is read as the same value under two
    protections is run once.

    Args:
        runner: runs the model with faulty weights.
        layers: the stored layers by name.
        bits: the bits that may flip: a field of the codes or a position; see ``CodeBits.chosen``.
        trials: number of flips in each layer, or all possible ones if these are fewer.
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
            protection: its protection.
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
        codes = sample_flips(stored, self._bits, self._trials, seed, layer)
        none = np.zeros((len(protection.copies(stored.code)), len(codes.places)), dtype=np.uint64)
        in_codes = self._outcomes(layer, protection, codes, none)
        sdc = wilson(sum(one.corrupt for one in in_codes), len(in_codes))
        quality = np.array([one.quality for one in in_codes])  # (k, q)
        mean, error = quality.mean(axis=0), quality.std(axis=0) / np.sqrt(len(quality))
        if check_bits:
            copies = _flip_checks(protection, stored, len(codes.places), seed)
            blank = Flips(codes.places, np.zeros_like(codes.masks))
            in_checks = self._outcomes(layer, protection, blank, copies)
            ratio = check_bits / code_bits
            more = wilson(sum(one.corrupt for one in in_checks), len(in_checks)).scaled(ratio)
            # The same weights are drawn for both terms, so that their errors add.
            sdc = Proportion(*(one + other for one, other in zip(sdc, more, strict=True)))
            other = np.array([one.quality for one in in_checks])
            mean = (mean + ratio * other.mean(axis=0)) / (1 + ratio)
            error = (error + ratio * other.std(axis=0) / np.sqrt(len(other))) / (1 + ratio)
        return LayerFaults(
            layer=layer,
            code_bits=code_bits,
            check_bits=check_bits,
            sdc=sdc,
            quality=mean,
            quality_stderr=error,
            flips=len(in_codes),
        )

    def _outcomes(
        self, layer: str, protection: Protection, flips: Flips, copies: Masks
    ) -> list[FaultOutcome]:
        """Return the outcome of each flip; runs that were made before are not repeated."""
        stored, runs = self.layers[layer], self._runs[layer]
        values = read_flips(stored, protection, flips, copies)
        words = values.view(np.uint32).tolist()
        keys = list(zip(flips.places.tolist(), words, strict=True))
        intact = stored.values.reshape(-1)[flips.places]
        masked = (values == intact).tolist()
        new = dict.fromkeys(
            key for key, same in zip(keys, masked, strict=True) if not same and key not in runs
        )
        if True in masked and _INTACT not in runs:
            first = masked.index(True)
            places = flips.places[first : first + 1]
            runs[_INTACT] = self.runner.run_flips(layer, places, intact[first : first + 1])[0]
        if new:
            places = np.array([place for place, _ in new])
            changed = np.array([word for _, word in new], dtype=np.uint32).view(np.float32)
            runs |= zip(new, self.runner.run_flips(layer, places, changed), strict=True)
        return [runs[_INTACT if same else key] for key, same in zip(keys, masked, strict=True)]


_INTACT = (-1, 0)
"""Key of the run without faults."""


def sample_flips(stored: StoredLayer, bits: str, trials: int, seed: int, layer: str) -> Flips:
    """Return flips in different bits of a layer's codes.

    Args:
        stored: the layer.
        bits: the bits that may flip.
        trials: number of flips; if the layer has fewer bits, each is flipped once.
        seed: seed of the sample.
        layer: name of the layer, on which the sample depends.
    """
    positions = _positions(stored.code.chosen(bits))
    total = stored.weight.size * len(positions)
    rng = np.random.default_rng([seed, crc32(layer.encode())])
    cells = rng.choice(total, min(trials, total), replace=False)
    masks = np.uint64(1) << positions[cells % len(positions)]
    return Flips(cells // len(positions), masks)


def _positions(mask: int) -> NDArray[np.uint64]:
    found = [place for place in range(mask.bit_length()) if mask >> place & 1]
    return np.array(found, dtype=np.uint64)


def _flip_checks(protection: Protection, stored: StoredLayer, count: int, seed: int) -> Masks:
    """Return masks with one flipped check bit in each of some words, (copies, count)."""
    masks = protection.copies(stored.code)
    bits = [(copy, place) for copy, mask in enumerate(masks) for place in _positions(mask).tolist()]
    drawn = np.random.default_rng([seed, 1]).integers(len(bits), size=count)
    found = np.zeros((len(masks), count), dtype=np.uint64)
    for column, number in enumerate(drawn.tolist()):
        copy, place = bits[number]
        found[copy, column] = 1 << place
    return found


def read_flips(stored: StoredLayer, protection: Protection, flips: Flips, copies: Masks) -> Single:
    """Return the value of each flip's weight as it is read, (k,), each flip by itself."""
    found = np.empty(len(flips.places), dtype=np.float32)
    for chosen in _distinct_rounds(flips.places):
        found[chosen] = stored.read(
            protection, flips.places[chosen], flips.masks[chosen], copies[:, chosen]
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
        found: the results of its layers.

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
    """Return the layers by the corruptions that each adds to the model's, greatest first."""
    return sorted(found, key=lambda one: -one.sdc.value * one.code_bits)
