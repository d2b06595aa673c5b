"""Torch's grouped convolution on one thread, timed."""

from __future__ import annotations

import torch
from torch import nn

from dse_evaluators.compression.timing import Timing
from dse_evaluators.kernels.convolution_shape import ConvolutionShape
from dse_evaluators.kernels.processor_time import processor_s
from dse_evaluators.workloads.torch_scope import one_thread

_KEPT_BYTES = 31 * 1024**2
"""glibc keeps what is freed up to the size of the largest block freed so far, and to 32 MiB."""


def measured_s(shape: ConvolutionShape, timing: Timing) -> tuple[float, float]:
    """The processor's seconds for one call in fp32, and the standard error of that."""
    with one_thread(), torch.inference_mode():
        # Else each call would get its output's pages anew, which may take longer than to multiply.
        torch.empty(_KEPT_BYTES, dtype=torch.uint8)
        layer = nn.Conv2d(
            shape.channels,
            shape.filters,
            shape.window,
            stride=shape.stride,
            padding=shape.window // 2,
            groups=shape.channels // shape.group,
            bias=False,
        ).eval()
        nn.init.constant_(layer.weight, 0.5)  # which numbers makes no difference, but for denormals
        side = shape.side * shape.stride
        images = torch.full((timing.batch, shape.channels, side, side), 0.5)
        return processor_s(lambda: layer(images), timing)
