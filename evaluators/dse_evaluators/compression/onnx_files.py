"""ONNX file of a model, quantized or with rounded weights, built once and cached on disk."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from dse_evaluators.compression.onnx_quantizers import dynamic, static
from dse_evaluators.compression.onnx_recipe import DYNAMIC, RUNTIME, WHOLE, OnnxRecipe
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.magika import Magika
from dse_evaluators.workloads.onnx_runtime import all_initializers, library
from dse_evaluators.workloads.weight_cache import folder


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
    told = hashlib.sha256(f"{recipe.key} {versions}".encode())
    told.update(workload.model)
    told.update(workload.examples("calibration").tokens.tobytes())
    return told.hexdigest()[:16]
