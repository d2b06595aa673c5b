"""Int8 quantization by onnxruntime: dynamic scales per input, or static calibrated scales."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path

from dse_evaluators.compression.onnx_recipe import CALIBRATIONS, OPERATORS, OnnxRecipe
from dse_evaluators.workloads.magika_files import Tokens
from dse_evaluators.workloads.onnx_runtime import library


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
