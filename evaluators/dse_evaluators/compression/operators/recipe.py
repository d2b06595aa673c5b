"""Compression recipes: texts in a study file that name the operators for one layer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.compression.operators import masks, prune, svd
from dse_evaluators.compression.operators.binary_index import BinaryIndex
from dse_evaluators.compression.operators.bloomier import Bloomier
from dse_evaluators.compression.operators.corrected import correct_layer
from dse_evaluators.compression.operators.cp import cp
from dse_evaluators.compression.operators.dense import Dense
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.input_scaling import Awq, smooth_layer
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.compression.operators.sparse import SparseStore
from dse_evaluators.compression.operators.tucker import tucker_2
from dse_evaluators.compression.operators.xor import Xor
from dse_evaluators.formats.arrays import Single

Row = TypeVar("Row")

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorContext:
    """Input of a recipe's last operator: layer weights, calibration inputs and its argument."""

    weight: Single
    inputs: Single | None
    places: masks.MaskCode | None  # encoder of the mask, if an operator before it pruned
    argument: str

    @property
    def seen(self) -> Single:
        """Calibration inputs of the layer, (n, inputs), required by some operators.

        Raises:
            SpecError: no calibration inputs were given.
        """
        if self.inputs is None:
            raise SpecError("this operator needs calibration inputs of the layer")
        return self.inputs

    def stored(self, values: Store) -> Record:
        """Encode all weights or, after pruning, the kept weights and their positions; a record."""
        if self.places is None:
            return values(self.weight)
        return SparseStore(values, self.places)(self.weight)


def compress_layer(recipe: str, weight: Single, inputs: Single | None = None) -> Record:
    """Compress a layer by a sequence of operators, such as ``prune 0.1 > huffman kmeans:4``.

    Operators before the last set weights to zero: ``prune 0.1``, ``n-of-m 2/4``, ``blocks
    0.5/4x4``, ``low-rank-mask 16/0.1``. The last stores the weights: ``format int4:group=32``,
    ``huffman kmeans:4``, ``bloomier 4/8``, ``xor 24/240`` (signs and one scale); or, without
    pruning, ``gptq int4:group=32``, ``gptq-act-order int4:group=32`` (columns in descending
    order of their inputs' second moments), ``awq int4:group=32``, ``svd 16/fp16``, ``whitened
    16/fp16``, ``corrected 8/int2:group=32,asym``, ``smooth 0.5/int8:channel``; for convolutions
    ``tucker-2 8x8/fp16`` and ``cp 8/fp16``.

    Args:
        recipe: text of the recipe.
        weight: weights of the layer, (outputs, ...).
        inputs: calibration inputs, (n, inputs), required by ``gptq``, ``gptq-act-order``, ``awq``,
            ``smooth``, ``whitened`` and ``corrected``.

    Raises:
        SpecError: an operator is unknown, out of order, or has an invalid argument.
        EvaluationError: the operators cannot be applied to these weights.
    """
    steps = [parts(step) for step in recipe.split(">")]
    table_of(weight)
    places: masks.MaskCode | None = None
    for name, argument in steps[:-1]:
        weight, places = _row(_THINNING, name)(weight, argument)
    name, argument = steps[-1]
    if places is not None and name in _WHOLE:
        raise SpecError(f"{name!r} does not preserve zeros, so it cannot follow a pruning operator")
    task = OperatorContext(weight=weight, inputs=inputs, places=places, argument=argument)
    return _row(_STORING, name)(task)


def _prune_weights(weight: Single, argument: str) -> tuple[Single, masks.MaskCode | None]:
    density = share(argument)
    if density == 1:
        return weight, None  # all weights are kept, so no positions are stored
    return prune.by_layer(weight, density), masks.smallest


def _n_of_m(weight: Single, argument: str) -> tuple[Single, masks.MaskCode]:
    kept, of = (whole(side) for side in pair(argument, "2/4"))
    return prune.n_of_m(weight, kept, of), masks.of_m(kept, of)


def _blocks(weight: Single, argument: str) -> tuple[Single, masks.MaskCode]:
    density, block = pair(argument, "0.5/4x4")
    high, wide = (whole(side) for side in pair(block, "4x4", mark="x"))
    return prune.blocks(weight, share(density), (high, wide)), masks.of_blocks((high, wide))


def _low_rank_mask(weight: Single, argument: str) -> tuple[Single, masks.MaskCode]:
    rank, density = pair(argument, "16/0.1")
    record = BinaryIndex(rank=whole(rank), density=share(density))(weight)
    kept = masks.mask_of(record).reshape(weight.shape)
    return np.where(kept, weight, np.float32(0)), lambda _: record


