"""Compression of a folder of safetensors block by block, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from threadpoolctl import threadpool_limits

from dse.core.values import Ints
from dse.errors import SpecError
from dse.protocols import DeployedTensor
from dse.protocols.deployment import PlainType
from dse_evaluators.compression.deployed_layers import deploy_record
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.model_layers import name_layer, needs_calibration
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.module_layers import ModuleLayers
from dse_evaluators.workloads.own.safetensors_model import MatchedWeights, match_weights
from dse_evaluators.workloads.own.streamed_decoder import calibrate_blocks

_PLAIN: dict[str, PlainType] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}

NamedTensors = Iterator[tuple[str, DeployedTensor]]
"""Tensors of a model with their names, one at a time."""


def compress_folder(
    folder: Path, recipe: str, tokens: Ints | None = None, *, others: str = KEEP
) -> NamedTensors:
    """Compress the model of a folder layer by layer; yield each tensor as it is stored.

    At any time, memory holds one layer, or one block of the decoder with the activations between
    two blocks if the recipe is calibrated. The compressed layers are those of the model as a unit,
    bit for bit.

    Args:
        folder: the folder with ``config.json`` and safetensors.
        recipe: recipe of the linear layers of the blocks, such as ``gptq int4:group=128``.
        tokens: token ids that calibrate the layers, (n, t), required by operators such as
            ``gptq``.
        others: recipe of embeddings and of the head; ``keep`` leaves them in the type of the file.

    Raises:
        SpecError: a file is missing or damaged, or the recipe is not valid for these layers or
            needs tokens.
        EvaluationError: the recipe cannot be applied to a layer; the message names it.
    """
    matched = match_weights(folder)
    if needs_calibration(others):
        raise SpecError(
            f"{others!r} needs calibration inputs, which embeddings and heads do not get here",
            hint="a recipe without calibration, such as 'format int8:channel', or 'keep'",
        )
    if not needs_calibration(recipe):
        if tokens is not None:
            raise SpecError(
                f"{recipe!r} uses no calibration tokens", hint="leave them out, or use gptq"
            )
        return _compress_each(matched, recipe, others)
    if tokens is None:
        raise SpecError(f"{recipe!r} needs calibration tokens", hint="give token ids, (n, t)")
    return _compress_blocks(matched, recipe, others, tokens)


def _compress_each(matched: MatchedWeights, recipe: str, others: str) -> NamedTensors:
    """Compress one layer after the other, without calibration."""
    layers = ModuleLayers.of(matched.module).used_by
    for name, _ in matched.module.named_parameters():
        chosen = recipe if _is_in_block(name) else others
        yield name, _compress(matched, name, chosen if name in layers else KEEP)


def _compress_blocks(
    matched: MatchedWeights, recipe: str, others: str, tokens: Ints
) -> NamedTensors:
    """Compress the layers of one block after the other, by the inputs that they get."""
    names = [name for name, _ in matched.module.named_parameters()]
    layers = ModuleLayers.of(matched.module).used_by
    outside = [name for name in names if not _is_in_block(name)]
    for name in outside:
        yield name, _compress(matched, name, others if name in layers else KEEP)
    for block in calibrate_blocks(matched, tokens):
        for name in names:
            if name.startswith(block.prefix):
                chosen = recipe if name in layers else KEEP
                yield name, _compress(matched, name, chosen, block.inputs.pop(name, None))


def _compress(
    matched: MatchedWeights, name: str, recipe: str, inputs: Single | None = None
) -> DeployedTensor:
    """Compress a tensor by a recipe; return it as it is stored.

    Args:
        matched: the stored tensors.
        name: the parameter's name.
        recipe: the recipe; ``keep`` leaves the tensor in the type of the file.
        inputs: calibration inputs of its layer, (rows, inputs).
    """
    values = matched.read(name)
    if recipe == KEEP:
        kind = _PLAIN[matched.stored[name].kind]
        return DeployedTensor(values=values, stored=kind, recipe=KEEP)
    with name_layer(name, recipe), threadpool_limits(limits=1):
        return deploy_record(compress_layer(recipe, values, inputs), recipe)


def _is_in_block(name: str) -> bool:
    """Return whether a parameter is of one of a transformer's blocks, which have numbers."""
    return any(part.isdecimal() for part in name.split("."))
