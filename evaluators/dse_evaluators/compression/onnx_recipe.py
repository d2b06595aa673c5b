"""Quantisation of an ONNX file: the choices, their names and their dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.formats.names import format_of
from dse_evaluators.readings import flag, one_among, word

DYNAMIC, STATIC, WHOLE = "dynamic_int8", "static_int8", "fp32"
RUNTIME = (WHOLE, DYNAMIC, STATIC)
"""Formats that onnxruntime itself computes in; any other is a format of weights alone."""

OPERATORS: Mapping[str, tuple[str, ...] | None] = {
    "convolutions": ("Conv",),
    "products": ("Conv", "MatMul"),
    "all": None,
}
"""What is quantised; ``None``: whatever onnxruntime knows how to."""

CALIBRATIONS: Mapping[str, str] = {
    "minmax": "MinMax",
    "percentile": "Percentile",
    "entropy": "Entropy",
}
"""How a static scale is found from examples, in onnxruntime's words."""

OPTIMIZATIONS: Mapping[str, str] = {
    "none": "ORT_DISABLE_ALL",
    "basic": "ORT_ENABLE_BASIC",
    "extended": "ORT_ENABLE_EXTENDED",
    "all": "ORT_ENABLE_ALL",
}
"""How far onnxruntime rewrites a graph before it runs it, in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OnnxRecipe:
    """Settings by which the file is made and run.

    ``per_channel`` gives each output its own scale of weights; ``optimization`` is how far the
    graph is rewritten before it runs, and no part of the file.
    """

    runtime_format: str = WHOLE
    operators: str = "products"
    per_channel: bool = True
    calibration: str = "minmax"
    optimization: str = "all"

    @property
    def key(self) -> str:
        """Settings that the file depends on, as text, without those that its format ignores."""
        parts = [self.runtime_format]
        if self.runtime_format in {DYNAMIC, STATIC}:
            parts += [self.operators, "channel" if self.per_channel else "tensor"]
        if self.runtime_format == STATIC:
            parts.append(self.calibration)
        return " ".join(parts)


KNOBS: tuple[str, ...] = tuple(field.name for field in fields(OnnxRecipe))


def onnx_recipe_of(values: Mapping[str, Value]) -> OnnxRecipe:
    """The recipe with these choices, and the others at their defaults.

    Raises:
        SpecError: a choice cannot be what it is said to be.
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
"""Nothing, if the choice can be set to the value; SpecError, if not, or if there is no such one."""
