"""Rotation counts against a simulation of every slot, and the bounds of pruning."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.private_inference.packed_convolution import PackedConvolution, rotation_counts
from dse_evaluators.private_inference.packed_layer import LayerShape

CIFAR_STAGES = [(64, 32), (128, 16), (256, 8), (512, 4)]


class Slots:
    """Ciphertext of a cyclic vector that counts its rotations."""

    rotations = 0

    @classmethod
    def rotate(cls, vector, turn):
        cls.rotations += turn != 0
        return np.roll(vector, -turn)


def simulate(side, channels, filters, slots):
    """Convolve packed images by rotations and products; return the image and the rotations."""
    rng, pixels, held = np.random.default_rng(0), side * side, slots // (side * side)
    image = rng.integers(-8, 8, (channels, side, side))
    weights = rng.integers(-8, 8, (filters, channels, 3, 3))
    packed = image.reshape(-1, held * pixels)
    offsets = [(down, right) for down in (-1, 0, 1) for right in (-1, 0, 1)]
    Slots.rotations = 0
    turned = {
        (source, offset): Slots.rotate(packed[source], offset[0] * side + offset[1])
        for source in range(len(packed))
        for offset in offsets
    }
    results = np.zeros((filters // held, slots), dtype=np.int64)
    for output in range(len(results)):
        for diagonal in range(held):
            total = np.zeros(slots, dtype=np.int64)
            for source in range(len(packed)):
                for down, right in offsets:
                    plain = np.zeros((held, side, side), dtype=np.int64)
                    for block in range(held):
                        made = output * held + (block - diagonal) % held
                        tap = weights[made, source * held + block, down + 1, right + 1]
                        rows = slice(max(-down, 0), side - max(down, 0))
                        columns = slice(max(-right, 0), side - max(right, 0))
                        plain[block, rows, columns] = tap
                    total += turned[source, (down, right)] * plain.ravel()
            results[output] += Slots.rotate(total, diagonal * pixels)
    return image, weights, results.reshape(filters, side, side), Slots.rotations


def convolve(image, weights):
    padded = np.pad(image, ((0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return np.einsum("chwij,fcij->fhw", windows, weights)


@pytest.mark.parametrize(
    ("side", "channels", "filters", "slots"),
    [(4, 8, 8, 64), (4, 16, 8, 128), (8, 4, 8, 128), (2, 16, 32, 32)],
)
def test_rotations_equal_those_of_a_simulation_of_every_slot(side, channels, filters, slots):
    image, weights, found, rotations = simulate(side, channels, filters, slots)
    shape = LayerShape(
        name="", height=side, width=side, channels=channels, filters=filters,
        window_height=3, window_width=3,
    )  # fmt: skip
    assert (found == convolve(image, weights)).all()
    assert sum(rotation_counts(shape, slots)[:2]) == rotations


def bound(slots, **kept):
    """Return the rotations of ResNet-18 on CIFAR over those with all of one kind pruned."""
    total, left = 0.0, 0.0
    for place, (channels, side) in enumerate(CIFAR_STAGES):
        before = channels if place == 0 else channels // 2
        shapes = [(before, 3), *[(channels, 3)] * 3, *([(before, 1)] if place else [])]
        for incoming, window in shapes:
            shape = {
                "height": side, "width": side, "channels": incoming, "filters": channels,
                "window": window,
            }  # fmt: skip
            evaluator = PackedConvolution(shape=shape)
            designs = Batch.of([{"slots": slots}, {"slots": slots, **kept}])
            rotations = evaluator.evaluate(designs).columns["rotations"]
            total, left = total + rotations[0], left + rotations[1]
    return total / left


@pytest.mark.parametrize(
    ("slots", "positional", "diagonal"),
    [(2048, 1.40, 3.47), (4096, 1.20, 6.09), (8192, 1.10, 11.2)],
)
def test_bounds_of_pruning_resnet_18(slots, positional, diagonal):
    assert bound(slots, positions_kept=0.0) == pytest.approx(positional, abs=0.02)
    assert bound(slots, diagonals_kept=0.0) == pytest.approx(diagonal, abs=0.05)
