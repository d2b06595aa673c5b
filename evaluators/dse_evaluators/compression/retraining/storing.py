"""Storage of a trained network: only the kept weights, in the requested format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dse.core.values import Mask
from dse_evaluators.compression.operators import structured
from dse_evaluators.compression.operators.bundle import bundle_layers, unbundle_layers
from dse_evaluators.compression.operators.dense import FP32, Dense
from dse_evaluators.compression.operators.record import Layers, Record, Store
from dse_evaluators.compression.operators.sparse import SparseStore
from dse_evaluators.compression.retraining.low_rank import factor_weights, is_cut
from dse_evaluators.compression.retraining.retraining_knobs import Knobs
from dse_evaluators.compression.retraining.task_data import as_affines
from dse_evaluators.compression.retraining.trained import Trained
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.image_training import as_arrays
from dse_evaluators.workloads.layers import Layer
from dse_evaluators.workloads.network import Affines

_LOW_RANK = ("low-rank", "factors", "distorted")
_BIAS = ".bias"


def store_network(trained: Trained, layers: Sequence[Layer], knobs: Knobs) -> Record:
    """Encode all weights and biases of a network as one record; biases stay in fp32.

    Zeros are omitted, with the positions of the kept weights stored; low-rank layers are stored as
    their factors, and layers with removed channels as smaller layers.
    """
    arrays = as_arrays(layers, trained.affines)
    weights = {name: array for name, array in arrays.items() if not name.endswith(_BIAS)}
    store = Dense(knobs.format)
    if knobs.method in _LOW_RANK:
        records = _factor_layers(weights, knobs, store)
    elif knobs.method == "group-lasso":
        return _narrow_layers(arrays, store)
    else:
        records = {name: _sparse(weight, store) for name, weight in weights.items()}
    return bundle_layers(arrays, records)


def read_network(record: Record, layers: Sequence[Layer]) -> Affines:
    """Decode a network from a record, in its original shape."""
    arrays = unbundle_layers(record)
    flat = {n: a.ravel() if n.endswith(_BIAS) else a for n, a in arrays.items()}
    return as_affines(layers, flat)


def count_weights(record: Record) -> list[int]:
    """Return each layer's number of stored weights: non-zeros, or numbers in its factors."""
    names = record.text.split("\n")
    parts = zip(names, record.parts, strict=True)
    return [_count(part) for name, part in parts if not name.endswith(_BIAS)]


def _count(record: Record) -> int:
    if record.kind == "sparse":
        return sum(int(np.prod(part.shape)) for part in record.parts[1:])
    if record.parts:
        return sum(_count(part) for part in record.parts)
    return int(np.prod(record.shape))


def _sparse(weight: Single, store: Store) -> Record:
    return store(weight) if (weight != 0).all() else SparseStore(store)(weight)


def _factor_layers(weights: Layers, knobs: Knobs, store: Store) -> dict[str, Record]:
    found = {}
    for place, (name, weight) in enumerate(weights.items()):
        cut = is_cut(place, len(weights))
        record = (
            factor_weights(weight, knobs.density, knobs.factoring, store) if cut else store(weight)
        )
        found[name] = record
    return found


def _narrow_layers(arrays: Layers, store: Store) -> Record:
    """Encode all layers without the outputs (filters) whose weights and bias are all zero."""
    found: dict[str, Record] = {}
    last = list(arrays)[-1]
    inputs: Mask | None = None
    for name, array in arrays.items():
        if name.endswith(_BIAS):
            continue
        bias = name.removesuffix(".weight") + _BIAS
        every = np.ones(len(array), dtype=np.bool_)
        outputs = every if bias == last else _select_outputs(array) | (arrays[bias] != 0)
        seen = _columns(array, inputs)
        found[name] = structured.narrow_layer(array, outputs, seen, store)
        # A bias is stored like a layer of one input, for the same outputs.
        found[bias] = structured.narrow_layer(arrays[bias][:, None], outputs, every[:1], FP32)
        inputs = outputs
    return bundle_layers(arrays, found)


def _select_outputs(array: Single) -> Mask:
    """Return the mask of a layer's outputs with a nonzero weight, (outputs,)."""
    used: Mask = (array != 0).reshape(len(array), -1).any(axis=1)
    return used


def _columns(array: Single, inputs: Mask | None) -> Mask:
    """Return the mask of a layer's kept inputs: those from kept outputs of the previous layer.

    The first layer keeps all inputs. After flattening, a layer has several inputs per channel.
    """
    if inputs is None:
        return np.ones(array.shape[1], dtype=np.bool_)
    return np.repeat(inputs, array.shape[1] // len(inputs))
