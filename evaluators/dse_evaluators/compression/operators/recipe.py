"""Compression recipes: texts in a study file that name the operators for one layer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.compression.operators import masks, svd
from dse_evaluators.compression.operators.bloomier import Bloomier
from dse_evaluators.compression.operators.corrected import correct_layer
from dse_evaluators.compression.operators.cp import cp
from dse_evaluators.compression.operators.dense import Dense
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.huffman import Entropy
from dse_evaluators.compression.operators.input_scaling import Awq, smooth_layer
from dse_evaluators.compression.operators.masked_codes import round_kept
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe_words import pair, parts, share, whole
from dse_evaluators.compression.operators.record import Record, Store, table_of
from dse_evaluators.compression.operators.sparse import SparseStore
from dse_evaluators.compression.operators.thinning import THINNING, Thinned, uses_inputs
from dse_evaluators.compression.operators.training_words import TRAINING, TrainedRecipe
from dse_evaluators.compression.operators.tucker import tucker_2
from dse_evaluators.compression.operators.xor import Xor
from dse_evaluators.formats.arrays import Single

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorContext:
    """Input of a recipe's last operator: weights, calibration inputs and the argument."""

    thinned: Thinned
    before: Single  # weights before the pruning operators
    inputs: Single | None
    argument: str

    @property
    def weight(self) -> Single:
        """Weights of the layer, (outputs, ...), with zeros where operators before it pruned."""
        return self.thinned.weight

    @property
    def places(self) -> masks.MaskCode | None:
        """Encoder of the pruning mask; ``None`` if no operator pruned before."""
        return self.thinned.places

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
        """Encode all weights or, after pruning, the kept weights and their positions."""
        if self.places is None:
            return values(self.weight)
        return SparseStore(values, self.places)(self.weight)


def compress_layer(recipe: str, weight: Single, inputs: Single | None = None) -> Record:
    """Compress a layer by a sequence of operators, such as ``prune 0.1 > huffman kmeans:4``.

    Operators before the last set weights to zero: ``prune 0.1``, ``n-of-m 2/4``, both also with
    the method that selects the weights, as in ``prune 0.5/wanda``, ``n-of-m 2/4/sparsegpt``;
    ``blocks 0.5/4x4``, ``low-rank-mask 16/0.1``. The last stores the weights: ``format
    int4:group=32``, ``gptq int4:group=32``, ``gptq-act-order int4:group=32`` (columns in
    descending order of their inputs' second moments), ``huffman kmeans:4``, ``bloomier 4/8``,
    ``xor 24/240`` (signs and one scale); after pruning, ``masked int4:group=32`` (scales of the
    layer's own channels and groups, as ``gptq`` has them too); or, without pruning, ``awq
    int4:group=32``, ``svd 16/fp16``, ``whitened 16/fp16``, ``corrected 8/int2:group=32,asym``,
    ``smooth 0.5/int8:channel``; for convolutions ``tucker-2 8x8/fp16`` and ``cp 8/fp16``.

    ``lsq 200/int4:channel`` and ``straight-through 200/ternary`` train a network, of which a
    layer alone is not enough; :func:`train_layers` compresses by them.

    Args:
        recipe: text of the recipe.
        weight: weights of the layer, (outputs, ...).
        inputs: calibration inputs, (n, inputs), required by ``wanda``, ``sparsegpt``, ``gptq``,
            ``gptq-act-order``, ``awq``, ``smooth``, ``whitened`` and ``corrected``.

    Raises:
        SpecError: an operator is unknown, out of order, or has an invalid argument.
        EvaluationError: the operators cannot be applied to these weights.
    """
    steps = [parts(step) for step in recipe.split(">")]
    table_of(weight)
    thinned = Thinned(weight=weight)
    for name, argument in steps[:-1]:
        done = thinned
        thinned = _row(THINNING, name)(done.weight, argument, inputs)
        if thinned.pattern is not None and done.places is not None:
            raise SpecError(
                "sparsegpt changes weights that an operator before it set to zero",
                hint="write it first",
            )
    name, argument = steps[-1]
    if thinned.places is not None and name in _WHOLE:
        raise SpecError(f"{name!r} does not preserve zeros, so it cannot follow a pruning operator")
    task = OperatorContext(thinned=thinned, before=weight, inputs=inputs, argument=argument)
    return _row(_STORING, name)(task)


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


def _gptq(task: OperatorContext, *, act_order: bool = False) -> Record:
    encoder = Gptq(task.argument, act_order=act_order)
    if task.places is None:
        return encoder(task.weight, task.seen)
    keep = task.thinned.pattern or table_of(task.weight) != 0
    return encoder.encode_kept(task.before, task.seen, keep, task.places)


def _masked(task: OperatorContext) -> Record:
    if task.places is None:
        raise SpecError(
            "'masked' stores the weights that a pruning operator keeps, and none is before it",
            hint=f"'format {task.argument}', or 'n-of-m 2/4 > masked {task.argument}'",
        )
    return round_kept(task.weight, task.argument, task.places)


def _refuse_training(task: OperatorContext, *, operator: str) -> Record:
    """Check the argument; raise EvaluationError, because one layer alone cannot be trained."""
    TrainedRecipe.of(operator, task.argument)
    raise EvaluationError(
        f"{operator!r} trains a network on data, which compressing a single layer cannot do",
        hint="use it in compression.recipe, or a recipe without training, such as 'gptq int4'",
    )


_STORING: Mapping[str, Callable[[OperatorContext], Record]] = {
    "format": lambda task: task.stored(Dense(task.argument)),
    "huffman": lambda task: task.stored(Entropy(task.argument)),
    "bloomier": _bloomier,
    "xor": _xor,
    "masked": _masked,
    "gptq": _gptq,
    "gptq-act-order": partial(_gptq, act_order=True),
    "awq": lambda task: Awq(task.argument)(task.weight, task.seen),
    "smooth": _smooth,
    "svd": _svd,
    "whitened": _whiten_layer,
    "tucker-2": _tucker_2,
    "cp": _cp,
    "corrected": _correct_weights,
    **{name: partial(_refuse_training, operator=name) for name in TRAINING},
}

_CALIBRATED = ("gptq", "gptq-act-order", "awq", "smooth", "whitened", "corrected")
"""Storing operators that use a layer's calibration inputs."""

_WHOLE = (
    "awq", "smooth", "svd", "whitened", "tucker-2", "cp", "corrected", *TRAINING,
)  # fmt: skip


def needs_calibration(recipe: str) -> bool:
    """Return whether a compression recipe uses a layer's calibration inputs."""
    return last_operator(recipe) in _CALIBRATED or any(map(uses_inputs, recipe.split(">")))


def last_operator(recipe: str) -> str:
    """Return the name of a compression recipe's last operator, which stores the weights."""
    return parts(recipe.rpartition(">")[2])[0]


def _row(table: Mapping[str, Row], name: str) -> Row:
    """Return the operator with this name; raise SpecError if it is unknown or out of order."""
    if name in table:
        return table[name]
    if name in THINNING:
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
        f"the operator {name!r} is unknown", hint=nearest(name, {**THINNING, **_STORING})
    )
