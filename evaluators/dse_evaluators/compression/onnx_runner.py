"""Measurement of one ONNX file: its outputs, its size and its latency."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse_evaluators.compression.onnx_files import file_of, weight_bytes
from dse_evaluators.compression.onnx_recipe import OPTIMIZATIONS, OnnxRecipe
from dse_evaluators.compression.timing import Timing, time_call
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.magika import Magika, log_shares, magika
from dse_evaluators.workloads.onnx_runtime import Session
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxMeasurement:
    """Measured values of one ONNX file; all except the latency are reproducible."""

    metrics: dict[str, float]
    latency_error_s: float


def measure_recipe(recipe: OnnxRecipe, timing: Timing, split: Split) -> OnnxMeasurement:
    """Measure quality, sizes and latency of the magika network with these settings.

    Raises:
        PluginError: an asset, onnx or onnxruntime is not installed.
        SpecError: the format is unknown.
        EvaluationError: the weights cannot be rounded, or onnxruntime cannot run the file.
    """
    workload = magika()
    path = file_of(workload, recipe)
    whole = file_of(workload, OnnxRecipe())
    level = OPTIMIZATIONS[recipe.optimization]
    quality = workload.quality(
        _outputs(workload, path, level, split), _outputs(workload, whole, level, split), split
    )
    model = path.read_bytes()
    latency_s, error_s = _latency_s(workload, Session(model, level), timing, split)
    sizes = {"size": float(len(model)), "weight_size": weight_bytes(workload, recipe, model)}
    return OnnxMeasurement(
        metrics={**quality, **sizes, "latency": latency_s}, latency_error_s=error_s
    )


def _outputs(workload: Magika, path: Path, level: str, split: Split) -> Single:
    """Return the network's outputs on a split's examples, from the cache if present."""
    tokens = workload.examples(split).tokens
    seen = hashlib.sha256(tokens.tobytes()).hexdigest()[:16]
    shape = (len(tokens), len(workload.parameters["dense.bias"].ravel()))

    def make() -> Arrays:
        return {"outputs": log_shares(Session(path.read_bytes(), level), tokens)}

    return load_or_make(f"onnx/{path.stem}-{level}-{seen}", {"outputs": shape}, make)["outputs"]


def _latency_s(
    workload: Magika, session: Session, timing: Timing, split: Split
) -> tuple[float, float]:
    """Return the median latency of a call on one thread and its standard error, in seconds."""
    tokens = np.resize(workload.examples(split).tokens, (timing.batch, workload.width))
    return time_call(lambda: session.run(tokens), timing)
