"""int8 files of an ONNX model, as onnxruntime quantizes it."""

from __future__ import annotations

import io
import logging
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from dse.errors import DseError, EvaluationError
from dse_evaluators.compression.onnx_recipe import CALIBRATIONS, DYNAMIC, OPERATORS, OnnxRecipe
from dse_evaluators.workloads.onnx_file import Feeds
from dse_evaluators.workloads.onnx_runtime import library

_WARNINGS, _ERRORS = 2, 3
"""Severities of onnxruntime's messages; the first is its default."""

_MOST_CALIBRATING = 256
"""Examples that calibrate static scales."""


def quantize_file(
    model: bytes, recipe: OnnxRecipe, calibration: Callable[[], Sequence[Feeds]]
) -> bytes:
    """Quantize the weights and activations of an ONNX file to int8.

    Args:
        model: the bytes of the file.
        recipe: the quantization settings, with the format dynamic or static int8.
        calibration: returns the examples for static scales, in batches.

    Raises:
        PluginError: onnx or onnxruntime is not installed.
        EvaluationError: the file has no operator to quantize, or onnxruntime cannot quantize it.
    """
    _check_operators(model, recipe)
    with tempfile.TemporaryDirectory() as place, _quiet():
        whole, small = Path(place) / "whole.onnx", Path(place) / "small.onnx"
        whole.write_bytes(model)
        try:
            if recipe.runtime_format == DYNAMIC:
                _quantize_dynamic(whole, small, recipe)
            else:
                _quantize_static(whole, small, recipe, calibration())
        except DseError:
            raise
        except Exception as error:  # onnxruntime's errors have no class of their own
            first = str(error).strip().partition("\n")[0]
            raise EvaluationError(
                f"onnxruntime cannot quantize the model: {type(error).__name__}: {first:.300}",
                hint="another choice of operators or calibration may be possible",
            ) from error
        return small.read_bytes()


def _quantize_dynamic(whole: Path, small: Path, recipe: OnnxRecipe) -> None:
    """Write the file with int8 weights and with activation scales computed for each input.

    Source:
        onnxruntime's documentation, Quantize ONNX Models, "Dynamic Quantization".
    """
    quantization = library("onnxruntime.quantization")
    quantization.quantize_dynamic(
        whole,
        small,
        op_types_to_quantize=_operators(recipe),
        per_channel=recipe.per_channel,
        weight_type=quantization.QuantType.QInt8,
    )


def _quantize_static(
    whole: Path, small: Path, recipe: OnnxRecipe, examples: Sequence[Feeds]
) -> None:
    """Write the file with int8 weights and activations, and scales from calibration examples.

    Source:
        Jacob et al., Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-
        Only Inference, 2018, section 2; onnxruntime's documentation, "Static Quantization" (QDQ).
    """
    quantization = library("onnxruntime.quantization")
    calibration = CALIBRATIONS[recipe.calibration]
    quantization.quantize_static(
        whole,
        small,
        _Reader(examples),
        quant_format=quantization.QuantFormat.QDQ,
        op_types_to_quantize=_operators(recipe),
        per_channel=recipe.per_channel,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
        calibrate_method=getattr(quantization.CalibrationMethod, calibration),
    )


class _Reader:
    """Calibration data reader for onnxruntime that returns a batch per call.

    A last batch with fewer examples is left out: histograms need tensors of one shape.
    """

    def __init__(self, batches: Sequence[Feeds]) -> None:
        sizes = [len(next(iter(one.values()))) for one in batches]
        most = -(-_MOST_CALIBRATING // max(sizes[0], 1))
        equal = [one for one, size in zip(batches, sizes, strict=True) if size == sizes[0]]
        self._batches = iter(equal[:most])

    def get_next(self) -> Feeds | None:
        return next(self._batches, None)

    def __iter__(self) -> Iterator[Feeds]:
        return self._batches


def _check_operators(model: bytes, recipe: OnnxRecipe) -> None:
    """Raise EvaluationError if a file has none of the operators that are to be quantized."""
    wanted = _operators(recipe)
    nodes = library("onnx").load_model_from_string(model).graph.node
    found = {node.op_type for node in nodes}
    if wanted is not None and not found.intersection(wanted):
        raise EvaluationError(
            f"nothing would be quantized: the model has no {' or '.join(wanted)}, which "
            f"operators: {recipe.operators} names",
            hint=f"it has {', '.join(sorted(found))}",
        )


def _operators(recipe: OnnxRecipe) -> list[str] | None:
    named = OPERATORS[recipe.operators]
    return None if named is None else list(named)


@contextmanager
def _quiet() -> Iterator[None]:
    """Suppress onnxruntime's advice, and the warnings of the sessions that it opens itself."""
    runtime = library("onnxruntime")
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    runtime.set_default_logger_severity(_ERRORS)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        logging.disable(level)
        runtime.set_default_logger_severity(_WARNINGS)
