"""Compressed layers as numbers and scales, for files that other programs load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from dse.protocols import DeployedModel, DeployedTensor, Quantization
from dse.protocols.deployment import PlainType, ScaleType
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.model_layers import Recipes, write_model
from dse_evaluators.compression.operators import dense
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Record, StorageCost
from dse_evaluators.formats.affine import AffineScaling
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.format import Encoded, Format
from dse_evaluators.formats.integers import Integers
from dse_evaluators.formats.lattice import Plain, Shifted
from dse_evaluators.formats.layout import BlockLayout, Tile
from dse_evaluators.formats.linear import Linear
from dse_evaluators.formats.minifloat import Minifloat
from dse_evaluators.formats.names import format_of
from dse_evaluators.formats.scaling import Unscaled
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.onnx_export import HasOnnxModel
from dse_evaluators.workloads.workload import Signals

_SCALE_TYPES: Mapping[str, ScaleType] = {
    "fp16": "float16",
    "bf16": "bfloat16",
    "fp32": "float32",
}
_PLAIN: Mapping[str, PlainType] = {"fp16": "float16", "bf16": "bfloat16", "fp32": "float32"}
_EIGHT_BITS: Mapping[str, str] = {"fp:e4m3": "fp8_e4m3", "fp:e5m2": "fp8_e5m2"}


def deploy_layers(model: ModelRef, recipes: Recipes, signals: Signals) -> DeployedModel:
    """Compress a model by recipes; return its tensors as they are stored, with their bytes.

    Args:
        model: name of a built-in model, or a model of the user.
        recipes: recipe of each compressible layer, by layer name.
        signals: number formats of activations, which no file of weights holds.

    Raises:
        PluginError: the model's assets are not installed.
        SpecError, EvaluationError: a recipe cannot be applied; the message names the layer.
    """
    bundle = Record.from_bytes(write_model(model, recipes))
    workload = workload_of(model)
    records = dict(zip(bundle.text.split("\n"), bundle.parts, strict=True))
    tensors = {
        name: deploy_record(record, recipes.get(name, KEEP)) for name, record in records.items()
    }
    plain = [name for name, one in tensors.items() if isinstance(one.stored, str)]
    return DeployedModel(
        tensors=tensors,
        size_metric="size",
        size_bytes=_bytes_by_purpose(bundle.cost, [records[name].cost for name in plain]),
        notes=tuple(_signal_notes(signals, recipes)),
        onnx=workload.onnx_model if isinstance(workload, HasOnnxModel) else None,
    )


def deploy_record(record: Record, recipe: str) -> DeployedTensor:
    """Return a stored tensor with its decoded values, for deployment.

    A tensor in one number format also has its quantized numbers and scales.

    Args:
        record: the tensor as it is stored.
        recipe: the recipe that produced it.
    """
    values = restore_tensor(record)
    if record.kind != dense.KIND:
        return DeployedTensor(values=values, stored=None, recipe=recipe)
    form = format_of(record.text)
    plain = _plain_type(form)
    if plain is not None:
        return DeployedTensor(values=values, stored=plain, recipe=recipe)
    axis = dense.axis_of(record.shape)
    data = b"".join(_join_sections(record))
    found = quantization_of(form, form.unpack(data, record.shape, axis))
    if found is not None and recipe.startswith("format ") and _is_full_range(form):
        found = replace(found, scale_rule="full-range")
    return DeployedTensor(values=values, stored=_if_exact(found, values), recipe=recipe)


def quantization_of(form: Format, encoded: Encoded) -> Quantization | None:
    """Return numbers, scales and zero points of an encoded tensor; None for other formats.

    Args:
        form: the number format; integers, or floats of 8 bits, with a scale for each tensor,
            channel, group or block of the matrix.
        encoded: a tensor of at least two axes, encoded along all axes but the first.
    """
    element = _element(form)
    if element is None or not isinstance(form.scaling, Linear | AffineScaling | Unscaled):
        return None
    span = form.scaling.span
    layout = BlockLayout.of(encoded.shape, encoded.axis, span, short=form.short)
    lattice = form.scaling.read(encoded.sides, form.grid)
    codes = encoded.codes.reshape(encoded.shape[0], -1)
    zeros = lattice.zeros if isinstance(lattice, Shifted) else None
    if zeros is None and not isinstance(lattice, Plain):
        return None
    is_grouped = isinstance(span, int) and layout.block < layout.length
    group = layout.block if is_grouped else None
    shape = (layout.down, layout.across)
    return Quantization(
        element=element,
        numbers=form.grid.values(codes) if zeros is None else codes.astype(np.float32),
        scales=_ones(shape) if lattice.back is None else lattice.back.reshape(shape),
        zero_points=None if zeros is None else zeros.reshape(shape),
        group=span.columns if isinstance(span, Tile) else group,
        group_rows=span.rows if isinstance(span, Tile) else 1,
        scale_type=_scale_type(form),
    )


def _is_full_range(form: Format) -> bool:
    """Return whether a format computes scales and numbers by the rule of torchao."""
    scaling = form.scaling
    if form.seed is not None or not isinstance(scaling, Linear | AffineScaling):
        return False
    by_rule = scaling.one_division if isinstance(scaling, AffineScaling) else scaling.steps
    return bool(by_rule) and scaling.measure == "max"


def _if_exact(found: Quantization | None, values: Single) -> Quantization | None:
    """Return the numbers and scales if they represent exactly these values, else None."""
    if found is None or not np.array_equal(found.decode().reshape(values.shape), values):
        return None
    return found


def _join_sections(record: Record) -> list[bytes]:
    """Return the bits of a dense record as one stream, as its number format packs them."""
    bits = np.concatenate([section.loose for section in record.sections])
    return [np.packbits(bits, bitorder="little").tobytes()]


def _element(form: Format) -> str | None:
    """Return the type of a format's numbers, such as ``int4``; None if no target has it."""
    if isinstance(form.grid, Integers):
        return f"int{form.grid.bits}" if form.grid.unit == 1 else None
    return next((name for text, name in _EIGHT_BITS.items() if _same_grid(form, text)), None)


