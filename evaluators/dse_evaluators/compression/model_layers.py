"""Compressed layers of a model: their decoded weights, their size, and the model as bytes."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, lru_cache
from itertools import groupby

import numpy as np
from threadpoolctl import threadpool_limits

from dse.errors import DseError
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.operators import bundle, dense
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import (
    compress_layer,
    last_operator,
    needs_calibration,
)
from dse_evaluators.compression.operators.record import Record, Section, StorageCost, Use
from dse_evaluators.compression.operators.training_words import is_trained, trained_recipe
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import ModelRef, model_of, workload_of
from dse_evaluators.workloads.shapes import shapes_of
from dse_evaluators.workloads.workload import HasOrderedCalibration

_ROOM_BYTES = 2**30

_FORMAT = "format "

Recipes = Mapping[str, str]
"""Recipe of each compressible layer, by layer name."""


def weights(model: ModelRef, recipes: Recipes) -> dict[str, Single]:
    """Return the weights of layers after compression by recipes, by name; cached.

    If recipes train the network, they are followed by the other parameters that training changed.

    Raises:
        PluginError: the model's assets are not installed.
        SpecError, EvaluationError: a recipe cannot be applied; the message names the layer.
    """
    if any(map(is_trained, recipes.values())):
        records, others = _train(model, recipes)
        stored = {name: restore_tensor(record) for name, record in records.items()}
        return stored | others
    if _is_sequential(model, recipes):
        return {name: values for name, (values, _) in _compress_in_order(model, recipes).items()}
    held = _weight_cache(model)
    return {
        name: held.get(name, text, lambda n=name, t=text: _store_layer(model, n, t)[0])  # type: ignore[misc]
        for name, text in recipes.items()
    }


def smoothing(model: ModelRef, recipes: Recipes) -> dict[str, Single]:
    """Return the divisors of the inputs of layers that SmoothQuant rescales, (inputs,) by layer.

    Raises:
        PluginError: the model's assets are not installed.
        SpecError, EvaluationError: a recipe cannot be applied; the message names the layer.
    """
    if _is_sequential(model, recipes):
        done = _compress_in_order(model, recipes)
        return {
            name: _read_factors(done[name][1])
            for name, text in recipes.items()
            if last_operator(text) == "smooth"
        }
    held = _weight_cache(model)
    return {
        name: held.get(name, f"factors of {text}", lambda n=name, t=text: _factors(model, n, t))  # type: ignore[misc]
        for name, text in recipes.items()
        if last_operator(text) == "smooth"
    }


def costs(model: ModelRef, recipes: Recipes) -> list[StorageCost]:
    """Return the storage bits of each layer under its recipe."""
    if any(map(is_trained, recipes.values())) or not _is_sequential(model, recipes):
        return [cost(model, name, text) for name, text in recipes.items()]
    done = _compress_in_order(model, recipes)
    shapes = shapes_of(model)
    return [
        _dense_cost("fp32", shapes[name]) if record is None else record.cost
        for name, (_, record) in done.items()
    ]


@lru_cache(maxsize=2**16)
def cost(model: ModelRef, layer: str, recipe: str) -> StorageCost:
    """Return the storage bits of a layer under a compression recipe.

    For recipes of only a number format, the bits follow from the shape, without compressing the
    layer.
    """
    shape = shapes_of(model)[layer]
    text = "fp32" if recipe == KEEP else _format(recipe)
    if text is not None:
        with name_layer(layer, recipe):
            return _dense_cost(text, shape)
    return _store_layer(model, layer, recipe)[1]


@cache
def rest(model: ModelRef) -> StorageCost:
    """Return a model's storage bits outside compressible layers: other parameters, and names.

    Other parameters are stored in fp32.
    """
    shapes = shapes_of(model)
    own = Record(kind=bundle.KIND, shape=(len(shapes),), text="\n".join(shapes))
    layers = model_of(model).layers
    stays = (_dense_cost("fp32", shape) for name, shape in shapes.items() if name not in layers)
    return sum(stays, start=own.cost)


def count(model: ModelRef) -> int:
    """Return the number of weights in the layers that can be compressed."""
    return sum(math.prod(shapes_of(model)[name]) for name in model_of(model).layers)


@lru_cache(maxsize=2**16)
def noise(model: ModelRef, layer: str, recipe: str) -> float:
    """Return the relative squared error of a layer's weights under a compression recipe.

    If the recipe trains the network, the result is the error before training.
    """
    trained = trained_recipe(recipe)
    recipe = recipe if trained is None else f"{_FORMAT}{trained.form.name}"
    weight = workload_of(model).parameters[layer].astype(np.float64)
    off = weights(model, {layer: recipe})[layer] - weight
    return float((off**2).sum() / max((weight**2).sum(), np.finfo(np.float64).tiny))


def write_model(model: ModelRef, recipes: Recipes) -> bytes:
    """Return the compressed model as bytes; ``unbundle_layers`` reads its parameters back."""
    parameters = workload_of(model).parameters
    if any(map(is_trained, recipes.values())):
        records, others = _train(model, recipes)
        parameters = {**parameters, **others}
    elif _is_sequential(model, recipes):
        found = _compress_in_order(model, recipes)
        records = {name: record for name, (_, record) in found.items() if record is not None}
    else:
        records = {n: _record(model, n, text) for n, text in recipes.items() if text != KEEP}
    return bundle.bundle_layers(parameters, records).to_bytes()


def _store_layer(model: ModelRef, layer: str, recipe: str) -> tuple[Single, StorageCost]:
    """Compress a layer by a recipe; return its decoded weights, and its storage bits.

    For recipes of only a number format, weights are rounded directly: this gives the same weights
    as encoding and decoding, ten times faster.
    """
    weight = workload_of(model).parameters[layer]
    text = _format(recipe)
    if recipe == KEEP:
        return weight, _dense_cost("fp32", weight.shape)
    if text is not None:
        with name_layer(layer, recipe):
            values = format_of(text).quantize(weight, dense.axis_of(weight.shape))
        return values, _dense_cost(text, weight.shape)
    record = _record(model, layer, recipe)
    return restore_tensor(record), record.cost


def _train(model: ModelRef, recipes: Recipes) -> tuple[dict[str, Record], dict[str, Single]]:
    """Compress the layers whose recipes do not train, then train the layers whose recipes do.

    Returns:
        All compressed layers as they are stored, and the other parameters that training changed.
    """
    return _train_items(model, tuple(recipes.items()))


@lru_cache(maxsize=2)
def _train_items(
    model: ModelRef, recipes: tuple[tuple[str, str], ...]
) -> tuple[dict[str, Record], dict[str, Single]]:
    # Imported here: torch takes seconds to import, and sizes do not need it.
    from dse_evaluators.compression.quantization_aware.trained_layers import train_layers

    plain = {name: text for name, text in recipes if not is_trained(text)}
    records = {name: _record(model, name, text) for name, text in plain.items() if text != KEEP}
    trained = {name: text for name, text in recipes if is_trained(text)}
    found, others = train_layers(model, trained, weights(model, plain))
    return records | found, others


def _is_sequential(model: ModelRef, recipes: Recipes) -> bool:
    """Return whether a layer's inputs depend on the recipes of the layers before it."""
    if isinstance(model, str) or not model.is_sequential:
        return False
    return any(needs_calibration(text) for text in recipes.values())


