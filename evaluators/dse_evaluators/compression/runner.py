"""Measurement of one compressed network: accuracy, loss, divergence, size and latency."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import functional

from dse.core.values import Floats
from dse_evaluators.compression.compress import Compressed, compress_network
from dse_evaluators.compression.compression_knobs import CompressionConfig
from dse_evaluators.compression.reference import Reference, reference
from dse_evaluators.compression.timing import Timing, time_call
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.network import forward
from dse_evaluators.workloads.resampling import LabelledOutputs, resample_quality
from dse_evaluators.workloads.torch_scope import deterministic, one_thread
from dse_evaluators.workloads.workload import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressionMeasurement:
    """Metrics of one compressed network, and the standard error of its latency [s].

    All metrics but the latency are reproducible. ``resamples`` are accuracy, loss and divergence on
    resamples of the images, (b,) by name; empty if no resampling was requested.
    """

    metrics: dict[str, float]
    latency_error_s: float
    resamples: dict[str, Floats] = field(default_factory=dict)


def measure_recipe(
    model: str,
    recipe: CompressionConfig,
    timing: Timing,
    split: Split,
    *,
    resampled: bool = False,
) -> CompressionMeasurement:
    """Compress a network with the given settings; measure its quality, size and latency.

    Args:
        model: name of the model.
        recipe: the settings.
        timing: the rounds of the latency.
        split: the images for the quality.
        resampled: measure the quality on resamples of the images, too.
    """
    whole = reference(model, split)
    with deterministic(), torch.inference_mode():
        small = compress_network(whole, recipe)
        log_probabilities = torch.log_softmax(small.logits(whole.images).double(), dim=1)
        quality = _quality(whole, log_probabilities)
    latency_s, error_s = _latency_s(whole, small, timing)
    metrics = {**quality, "size": float(small.size_bytes), "latency": latency_s}
    resamples = _resample(whole, log_probabilities, split) if resampled else {}
    return CompressionMeasurement(metrics=metrics, latency_error_s=error_s, resamples=resamples)


def _resample(whole: Reference, log_probabilities: Tensor, split: Split) -> dict[str, Floats]:
    """Return accuracy, loss and divergence on resamples of a split's images, (b,) by name."""
    examples = LabelledOutputs(labels=whole.labels.numpy(), score=_score)
    ours, wanted = log_probabilities.float().numpy(), whole.log_probabilities.float().numpy()
    return resample_quality(examples, ours, wanted, split)


def _score(ours: judging.Table, whole: judging.Table, labels: judging.Labels) -> dict[str, float]:
    found = judging.measure_classifier(ours, whole, labels)
    return {name: found[name] for name in ("accuracy", "loss", "divergence")}


def _quality(whole: Reference, log_probabilities: Tensor) -> dict[str, float]:
    """Compute accuracy, loss, and divergence from the uncompressed network on held-out images.

    Everything after the logits is computed in double precision.
    """
    right = log_probabilities.argmax(dim=1) == whole.labels
    divergence = functional.kl_div(
        log_probabilities, whole.log_probabilities, reduction="batchmean", log_target=True
    )
    return {
        "accuracy": float(right.double().mean()),
        "loss": float(functional.nll_loss(log_probabilities, whole.labels)),
        "divergence": float(divergence),
    }


def _latency_s(whole: Reference, small: Compressed, timing: Timing) -> tuple[float, float]:
    """Return the median latency of a forward pass on one thread and its standard error, in s.

    The network runs with PyTorch's fp32 kernels: fewer filters reduce latency, zeros and narrow
    formats do not.
    """
    copies = -(-timing.batch // len(whole.images))
    images = whole.images.repeat(copies, 1, 1, 1)[: timing.batch].contiguous()
    with one_thread(), torch.inference_mode():
        return time_call(lambda: forward(small.network, small.affines, images), timing)
