"""Structured pruning of filters, neurons or heads: the stored tensors become smaller."""

from __future__ import annotations

from typing import Literal

import numpy as np

from dse.core.values import Mask
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.record import Layers, Record, Section, Store, table_of
from dse_evaluators.formats.arrays import Single

KIND = "narrow"

Norm = Literal[1, 2]


def strongest(
    weight: Single,  # (outputs, ...)
    keep: float,
    *,
    norm: Norm = 2,
    multiple: int = 1,
    group: int = 1,
) -> Mask:
    """Return the mask of a layer's outputs with the largest norms, (outputs,).

    Args:
        weight: weights of a layer.
        keep: fraction of the outputs that is kept.
        norm: 1 for the L1 norm, 2 for the L2 norm.
        multiple: the number of kept groups of outputs is rounded down to a multiple of this number,
            but to at least one multiple.
        group: number of consecutive outputs that are kept or removed together, as in a head.

    Source:
        Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1 (L1); Joseph et al.,
        A Programmable Approach to Neural Network Compression, 2020 (multiples).

    Raises:
        EvaluationError: the fraction is not in 0 to 1, or ``multiple`` or ``group`` does not fit.
    """
    table = table_of(weight)
    if group < 1 or len(table) % group:
        raise EvaluationError(f"{len(table)} outputs are no multiple of a group of {group}")
    groups = table.astype(np.float64).reshape(len(table) // group, -1)
    if not 0 <= keep <= 1 or not 1 <= multiple <= len(groups):
        raise EvaluationError(
            f"a share of {keep} of {len(groups)} groups of outputs, in multiples of {multiple}, "
            "cannot stay"
        )
    norms = np.linalg.norm(groups, ord=norm, axis=1)
    count = max(multiple, round(keep * len(groups)) // multiple * multiple)
    stays = np.zeros(len(groups), dtype=np.bool_)
    stays[np.argsort(-norms, kind="stable")[:count]] = True
    return np.repeat(stays, group)


def narrow_layer(weight: Single, outputs: Mask, inputs: Mask, store: Store) -> Record:
    """Encode only some outputs and inputs of a layer; decoding fills the others with zeros.

    The smaller tensor is the only record inside the record, and suffices for computation. The masks
    are stored with one bit per output and input, so that the layer can be compared with the
    original.

    Args:
        weight: weights of the layer, (outputs, inputs, ...).
        outputs: mask of the kept outputs, (outputs,).
        inputs: mask of the kept inputs, (inputs,).
        store: encoder of the smaller tensor.

    Raises:
        EvaluationError: the masks do not fit the weights, or keep nothing.
    """
    table_of(weight)
    if (outputs.shape, inputs.shape) != ((weight.shape[0],), (weight.shape[1],)):
        raise EvaluationError(
            f"{len(outputs)} outputs and {len(inputs)} inputs are not those of weights of shape "
            f"{weight.shape}"
        )
    if not outputs.any() or not inputs.any():
        raise EvaluationError("a layer without outputs or inputs cannot be stored")
    smaller = np.ascontiguousarray(weight[outputs][:, inputs], dtype=np.float32)
    bits = np.concatenate([outputs, inputs]).astype(np.uint8)
    return Record(
        kind=KIND,
        shape=weight.shape,
        sections=(Section.of("metadata", bits),),
        parts=(store(smaller),),
    )


def chain(layers: Layers, keep: float, *, norm: Norm = 2) -> dict[str, tuple[Mask, Mask]]:
    """Return the masks of kept outputs and inputs for a chain of layers, in order.

    The last layer keeps all outputs. A layer with several inputs per filter (the first after
    flattening) loses all inputs of a removed filter.

    Raises:
        EvaluationError: the inputs of a layer are not a multiple of the outputs before it.
    """
    found: dict[str, tuple[Mask, Mask]] = {}
    before: Mask | None = None
    last = list(layers)[-1]
    for name, weight in layers.items():
        inputs = np.ones(weight.shape[1], dtype=np.bool_)
        if before is not None:
            if len(inputs) % len(before):
                raise EvaluationError(
                    f"the {len(inputs)} inputs of {name!r} are no multiple of the {len(before)} "
                    "outputs before it"
                )
            inputs = np.repeat(before, len(inputs) // len(before))
        every = np.ones(len(weight), dtype=np.bool_)
        outputs = every if name == last else strongest(weight, keep, norm=norm)
        found[name] = (outputs, inputs)
        before = outputs
    return found


def read_record(record: Record, parts: tuple[Single, ...]) -> Single:
    """Decode the smaller tensor to its original shape, with zeros for what was removed."""
    stays = record.sections[0].loose == 1
    outputs, inputs = np.split(stays, [record.shape[0]])
    whole = np.zeros(record.shape, dtype=np.float32)
    whole[np.ix_(outputs, inputs)] = parts[0]
    return whole