def _compress_in_order(
    model: ModelRef, recipes: Recipes
) -> dict[str, tuple[Single, Record | None]]:
    """Compress layers in the order of the model; return weights and record of each, by name.

    The record is ``None`` for the recipe ``keep``.
    """
    return _compress_items_in_order(model, tuple(recipes.items()))


@lru_cache(maxsize=2)
def _compress_items_in_order(
    model: ModelRef, recipes: tuple[tuple[str, str], ...]
) -> dict[str, tuple[Single, Record | None]]:
    """Compress layers block by block, calibrated by the outputs of the compressed blocks before.

    The layers of a block, whose names agree up to a number, are calibrated together, by the inputs
    that the blocks before it give after compression.
    """
    workload = workload_of(model)
    assert isinstance(workload, HasOrderedCalibration)
    by_name = dict(recipes)
    parameters = dict(workload.parameters)
    done: dict[str, tuple[Single, Record | None]] = {}
    order = [name for name in workload.compressible if name in by_name]
    for _, block in groupby(order, key=_block_of):
        names = list(block)
        wanted = [name for name in names if needs_calibration(by_name[name])]
        inputs = workload.calibrate(parameters, wanted) if wanted else {}
        for name in names:
            text = by_name[name]
            record = None if text == KEEP else _record(model, name, text, inputs)
            values = parameters[name] if record is None else restore_tensor(record)
            done[name] = values, record
        parameters |= {name: done[name][0] for name in names}
    return {name: done[name] for name in by_name}


