"""Settings for the quantization of an ONNX file: names, valid values and dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.formats.names import format_of
from dse_evaluators.readings import flag, one_among, word

DYNAMIC, STATIC, WHOLE = "dynamic_int8", "static_int8", "fp32"
RUNTIME = (WHOLE, DYNAMIC, STATIC)
"""Formats in which onnxruntime computes; any other format applies to the weights only."""

OPERATORS: Mapping[str, tuple[str, ...] | None] = {
    "convolutions": ("Conv",),
    "products": ("Conv", "MatMul", "Gemm"),
    "all": None,
}
"""ONNX operators to quantize; ``None`` means every operator that onnxruntime can quantize."""

CALIBRATIONS: Mapping[str, str] = {
    "minmax": "MinMax",
    "percentile": "Percentile",
    "entropy": "Entropy",
}
"""Names in onnxruntime of the calibration methods for static scales."""

OPTIMIZATIONS: Mapping[str, str] = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""Names in onnxruntime of the graph optimization levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRecipe:
    """Settings with which an ONNX file is quantized, and run by onnxruntime.

    ``per_channel`` gives each output channel its own weight scale; ``optimization`` is the graph
    optimization level at run time, which does not affect the file.
    """

    runtime_format: str = WHOLE
    operators: str = "products"
    per_channel: bool = True
    calibration: str = "minmax"
    optimization: str = "all"

    @property
    def of_file(self) -> OnnxRecipe:
        """Settings without those that do not affect the quantized file, which get defaults."""
        form = self.runtime_format
        if form == STATIC:
            return replace(self, optimization=OnnxRecipe().optimization)
        if form == DYNAMIC:
            return OnnxRecipe(
                runtime_format=form, operators=self.operators, per_channel=self.per_channel
            )
        return OnnxRecipe(runtime_format=form)

    @property
    def optimization_level(self) -> str:
        """Name in onnxruntime of the graph optimization level."""
        return OPTIMIZATIONS[self.optimization]


KNOBS: tuple[str, ...] = tuple(field.name for field in fields(OnnxRecipe))


def onnx_recipe_of(values: Mapping[str, Value]) -> OnnxRecipe:
    """Return quantization settings with the given values, and the others at their defaults.

    Raises:
        SpecError: a setting is unknown, or its value is invalid.
    """
    for name, value in values.items():
        check_choice(name, value)
    words = {name: str(value) for name, value in values.items() if name != "per_channel"}
    return OnnxRecipe(per_channel=bool(values.get("per_channel", True)), **words)


def _check_format(_: str, value: Value) -> None:
    try:
        if value not in RUNTIME:
            format_of(str(value))
    except SpecError as error:
        hint = f"{error.hint} (or one of {', '.join(RUNTIME)})"
        raise SpecError(error.problem, hint=hint) from error


check_choice = one_among(
    {
        "runtime_format": _check_format,
        "operators": word(*OPERATORS),
        "per_channel": flag,
        "calibration": word(*CALIBRATIONS),
        "optimization": word(*OPTIMIZATIONS),
    }
)
"""Check of a setting's value; raises SpecError if the setting is unknown or the value invalid."""
