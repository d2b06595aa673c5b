"""CPU time measurement of Torch's grouped convolution on one thread."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch
from torch import nn

from dse.evaluation.timing.median_interval import median_error
from dse_evaluators.compression.timing import Timing
from dse_evaluators.kernels.convolution_shape import ConvolutionShape
from dse_evaluators.workloads.torch_scope import one_thread

_KEPT_BYTES = 31 * 1024**2
"""Block size below glibc's limit of 32 MiB; freeing it makes glibc reuse smaller freed blocks."""

_ROUND_NS = 5_000_000


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


def processor_s(call: Callable[[], object], timing: Timing) -> tuple[float, float]:
    """Return the CPU seconds of a call on one thread, median over rounds, and the standard error.

    A round is as many calls as fill 5 ms, and at least one. Contention of other processes for
    caches and memory still slows a call down.
    """
    for _ in range(timing.warmup):
        call()
    rounds = np.array([_round_s(call) for _ in range(timing.repeats)])
    return float(np.median(rounds)), median_error(rounds)


def _round_s(call: Callable[[], object]) -> float:
    calls, start = 0, time.thread_time_ns()
    while (spent := time.thread_time_ns() - start) < _ROUND_NS or not calls:
        call()
        calls += 1
    return spent / calls * 1e-9
