"""Compression of a model's folder to safetensors shards, with bounded memory."""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from dse.errors import PluginError, SpecError
from dse.protocols import HasFolderCompression
from dse.registry import load

if TYPE_CHECKING:
    from dse.interop.deployment.safetensors_shards import WrittenShards

EVALUATOR = "compression.recipe"


def compress(
    folder: str | PathLike[str],
    output: str | PathLike[str],
    *,
    recipe: str,
    others: str = "keep",
    data: str | PathLike[str] | None = None,
    rotation: str = "none",
    sequential: bool = False,
) -> WrittenShards:
    """Compress a model's folder layer by layer, and write it in the layout of compressed-tensors.

    Memory holds one layer at a time, or one block of the decoder if the recipe is calibrated, and
    one shard.

    Args:
        folder: folder with ``config.json`` and safetensors; it is not changed.
        output: folder to write, which is empty or missing.
        recipe: recipe for the layers in the decoder's blocks: ``format int4:group=128`` rounds to
            nearest, ``gptq int4:group=128`` uses calibration inputs.
        others: recipe for the embeddings and the head; ``keep`` leaves these weights unchanged.
        data: file of calibration token ids, (sequences, tokens), such as ``tokens.npz``.
        rotation: ``hadamard``, or ``hadamard:7`` with a seed, folds a random rotation into the
            weights of a decoder before they are compressed.
        sequential: whether a block is calibrated by the outputs of the compressed blocks before it.

    Returns:
        The files, and the bytes of their tensors by purpose.

    Raises:
        DseError: the model cannot be read or compressed, or the folder cannot be written.

    Example:
        ``dse.compress("llama", "llama-int4", recipe="format int4:group=128")``
    """
    from dse.interop.deployment.safetensors_shards import write_shards

    evaluator = load("evaluators", EVALUATOR)
    if not isinstance(evaluator, HasFolderCompression):
        raise PluginError(f"the evaluator {EVALUATOR!r} installed here compresses no folders")
    source = Path(folder)
    found = evaluator.compress_folder(
        source,
        recipe,
        others=others,
        data=None if data is None else Path(data),
        rotation=rotation,
        sequential=sequential,
    )
    if Path(output).resolve() == source.resolve():
        raise SpecError("the model would be written over itself", hint="name a new folder")
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    return write_shards(found, Path(output), config)
