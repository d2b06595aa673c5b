"""Measurement of an ONNX file that onnxruntime quantizes and runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse.errors import DseError, EvaluationError
from dse_evaluators.compression.onnx_quantization import quantize_file
from dse_evaluators.compression.onnx_recipe import RUNTIME, WHOLE, OnnxRecipe
from dse_evaluators.compression.timing import Timing, time_call
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.onnx_file import Feeds, OnnxFileWorkload
from dse_evaluators.workloads.onnx_runtime import Session, all_initializers
from dse_evaluators.workloads.resampling import resample_quality
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
    model: ModelRef, recipe: OnnxRecipe, timing: Timing, split: Split, *, resampled: bool = False
) -> OnnxMeasurement:
    """Measure quality, sizes and latency of an ONNX file with the given settings.

    Args:
        model: the model.
        recipe: the settings.
        timing: the rounds of the latency.
        split: the examples for the quality.
        resampled: measure the quality on resamples of the examples, too.

    Raises:
        PluginError: an asset, onnx or onnxruntime is not installed.
        SpecError: the format is unknown.
        EvaluationError: the weights cannot be rounded, or onnxruntime cannot quantize or run the
            file.
    """
    workload = onnx_workload(model)
    small, whole = _outputs(model, recipe, split), _outputs(model, OnnxRecipe(), split)
    quality = workload.quality(small, whole, split)
    resamples = resample_quality(workload, small, whole, split) if resampled else {}
    content = quantized_file(model, recipe)
    latency_s, error_s = _latency_s(workload, content, recipe, timing, split)
    sizes = {
        "size": float(len(content)),
        "weight_size": weight_bytes(workload, recipe, content),
    }
    return OnnxMeasurement(
        metrics={**quality, **sizes, "latency": latency_s},
        latency_error_s=error_s,
        resamples=resamples,
    )


def onnx_workload(model: ModelRef) -> OnnxFileWorkload:
    """Return the workload of a model that is an ONNX file.

    Raises:
        PluginError: an asset, onnx or onnxruntime is not installed.
        EvaluationError: the model is no ONNX file, or does not fit its data.
    """
    workload = workload_of(model)
    if not isinstance(workload, OnnxFileWorkload):
        raise EvaluationError(
            f"{workload.name} is no ONNX file", hint="write it with torch.onnx.export"
        )
    return workload


def quantized_file(model: ModelRef, recipe: OnnxRecipe) -> bytes:
    """Return a model's ONNX file, quantized with the given settings; the last few are cached.

    Raises:
        PluginError: onnx or onnxruntime is not installed.
        SpecError: the format is unknown.
        EvaluationError: the weights cannot be rounded, or onnxruntime cannot quantize the file.
    """
    return _quantized_file(model, recipe.of_file)


@lru_cache(maxsize=4)
def _quantized_file(model: ModelRef, recipe: OnnxRecipe) -> bytes:
    workload = onnx_workload(model)
    if recipe.runtime_format == WHOLE:
        return workload.with_parameters({})
    if recipe.runtime_format not in RUNTIME:
        return workload.with_parameters(_round_weights(workload, recipe.runtime_format))
    whole = workload.with_parameters({})
    return quantize_file(whole, recipe, lambda: workload.onnx_batches("calibration"))


@lru_cache(maxsize=8)
def _outputs(model: ModelRef, recipe: OnnxRecipe, split: Split) -> Single:
    """Return the file's outputs on the examples of a split, (n, k).

    Raises:
        EvaluationError: onnxruntime cannot run the file, or an output is not finite.
    """
    workload = onnx_workload(model)
    session = Session(quantized_file(model, recipe), recipe.optimization_level)
    batches = workload.onnx_batches(split)
    tables = [_run(workload, session, feeds)[0] for feeds in batches]
    found = workload.read_outputs(tables, split)
    if not np.isfinite(found).all():
        raise EvaluationError("an output of the quantized model is infinite or not a number")
    return found


def _run(workload: OnnxFileWorkload, session: Session, feeds: Feeds) -> list[Single]:
    """Return the outputs of a session.

    Raises:
        EvaluationError: onnxruntime cannot run the file on these inputs.
    """
    try:
        return session.run_named(feeds)
    except DseError:
        raise
    except Exception as error:  # onnxruntime's errors have no class of their own
        first = str(error).strip().partition("\n")[0]
        shapes = ", ".join(f"{name} {one.shape}" for name, one in feeds.items())
        raise EvaluationError(
            f"{workload.name} does not run on inputs of shape {shapes}: {first:.300}",
            hint="a model exported with one example needs batch: 1, or a dynamic first axis",
        ) from error


def _latency_s(
    workload: OnnxFileWorkload, content: bytes, recipe: OnnxRecipe, timing: Timing, split: Split
) -> tuple[float, float]:
    """Return the median latency of a call on one thread and its standard error, in seconds."""
    session = Session(content, recipe.optimization_level)
    feeds = _first_examples(workload.onnx_batches(split), timing.batch)
    _run(workload, session, feeds)
    return time_call(lambda: session.run_named(feeds), timing)


def _first_examples(batches: Sequence[Feeds], count: int) -> Feeds:
    """Return the first examples of some batches, repeated from the first one if there are fewer."""
    found: dict[str, Any] = {}
    for name in batches[0]:
        rows = np.concatenate([one[name] for one in batches[:count]])
        found[name] = np.resize(rows, (count, *rows.shape[1:]))
    return found


def weight_bytes(workload: OnnxFileWorkload, recipe: OnnxRecipe, content: bytes) -> float:
    """Return the bytes of all weights in an ONNX file.

    For formats of onnxruntime the result is the size in the file. onnxruntime cannot read other
    formats: their file has the rounded weights in fp32, and the size is that of the weights packed.
    """
    if recipe.runtime_format in RUNTIME:
        return float(sum(array.nbytes for array in all_initializers(content).values()))
    chosen = format_of(recipe.runtime_format)
    bits = 0
    for name, array in workload.parameters.items():
        short = name in workload.compressible
        bits += chosen.bits(array.shape, _inputs(array)).total if short else 32 * array.size
    return bits / 8


def bytes_by_purpose(content: bytes) -> dict[str, float]:
    """Return the bytes of an ONNX file by purpose.

    Integers of 8 bits are codes, and the scales and zero points are named as onnxruntime's
    quantization names them; all other tensors are unquantized.
    """
    sizes = {"codes": 0.0, "scales": 0.0, "unquantized": 0.0}
    for name, array in all_initializers(content).items():
        is_scale = name.endswith(("_scale", "_zero_point"))
        is_code = array.dtype.kind in "iu" and array.itemsize == 1
        purpose = "scales" if is_scale else "codes" if is_code else "unquantized"
        sizes[purpose] += array.nbytes
    return {**sizes, "headers": len(content) - sum(sizes.values())}


def _round_weights(workload: OnnxFileWorkload, text: str) -> Mapping[str, Single]:
    """Return the layers' weights rounded to the values of a format, by name."""
    chosen = format_of(text)
    return {
        name: chosen.quantize(array, _inputs(array))
        for name, array in workload.parameters.items()
        if name in workload.compressible
    }


def _inputs(array: Single) -> tuple[int, ...]:
    """Return the input axes of a layer's weights: all but the first axis, the outputs."""
    return tuple(range(1, np.ndim(array)))