def _block_of(name: str) -> str:
    """Return the start of a layer's name up to its first number, or the name without one."""
    parts = name.split(".")
    place = next((p for p, part in enumerate(parts) if part.isdecimal()), len(parts))
    return ".".join(parts[: place + 1])


def _record(
    model: ModelRef, layer: str, recipe: str, known: Mapping[str, Single] | None = None
) -> Record:
    """Return a layer as a recipe stores it.

    A recipe that needs calibration uses the inputs in ``known``, by layer, or, if it is ``None``,
    the inputs that the uncompressed model gives the layer.
    """
    inputs = None
    if needs_calibration(recipe):
        inputs = (_calibration(model) if known is None else known).get(layer)
    with name_layer(layer, recipe), threadpool_limits(limits=1):
        return compress_layer(recipe, workload_of(model).parameters[layer], inputs)


def _factors(model: ModelRef, layer: str, recipe: str) -> Single:
    return _read_factors(_record(model, layer, recipe))


def _read_factors(record: Record | None) -> Single:
    assert record is not None
    _, factors = record.parts
    return dense.read_record(factors, ())


def _format(recipe: str) -> str | None:
    """Return the format if a recipe is only ``format ...``, or trains weights; else None."""
    trained = trained_recipe(recipe)
    if trained is not None:
        return trained.form.name
    plain = recipe.startswith(_FORMAT) and ">" not in recipe
    return recipe.removeprefix(_FORMAT).strip() if plain else None


@lru_cache(maxsize=2**12)
def _dense_cost(text: str, shape: tuple[int, ...]) -> StorageCost:
    """Return the storage bits of an array of this shape in a format, without an array."""
    form = format_of(text)
    size = form.bits(shape, dense.axis_of(shape))
    use: Use = "fp32" if form.grid.bits == 32 else "payload"
    sections = (
        Section(use=use, bits=size.payload, data=b""),
        Section(use="metadata", bits=size.total - size.payload, data=b""),
    )
    return Record(kind=dense.KIND, shape=shape, text=form.name, sections=sections).cost


@contextmanager
def name_layer(layer: str, recipe: str) -> Iterator[None]:
    """Add a layer's name and its compression recipe to errors raised in the ``with`` block."""
    try:
        yield
    except DseError as error:
        raise type(error)(f"{layer}, {recipe!r}: {error.problem}", hint=error.hint) from error


@cache
def _weight_cache(model: ModelRef) -> WeightCache:  # noqa: ARG001 - one cache per model
    return WeightCache(_ROOM_BYTES)


@cache
def _calibration(model: ModelRef) -> Mapping[str, Single]:
    return workload_of(model).calibration()


class WeightCache:
    """Least-recently-used cache of weights, by layer and recipe.

    Args:
        room_bytes: capacity for all arrays together; at least one array is kept in any case.
    """

    def __init__(self, room_bytes: int) -> None:
        self._room = room_bytes
        self._used = 0
        self._arrays: OrderedDict[tuple[str, str], Single] = OrderedDict()

    def get(self, layer: str, recipe: str, make: Callable[[], Single]) -> Single:
        """Return the cached weights of a layer under a recipe; if missing, call ``make``."""
        key = (layer, recipe)
        if key in self._arrays:
            self._arrays.move_to_end(key)
            return self._arrays[key]
        made = self._arrays[key] = make()
        self._used += made.nbytes
        while self._used > self._room and len(self._arrays) > 1:
            self._used -= self._arrays.popitem(last=False)[1].nbytes
        return made
