"""ONNX file of a model: its quantization, cached on disk, and its measurement."""

from __future__ import annotations

import hashlib
import io
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.compression.onnx_recipe import (
    CALIBRATIONS,
    DYNAMIC,
    OPERATORS,
    OPTIMIZATIONS,
    RUNTIME,
    WHOLE,
    OnnxRecipe,
)
from dse_evaluators.compression.timing import Timing, time_call
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.magika import Magika, log_shares, magika
from dse_evaluators.workloads.magika_files import Tokens
from dse_evaluators.workloads.onnx_runtime import Session, all_initializers, library
from dse_evaluators.workloads.resampling import resample_quality
from dse_evaluators.workloads.weight_cache import Arrays, folder, load_or_make
from dse_evaluators.workloads.workload import Split


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxMeasurement:
    """Metrics of one ONNX file, and the standard error of its latency [s].

    All metrics except the latency are reproducible. ``resamples`` are the quality metrics on
    resamples of the examples, (b,) by name; empty if no resampling was requested.
    """

    metrics: dict[str, float]
    latency_error_s: float
    resamples: dict[str, Floats] = field(default_factory=dict)


def measure_recipe(
    recipe: OnnxRecipe, timing: Timing, split: Split, *, resampled: bool = False
) -> OnnxMeasurement:
    """Measure quality, sizes and latency of the magika network with these settings.

    Args:
        recipe: the settings.
        timing: the rounds of the latency.
        split: the examples for the quality.
        resampled: measure the quality on resamples of the examples, too.

    Raises:
        PluginError: an asset, onnx or onnxruntime is not installed.
        SpecError: the format is unknown.
        EvaluationError: the weights cannot be rounded, or onnxruntime cannot run the file.
    """
    workload = magika()
    path = file_of(workload, recipe)
    whole = file_of(workload, OnnxRecipe())
    level = OPTIMIZATIONS[recipe.optimization]
    outputs = (_outputs(workload, path, level, split), _outputs(workload, whole, level, split))
    quality = workload.quality(*outputs, split)
    resamples = resample_quality(workload, *outputs, split) if resampled else {}
    model = path.read_bytes()
    latency_s, error_s = _latency_s(workload, Session(model, level), timing, split)
    sizes = {"size": float(len(model)), "weight_size": weight_bytes(workload, recipe, model)}
    return OnnxMeasurement(
        metrics={**quality, **sizes, "latency": latency_s},
        latency_error_s=error_s,
        resamples=resamples,
    )


def _outputs(workload: Magika, path: Path, level: str, split: Split) -> Single:
    """Return the network's outputs on the examples of a split; cached."""
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


def file_of(workload: Magika, recipe: OnnxRecipe) -> Path:
    """Return the path of the ONNX file in the cache, building the file if it is missing.

    Raises:
        PluginError: onnx or onnxruntime is not installed.
        SpecError: the format is unknown.
        EvaluationError: the weights cannot be rounded to the format.
    """
    path = folder() / "onnx" / f"{workload.name}-{_name(workload, recipe)}.onnx"
    if not path.is_file():
        model = _build_model(workload, recipe)
        with draft(path) as fresh:
            fresh.write_bytes(model)
    return path


def weight_bytes(workload: Magika, recipe: OnnxRecipe, model: bytes) -> float:
    """Return the size of all weights in bytes.

    For formats of onnxruntime it is the size in the file. onnxruntime cannot read other formats:
    their file has the rounded weights in fp32, and the size is that of the weights packed.
    """
    if recipe.runtime_format in RUNTIME:
        return float(sum(array.nbytes for array in all_initializers(model).values()))
    chosen = format_of(recipe.runtime_format)
    bits = 0
    for name, array in workload.parameters.items():
        short = name in workload.compressible
        bits += chosen.bits(array.shape, _inputs(array)).total if short else 32 * array.size
    return bits / 8


@contextmanager
def draft(path: Path) -> Iterator[Path]:
    """Yield a temporary file in the folder of ``path``, renamed to ``path`` when it is complete."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".draft")
    os.close(handle)
    try:
        yield Path(name)
        Path(name).replace(path)
    finally:
        Path(name).unlink(missing_ok=True)


def _build_model(workload: Magika, recipe: OnnxRecipe) -> bytes:
    if recipe.runtime_format == WHOLE:
        return workload.model
    if recipe.runtime_format not in RUNTIME:
        return workload.with_parameters(_round_weights(workload, recipe.runtime_format))
    with tempfile.TemporaryDirectory() as place:
        whole, small = Path(place) / "whole.onnx", Path(place) / "small.onnx"
        whole.write_bytes(workload.model)
        if recipe.runtime_format == DYNAMIC:
            dynamic(whole, small, recipe)
        else:
            static(whole, small, recipe, workload.examples("calibration").tokens)
        return small.read_bytes()


def _round_weights(workload: Magika, text: str) -> dict[str, Single]:
    """Return the parameters with the layers' weights rounded to the values of a format."""
    chosen = format_of(text)
    return {
        name: chosen.quantize(array, _inputs(array)) if name in workload.compressible else array
        for name, array in workload.parameters.items()
    }


def _inputs(array: Single) -> tuple[int, ...]:
    """Return the input axes of a layer's weights: all but the first axis, the outputs."""
    return tuple(range(1, np.ndim(array)))


def _name(workload: Magika, recipe: OnnxRecipe) -> str:
    """Return a cache key of everything that the file's content depends on."""
    versions = [library(name).__version__ for name in ("onnx", "onnxruntime")]
    digest = hashlib.sha256(f"{recipe.key} {versions}".encode())
    digest.update(workload.model)
    digest.update(workload.examples("calibration").tokens.tobytes())
    return digest.hexdigest()[:16]


def dynamic(whole: Path, small: Path, recipe: OnnxRecipe) -> None:
    """Write the file with int8 weights and with activation scales computed for each input.

    Source:
        onnxruntime's documentation, Quantize ONNX Models, "Dynamic Quantization".
    """
    quantization = library("onnxruntime.quantization")
    with _quiet():
        quantization.quantize_dynamic(
            whole,
            small,
            op_types_to_quantize=_operators(recipe),
            per_channel=recipe.per_channel,
            weight_type=quantization.QuantType.QInt8,
        )


def static(whole: Path, small: Path, recipe: OnnxRecipe, tokens: Tokens) -> None:
    """Write the file with int8 weights and activations, and scales from calibration examples.

    Source:
        Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-
        Only Inference, 2018, section 2; onnxruntime's documentation, "Static Quantization" (QDQ).
    """
    quantization = library("onnxruntime.quantization")
    calibration = CALIBRATIONS[recipe.calibration]
    with _quiet():
        quantization.quantize_static(
            whole,
            small,
            _Reader(tokens),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=_operators(recipe),
            per_channel=recipe.per_channel,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
            calibrate_method=getattr(quantization.CalibrationMethod, calibration),
        )


class _Reader:
    """Calibration data reader for onnxruntime that returns one file per call."""

    def __init__(self, tokens: Tokens) -> None:
        self._rows = iter(tokens)

    def get_next(self) -> dict[str, Tokens] | None:
        row = next(self._rows, None)
        return None if row is None else {"bytes": row[None]}

    def __iter__(self) -> Iterator[dict[str, Tokens]]:
        return iter(self.get_next, None)


def _operators(recipe: OnnxRecipe) -> list[str] | None:
    named = OPERATORS[recipe.operators]
    return None if named is None else list(named)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress onnxruntime's advice to run shape inference, which it then does by itself."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)
