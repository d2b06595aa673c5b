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
from dse_evaluators.compression.model_layers import name_layer
from dse_evaluators.compression.operators.recipe import compress_layer, needs_calibration
from dse_evaluators.compression.quantization_aware.training_check import refuse_training
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.families.decoder_rotation import NO_ROTATION, rotation_seed
from dse_evaluators.workloads.own.module_layers import ModuleLayers
from dse_evaluators.workloads.own.safetensors_model import MatchedWeights, match_weights
from dse_evaluators.workloads.own.streamed_decoder import EMBEDDING, calibrate_blocks

_PLAIN: dict[str, PlainType] = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}

NamedTensors = Iterator[tuple[str, DeployedTensor]]
"""Tensors of a model with their names, one at a time."""


def compress_folder(
    folder: Path,
    recipe: str,
    tokens: Ints | None = None,
    *,
    others: str = KEEP,
    rotation: str = NO_ROTATION,
    sequential: bool = False,
) -> NamedTensors:
    """Compress the model of a folder layer by layer; yield each tensor as it is stored.

    At any time, memory holds one layer, or one block of the decoder with the activations between
    two blocks if the recipe is calibrated. The compressed layers equal, bit for bit, the layers
    that compressing the entire model in memory gives.

    Args:
        folder: the folder with ``config.json`` and safetensors.
        recipe: recipe of the linear layers of the blocks, such as ``gptq int4:group=128``.
        tokens: token ids that calibrate the layers, (n, t), required by operators such as
            ``gptq``.
        others: recipe of embeddings and of the head; ``keep`` leaves them in the type of the file,
            or in single precision if the model is rotated.
        rotation: ``none``, ``hadamard``, or ``hadamard:7`` with a seed.
        sequential: whether a block is calibrated by the outputs of the compressed blocks before it.

    Raises:
        SpecError: a file is missing or damaged, the recipe is not valid for these layers or needs
            tokens, or the model cannot be rotated.
        EvaluationError: the recipe cannot be applied to a layer; the message names it.
    """
    matched = match_weights(folder)
    seed = rotation_seed(rotation)
    if seed is not None:
        matched = matched.rotated(seed)
    refuse_training((recipe, others), "dse compress")
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
        if sequential:
            raise SpecError(
                f"{recipe!r} uses no calibration, which could be sequential",
                hint="leave out sequential, or use gptq",
            )
        return _compress_each(matched, recipe, others)
    if tokens is None:
        raise SpecError(f"{recipe!r} needs calibration tokens", hint="give token ids, (n, t)")
    return _compress_blocks(matched, (recipe, others), tokens, sequential=sequential)


def _compress_each(matched: MatchedWeights, recipe: str, others: str) -> NamedTensors:
    """Compress one layer after the other, without calibration."""
    layers = ModuleLayers.of(matched.module).used_by
    for name, _ in matched.module.named_parameters():
        chosen = recipe if _is_in_block(name) else others
        yield name, _compress(matched, name, chosen if name in layers else KEEP)


def _compress_blocks(
    matched: MatchedWeights, recipes: tuple[str, str], tokens: Ints, *, sequential: bool
) -> NamedTensors:
    """Compress the layers of one block after the other, by the inputs that they get."""
    recipe, others = recipes
    names = [name for name, _ in matched.module.named_parameters()]
    layers = ModuleLayers.of(matched.module).used_by
    outside = [name for name in names if not _is_in_block(name)]
    replaced: dict[str, Single] | None = {} if sequential else None
    for name in outside:
        tensor = _compress(matched, name, others if name in layers else KEEP)
        if replaced is not None and name.startswith(EMBEDDING):
            replaced[name] = tensor.values
        yield name, tensor
    for block in calibrate_blocks(matched, tokens, replaced):
        for name in names:
            if name.startswith(block.prefix):
                chosen = recipe if name in layers else KEEP
                tensor = _compress(matched, name, chosen, block.inputs.pop(name, None))
                if replaced is not None:
                    replaced[name] = tensor.values
                yield name, tensor


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
        is_turned = matched.rotation is not None
        kind = "float32" if is_turned else _PLAIN[matched.stored[name].kind]
        return DeployedTensor(values=values, stored=kind, recipe=KEEP)
    with name_layer(name, recipe), threadpool_limits(limits=1):
        return deploy_record(compress_layer(recipe, values, inputs), recipe)


def _is_in_block(name: str) -> bool:
    """Return whether a parameter is of one of a transformer's blocks, which have numbers."""
    return any(part.isdecimal() for part in name.split("."))