def _plain_type(form: Format) -> PlainType | None:
    """Return the type of an unscaled float format, such as ``float16``; None for others."""
    if not isinstance(form.scaling, Unscaled):
        return None
    return next((kind for text, kind in _PLAIN.items() if _same_grid(form, text)), None)


def _same_grid(form: Format, text: str) -> bool:
    """Return whether a format has the representable numbers of the float format of this name."""
    grid, other = form.grid, format_of(text).grid
    if not (isinstance(grid, Minifloat) and isinstance(other, Minifloat)):
        return False
    own, wanted = ((one.exponent, one.mantissa, one.bias, one.specials) for one in (grid, other))
    return own == wanted


def _scale_type(form: Format) -> ScaleType:
    if isinstance(form.scaling, Linear | AffineScaling):
        return _SCALE_TYPES[form.scaling.stored]
    return "float32"


def _ones(shape: tuple[int, int]) -> Single:
    return np.ones(shape, dtype=np.float32)


def _bytes_by_purpose(cost: StorageCost, plain: Sequence[StorageCost]) -> dict[str, float]:
    """Return the bytes that the metric ``size`` counts, by purpose.

    Args:
        cost: bits of the model.
        plain: bits of its tensors in a float type without scales.
    """
    floats = sum(one.payload for one in plain)
    return {
        "codes": (cost.payload - floats) / 8,
        "scales": cost.metadata / 8,
        "unquantized": (cost.fp32 + floats) / 8,
        "headers": (cost.header + cost.padding) / 8,
    }


def _signal_notes(signals: Signals, recipes: Recipes) -> list[str]:
    """Return what the metrics depend on that a file of weights does not hold."""
    formats = {
        "activations": (signals.activations,),
        "keys": signals.keys or (signals.kv_cache,),
        "values": signals.values or (signals.kv_cache,),
    }
    notes = [
        f"the study rounded {name} to {_names(forms)}; the file holds weights only"
        for name, forms in formats.items()
        if any(forms)
    ]
    if signals.activations is not None and any("smooth " in text for text in recipes.values()):
        notes.append("the study divided inputs by smoothing factors before rounding them")
    return notes


def _names(forms: Sequence[Format | None]) -> str:
    """Return the name of the format of all blocks, or the names of the formats of each."""
    names = ["keep" if form is None else form.name for form in forms]
    return names[0] if len(set(names)) == 1 else f"({', '.join(names)})"
