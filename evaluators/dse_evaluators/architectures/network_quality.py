"""Measurement of a network of a supernet, in a number format, on held-out images."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from dse.core.values import Floats
from dse_evaluators.architectures.image_files import ImageSplits
from dse_evaluators.architectures.shared_networks import SharedNetwork
from dse_evaluators.architectures.supernet_weights import (
    SupernetTraining,
    inherit,
    layers_for,
    load_or_train_alone,
    load_or_train_supernet,
    resize,
    resize_examples,
)
from dse_evaluators.compression.compress import Compressed, compress_network
from dse_evaluators.compression.compression_knobs import CompressionConfig
from dse_evaluators.compression.reference import Reference, build_reference
from dse_evaluators.generic.call_clock import CallTiming, time_by
from dse_evaluators.one_by_one import Found
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.network import Affines, forward
from dse_evaluators.workloads.resampling import LabelledOutputs, resample_quality
from dse_evaluators.workloads.torch_scope import deterministic, one_thread
from dse_evaluators.workloads.workload import Split

QUALITIES = ("accuracy", "loss")


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkRequest:
    """Network to be measured, with its weights, formats, seed, and number of images in a call."""

    net: SharedNetwork
    weights: str
    recipe: CompressionConfig
    seed: int
    epochs: int
    batch: int


def measure_network(
    asked: NetworkRequest, data: ImageSplits, split: Split, timing: CallTiming
) -> tuple[Found, Mapping[str, Floats]]:
    """Return the metrics of a network, and its quality on resamples of a test split."""
    layers = layers_for(asked.net, data.train)
    examples = resize_examples(data.judging[split], asked.net.resolution)
    calibration = resize(torch.tensor(data.calibration.images), asked.net.resolution)
    whole = build_reference(layers, _weights(asked, data), calibration, examples)
    with deterministic(), torch.inference_mode():
        small = compress_network(whole, asked.recipe)
        logits = small.logits(whole.images).numpy()
    labels = examples.labels
    latency_s, stderr_s = _time(whole, small, asked.batch, timing)
    values = {
        **_score(logits, logits, labels),
        "size": float(small.size_bytes),
        "latency": latency_s,
        "macs": float(sum(one.macs for one in layers)),
        "parameters": float(sum(one.weights + one.filters for one in layers)),
    }
    resamples: Mapping[str, Floats] = {}
    if split == "test":
        labelled = LabelledOutputs(labels=labels, score=_score)
        resamples = resample_quality(labelled, logits, logits, split)
    return Found(values=values, errors={"latency": stderr_s}), resamples


def _weights(asked: NetworkRequest, data: ImageSplits) -> Affines:
    training = SupernetTraining(seed=asked.seed, epochs=asked.epochs)
    if asked.weights == "own":
        weights = load_or_train_alone(asked.net, data.train, training)
    else:
        weights = load_or_train_supernet(data.train, training)
    return inherit(asked.net, weights, torch.tensor(data.train.images))


def _score(
    logits: judging.Table, _reference: judging.Table, labels: judging.Labels
) -> dict[str, float]:
    return {
        "accuracy": judging.accuracy(logits, labels),
        "loss": judging.cross_entropy_nat(logits, labels),
    }


def _time(
    whole: Reference, small: Compressed, batch: int, timing: CallTiming
) -> tuple[float, float]:
    """Return seconds of a forward pass on one thread, with PyTorch's fp32 kernels."""
    copies = -(-batch // len(whole.images))
    images = whole.images.repeat(copies, 1, 1, 1)[:batch].contiguous()
    with one_thread(), torch.inference_mode():
        return time_by(lambda: forward(small.network, small.affines, images), timing)
