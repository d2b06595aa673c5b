"""The traffic of convolutions drawn at random, beside a walk through every load.

    python benchmarks/delta.py [CASES [SEED]]

Layers of ResNet-18, VGG-16 and AlexNet, tiles, batches and SMs are drawn, each with four sizes of
L2; printed is every case that is off by more than a tenth, and what is off at all.
"""

from __future__ import annotations

import random
import sys

import numpy as np

from dse_evaluators.kernels.im2col_replay import replay
from dse_evaluators.kernels.im2col_traffic import ELEMENT_BYTES, tile_of, traffic
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import Layer

TILES = ("128x128x8", "128x64x4", "128x32x4", "64x64x8")
L2_MIB = (0.5, 1.0, 2.0, 4.0)
MOST_MACS = 300_000_000
"""A larger layer takes long to walk through."""


def layers() -> list[Layer]:
    """The convolutions that are small enough."""
    names = ("resnet18", "vgg16", "alexnet")
    every = [layer for name in names for layer in layers_of(name)]
    return [one for one in every if one.macs < MOST_MACS and one.groups == 1 and one.height > 1]


def main(cases: int, seed: int) -> None:
    """Draw, compare and print."""
    draw, off = random.Random(seed), []
    for _ in range(cases):
        layer, batch = draw.choice(layers()), draw.choice([1, 2, 3])
        text, sms = draw.choice(TILES), draw.choice([20, 28, 56])
        tile = tile_of(text)
        model = traffic(layer, batch, tile, sms)
        walk = replay(layer, batch, (tile.rows, tile.cols, tile.depth), sms)
        for mebibytes in L2_MIB:
            elements = int(mebibytes * 2**20 / ELEMENT_BYTES)
            regime = int(np.searchsorted(model.thresholds, elements, side="right"))
            read = walk.inputs.at(elements) + walk.filters.at(elements)
            ratio = (model.inputs[regime] + model.filters[regime]) / read
            off.append((abs(model.l2 / walk.l2 - 1), abs(ratio - 1)))
            if off[-1][1] > 0.1:
                print(f"{layer.name} batch {batch} {text} {sms} SMs {mebibytes:g} MiB: {ratio:.2f}")
    l2, dram = np.array(off).T
    print(f"seed {seed}: {len(off)} cases; L2 at most {l2.max():.2%} off")
    print(f"DRAM: median {np.median(dram):.2%}, at most {dram.max():.0%}, ", end="")
    print(f"{np.count_nonzero(dram > 0.2)} by more than 20 %")


if __name__ == "__main__":
    told = [int(text) for text in sys.argv[1:]]
    main(*(told + [40, 20261122][len(told) :]))
