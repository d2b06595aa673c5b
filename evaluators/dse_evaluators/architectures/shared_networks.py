"""Convolutional networks that share the weights of a supernet: two stages and a classifier."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.values import Value
from dse.errors import InfeasibleError
from dse_evaluators.workloads.layers import Layer, convolution, dense

STAGES = (1, 2)
MOST_WIDTH = {1: 8, 2: 32}
MOST_DEPTH = 3
KERNELS = (3, 5)
SAMPLED_WIDTHS = {1: (2, 4, 8), 2: (4, 8, 16, 32)}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedNetwork:
    """Network that shares weights with others: image side, widths and kernels of each stage.

    The second stage has half the side. A stage that has fewer layers skips its last ones.
    """

    resolution: int
    widths: tuple[int, ...]  # by stage
    kernels: tuple[tuple[int, ...], ...]  # by stage and layer

    def layers(self, channels: int, classes: int) -> tuple[Layer, ...]:
        """Return the network's layers, given the channels of images and the number of classes."""
        found, inputs = list[Layer](), channels
        for stage, place, kernel in self.places():
            side = self.resolution // stage
            width = self.widths[stage - 1]
            found.append(convolution(f"conv{stage}_{place}", side, kernel, inputs, width))
            inputs = width
        return (*found, dense("classifier", inputs, classes, last=True))

    def places(self) -> Iterator[tuple[int, int, int]]:
        """Yield stage, index in the stage (from 1), and kernel of each convolution."""
        for stage, kernels in zip(STAGES, self.kernels, strict=True):
            for place, kernel in enumerate(kernels, 1):
                yield stage, place, kernel


def network_of(design: Mapping[str, Value]) -> SharedNetwork:
    """Return the network of a design that has all inputs.

    Raises:
        InfeasibleError: the side is odd, or a kernel is even.
    """
    resolution = int(design["resolution"])
    depths = [int(design[f"depth_{stage}"]) for stage in STAGES]
    kernels = tuple(
        tuple(int(design[f"kernel_{stage}_{place}"]) for place in range(1, depth + 1))
        for stage, depth in zip(STAGES, depths, strict=True)
    )
    if resolution % 2:
        raise InfeasibleError(f"resolution is {resolution}, and is halved between the stages")
    if any(kernel not in KERNELS for stage in kernels for kernel in stage):
        raise InfeasibleError(f"a kernel is one of {KERNELS}")
    widths = tuple(int(design[f"width_{stage}"]) for stage in STAGES)
    return SharedNetwork(resolution=resolution, widths=widths, kernels=kernels)


def largest_network(side: int) -> SharedNetwork:
    """Return the largest network for a side of images, whose weights all others share."""
    return SharedNetwork(
        resolution=side,
        widths=tuple(MOST_WIDTH[stage] for stage in STAGES),
        kernels=((max(KERNELS),) * MOST_DEPTH,) * len(STAGES),
    )


def smallest_network(side: int) -> SharedNetwork:
    """Return the smallest network that the training of the supernet samples."""
    return SharedNetwork(
        resolution=side // 2,
        widths=tuple(min(SAMPLED_WIDTHS[stage]) for stage in STAGES),
        kernels=((min(KERNELS),),) * len(STAGES),
    )


def draw_network(side: int, rng: np.random.Generator) -> SharedNetwork:
    """Draw a network: all sides, widths, depths and kernels are equally likely."""
    sides = range(side // 2, side + 1, 2)
    return SharedNetwork(
        resolution=int(rng.choice(sides)),
        widths=tuple(int(rng.choice(SAMPLED_WIDTHS[stage])) for stage in STAGES),
        kernels=tuple(
            tuple(int(one) for one in rng.choice(KERNELS, size=rng.integers(1, MOST_DEPTH + 1)))
            for _ in STAGES
        ),
    )