def _bloomier(task: OperatorContext) -> Record:
    values, cells = (whole(side) for side in pair(task.argument, "4/8"))
    return Bloomier(value_bits=values, cell_bits=cells)(task.weight)


def _xor(task: OperatorContext) -> Record:
    seeds, spread = (whole(side) for side in pair(task.argument, "24/240"))
    places = task.places or masks.bitmap
    return Xor(seed_bits=seeds, spread=spread)(task.weight, places(table_of(task.weight) != 0))


def _svd(task: OperatorContext) -> Record:
    rank, text = pair(task.argument, "16/fp16")
    return svd.plain(task.weight, whole(rank), Dense(text))


def _whiten_layer(task: OperatorContext) -> Record:
    rank, text = pair(task.argument, "16/fp16")
    return svd.whiten_weights(task.weight, task.seen, whole(rank), Dense(text))


def _tucker_2(task: OperatorContext) -> Record:
    ranks, text = pair(task.argument, "8x8/fp16")
    outputs, inputs = (whole(rank) for rank in pair(ranks, "8x8", mark="x"))
    return tucker_2(task.weight, outputs, inputs, Dense(text))


def _cp(task: OperatorContext) -> Record:
    rank, text = pair(task.argument, "8/fp16")
    return cp(task.weight, whole(rank), Dense(text))


def _smooth(task: OperatorContext) -> Record:
    strength, text = pair(task.argument, "0.5/int8:channel")
    if task.weight.ndim > 2:
        raise SpecError("'smooth' applies to fully connected layers only")
    return smooth_layer(task.weight, task.seen, Dense(text), strength=share(strength))


def _correct_weights(task: OperatorContext) -> Record:
    rank, text = pair(task.argument, "8/int2:group=32,asym")
    short = Dense(text)(task.weight)
    return correct_layer(task.weight, short, restore_tensor(short), whole(rank), inputs=task.seen)


_THINNING: Mapping[str, Callable[[Single, str], tuple[Single, masks.MaskCode | None]]] = {
    "prune": _prune_weights,
    "n-of-m": _n_of_m,
    "blocks": _blocks,
    "low-rank-mask": _low_rank_mask,
}

_STORING: Mapping[str, Callable[[OperatorContext], Record]] = {
    "format": lambda task: task.stored(Dense(task.argument)),
    "huffman": lambda task: task.stored(Entropy(task.argument)),
    "bloomier": _bloomier,
    "xor": _xor,
    "gptq": lambda task: Gptq(task.argument)(task.weight, task.seen),
    "gptq-act-order": lambda task: Gptq(task.argument, act_order=True)(task.weight, task.seen),
    "awq": lambda task: Awq(task.argument)(task.weight, task.seen),
    "smooth": _smooth,
    "svd": _svd,
    "whitened": _whiten_layer,
    "tucker-2": _tucker_2,
    "cp": _cp,
    "corrected": _correct_weights,
}

_WHOLE = (
    "gptq", "gptq-act-order", "awq", "smooth", "svd", "whitened", "tucker-2", "cp", "corrected",
)  # fmt: skip


def _row(table: Mapping[str, Row], name: str) -> Row:
    """Return the operator with this name; raise SpecError if it is unknown or out of order."""
    if name in table:
        return table[name]
    if name in _THINNING:
        raise SpecError(
            f"{name!r} sets weights to zero, and no operator after it stores them",
            hint=f"end with a format: '{name} ... > format fp16'",
        )
    if name in _STORING:
        raise SpecError(
            f"{name!r} stores the weights, so no operator can follow it",
            hint=f"write it last: 'prune 0.5 > {name} ...'",
        )
    raise SpecError(
        f"the operator {name!r} is unknown", hint=nearest(name, {**_THINNING, **_STORING})
    )


def parts(step: str) -> tuple[str, str]:
    """Split one step of a recipe into the operator's name and its argument."""
    name, _, argument = step.strip().partition(" ")
    return name, argument.strip()


def pair(text: str, example: str, mark: str = "/") -> tuple[str, str]:
    """Return the texts before and after a separator.

    Raises:
        SpecError: the text does not contain the separator exactly once.
    """
    sides = text.split(mark)
    if len(sides) != _PAIR:
        raise SpecError(f"{text!r} is not of the form {example!r}")
    return sides[0], sides[1]


def whole(text: str) -> int:
    """Parse a text as a non-negative integer.

    Raises:
        SpecError: the text is not a non-negative integer.
    """
    if not text.strip().isdecimal():
        raise SpecError(f"{text!r} is no whole number")
    return int(text)


def share(text: str) -> float:
    """Parse a text as a fraction of the weights, 0 to 1.

    Raises:
        SpecError: the text is not a number from 0 to 1.
    """
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 <= found <= 1:
        raise SpecError(f"{text!r} is not a fraction of the weights", hint="0 to 1")
    return found
