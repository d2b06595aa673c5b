"""Networks to be trained, as chains of blocks of convolutions.

A schedule may keep the activations between blocks on the chip. Each convolution is followed by a
normalization. Images are padded, so that only a stride or a pooling makes them smaller; the
classifier and the pooling itself are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from dse_evaluators.readings import look_up_row


@dataclass(frozen=True, slots=True, kw_only=True)
class Conv:
    """Square convolution on square images, whose padding preserves their size but for the stride.

    ``side`` is the width of the images; ``reads`` and ``writes`` are ids of its sets of input and
    output channels. Convolutions with the same id share these channels, as those whose outputs are
    summed in a residual stage do; id 0 is the network's input.
    """

    side: int
    window: int
    channels: int
    filters: int
    reads: int
    writes: int
    stride: int = 1

    @property
    def after(self) -> int:
        """Width and height of the convolution's output images, in pixels."""
        return self.side // self.stride

    @property
    def inputs(self) -> int:
        """Number of input activations of one sample."""
        return self.side**2 * self.channels

    @property
    def outputs(self) -> int:
        """Number of output activations of one sample."""
        return self.after**2 * self.filters

    @property
    def weights(self) -> int:
        return self.window**2 * self.channels * self.filters

    @property
    def macs(self) -> int:
        """Multiply-accumulates of the forward pass of one sample."""
        return self.after**2 * self.weights


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvolutionBlock:
    """Sequence of convolutions, with an optional residual connection.

    With ``adds``, the block's input is added to the output of the last convolution, after passing
    through the convolution ``shortcut`` if there is one.
    """

    convs: tuple[Conv, ...]
    shortcut: Conv | None = None
    adds: bool = False

    @property
    def all_convs(self) -> tuple[Conv, ...]:
        """Convolutions of the block, with the shortcut last if there is one."""
        return self.convs if self.shortcut is None else (*self.convs, self.shortcut)


def chain_of(network: str) -> tuple[ConvolutionBlock, ...]:
    """Return the blocks of a network by its name.

    Raises:
        SpecError: there is no such network.
    """
    return look_up_row("network", network, CHAINS)


def _resnet50() -> tuple[ConvolutionBlock, ...]:
    """Build ResNet-50 v1.5: the stem and 16 bottlenecks, with strides in 3 x 3 convolutions."""
    blocks = [
        ConvolutionBlock(
            convs=(Conv(side=224, window=7, channels=3, filters=64, stride=2, reads=0, writes=1),)
        )
    ]
    side, channels, stream = 56, 64, 1
    for stage, (inner, count) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for place in range(count):
            stride = 2 if place == 0 and stage > 0 else 1
            given = 100 * (stage + 1)  # id of the channels that the stage's blocks add up
            own = given + 1 + 2 * place
            sizes = (
                (side, 1, channels, inner, 1, stream, own),
                (side, 3, inner, inner, stride, own, own + 1),
                (side // stride, 1, inner, 4 * inner, 1, own + 1, given),
            )
            changes = (side, 1, channels, 4 * inner, stride, stream, given)
            blocks.append(
                ConvolutionBlock(
                    convs=tuple(_conv(*size) for size in sizes),
                    shortcut=_conv(*changes) if place == 0 else None,
                    adds=True,
                )
            )
            side, channels, stream = side // stride, 4 * inner, given
    return tuple(blocks)


def _conv(*size: int) -> Conv:
    side, window, channels, filters, stride, reads, writes = size
    return Conv(
        side=side,
        window=window,
        channels=channels,
        filters=filters,
        stride=stride,
        reads=reads,
        writes=writes,
    )


def _vgg16() -> tuple[ConvolutionBlock, ...]:
    """Build VGG-16: five stages separated by poolings, with 13 convolutions of 3 x 3."""
    blocks, side, channels, stream = list[ConvolutionBlock](), 224, 3, 0
    for filters, count in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
        convs = list[Conv]()
        for _ in range(count):
            convs.append(_conv(side, 3, channels, filters, 1, stream, stream + 1))
            channels, stream = filters, stream + 1
        blocks.append(ConvolutionBlock(convs=tuple(convs)))
        side //= 2
    return tuple(blocks)


# He, Zhang, Ren, Sun: Deep Residual Learning for Image Recognition, 2016, table 1.
# Simonyan, Zisserman: Very Deep Convolutional Networks, 2015, table 1, column D.
CHAINS: Mapping[str, tuple[ConvolutionBlock, ...]] = {"resnet50": _resnet50(), "vgg16": _vgg16()}
