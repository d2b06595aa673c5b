"""Filters, neurons, heads and the inputs that saw them, gone: tensors that are really smaller."""

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
    """The outputs with the largest norms, (outputs,), alone or in groups such as heads.

    Args:
        weight: a layer's.
        keep: the share that stays.
        norm: L1 or L2.
        multiple: the count of groups is rounded down to one of these, but not to nothing.
        group: so many outputs in a row stay or go together.

    Source:
        Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1 (L1); Joseph et al.,
        A Programmable Approach to Neural Network Compression, 2020 (multiples).

    Raises:
        EvaluationError: the share is not in 0 to 1, or there are no such multiples or groups.
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
    """Return the layer with only these outputs and inputs; it stands for zeros elsewhere.

    The smaller tensor is the record's only part, and all that is needed to compute with; which
    outputs and inputs it is of is kept, one bit each, to compare it with the whole.

    Args:
        weight: (outputs, inputs, ...).
        outputs: which stay, (outputs,).
        inputs: which stay, (inputs,).
        store: of the smaller tensor.

    Raises:
        EvaluationError: the masks do not fit, or nothing stays.
    """
    table_of(weight)
    if (outputs.shape, inputs.shape) != ((weight.shape[0],), (weight.shape[1],)):
        raise EvaluationError(
            f"{len(outputs)} outputs and {len(inputs)} inputs are not those of weights of shape "
            f"{weight.shape}"
        )
    if not outputs.any() or not inputs.any():
        raise EvaluationError("a layer without outputs or inputs is none")
    smaller = np.ascontiguousarray(weight[outputs][:, inputs], dtype=np.float32)
    bits = np.concatenate([outputs, inputs]).astype(np.uint8)
    return Record(
        kind=KIND,
        shape=weight.shape,
        sections=(Section.of("metadata", bits),),
        parts=(store(smaller),),
    )


def chain(layers: Layers, keep: float, *, norm: Norm = 2) -> dict[str, tuple[Mask, Mask]]:
    """Outputs and inputs that stay in layers that feed one another, in this order.

    All outputs of the last stay. A layer that sees several numbers of each filter (the first after
    flattening) loses all of them.

    Raises:
        EvaluationError: the inputs of a layer are no multiple of the outputs before it.
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
    """Return the smaller tensor, with zeros for the other outputs and inputs."""
    stays = record.sections[0].loose == 1
    outputs, inputs = np.split(stays, [record.shape[0]])
    whole = np.zeros(record.shape, dtype=np.float32)
    whole[np.ix_(outputs, inputs)] = parts[0]
    return whole
