"""Layers of a network as one record, with both compressed and uncompressed layers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.errors import EvaluationError
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Layers, Record
from dse_evaluators.formats.arrays import Single

KIND = "bundle"


def bundle_layers(layers: Layers, compressed: Mapping[str, Record]) -> Record:
    """Combine all layers into one record; uncompressed layers stay in single precision.

    Raises:
        EvaluationError: a record belongs to no layer, or a layer's name contains a line break.
    """
    unknown = [name for name in compressed if name not in layers]
    if unknown or any("\n" in name for name in layers):
        raise EvaluationError(f"no layers are named {unknown}, or a layer's name has a line break")
    parts = (
        compressed[name] if name in compressed else FP32(np.asarray(layer, dtype=np.float32))
        for name, layer in layers.items()
    )
    return Record(kind=KIND, shape=(len(layers),), text="\n".join(layers), parts=tuple(parts))


def unbundle_layers(record: Record) -> dict[str, Single]:
    """Decode a bundle to the weights of each layer, by name."""
    names = record.text.split("\n")
    return {name: restore_tensor(part) for name, part in zip(names, record.parts, strict=True)}
