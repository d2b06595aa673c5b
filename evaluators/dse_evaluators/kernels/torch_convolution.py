"""CPU time measurement of Torch's grouped convolution on one thread."""

from __future__ import annotations

import torch
from torch import nn

from dse_evaluators.compression.timing import Timing
from dse_evaluators.kernels.convolution_shape import ConvolutionShape
from dse_evaluators.kernels.processor_time import processor_s
from dse_evaluators.workloads.torch_scope import one_thread

_KEPT_BYTES = 31 * 1024**2
"""Block size below glibc's limit of 32 MiB; freeing it makes glibc reuse smaller freed blocks."""


def measured_s(shape: ConvolutionShape, timing: Timing) -> tuple[float, float]:
    """Return the CPU seconds of one fp32 call of the convolution, and their standard error."""
    with one_thread(), torch.inference_mode():
        # Otherwise each call maps new pages for its output, which may take longer than computing.
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
        nn.init.constant_(layer.weight, 0.5)  # any value but denormals takes the same time
        side = shape.side * shape.stride
        images = torch.full((timing.batch, shape.channels, side, side), 0.5)
        return processor_s(lambda: layer(images), timing)
