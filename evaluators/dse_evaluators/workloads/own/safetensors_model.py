"""Folder of the user with ``config.json`` and safetensors: its layout, and the model on data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.own.llama import LlamaConfig, LlamaDecoder
from dse_evaluators.workloads.own.module_layers import ModuleLayers
from dse_evaluators.workloads.own.module_workload import ModuleWorkload
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.own.safetensors_file import (
    StoredTensor,
    read_header,
    read_json,
    weight_files,
)
from dse_evaluators.workloads.workload import Layout, Workload

_HEAD = "lm_head.weight"


def folder_layout(folder: Path) -> Layout:
    """Return the parameters' shapes and compressible layers of a folder, from its headers.

    Raises:
        SpecError: a file is missing or damaged, or the weights do not fit ``config.json``.
    """
    decoder, _ = _match_weights(folder)
    found = ModuleLayers.of(decoder)
    shapes = {name: tuple(one.shape) for name, one in decoder.named_parameters()}
    return Layout(shapes=shapes, layers=tuple(found.used_by), kept=found.kept)


def load_folder(
    folder: Path, label: str, data: OwnData | None, qualities: Sequence[Quality]
) -> Workload:
    """Return the workload of a folder's model on data.

    Args:
        folder: the folder with ``config.json``.
        label: name of the model for messages.
        data: the examples, token ids; without them, only the weights can be used.
        qualities: the quality metrics.

    Raises:
        SpecError: a file is missing or damaged, or the weights do not fit ``config.json``.
    """
    decoder, stored = _match_weights(folder)
    values = {name: torch.tensor(one.read()) for name, one in stored.items()}
    decoder.load_state_dict(values, strict=False, assign=True)
    if decoder.config.tie_word_embeddings:
        decoder.lm_head.weight = decoder.model.embed_tokens.weight
    return ModuleWorkload(name=label, module=decoder, data=data, qualities=qualities)


def _match_weights(folder: Path) -> tuple[LlamaDecoder, dict[str, StoredTensor]]:
    """Return the decoder without values, and the stored tensor of each parameter."""
    config = LlamaConfig.of(read_json(folder / "config.json"))
    with torch.device("meta"):
        decoder = LlamaDecoder(config)
    stored: dict[str, StoredTensor] = {}
    for path in weight_files(folder):
        stored |= read_header(path)
    shapes = {name: tuple(one.shape) for name, one in decoder.named_parameters()}
    tied = {_HEAD} if config.tie_word_embeddings else set()
    _check_names(shapes, stored, tied)
    for name, shape in shapes.items():
        if stored[name].shape != shape:
            raise SpecError(
                f"{stored[name].file.name}: {name} has the shape {stored[name].shape}, but "
                f"config.json makes it {shape}",
                hint="config.json and the weights must be of one model",
            )
    return decoder, {name: stored[name] for name in shapes}


def _check_names(
    shapes: Mapping[str, object], stored: Mapping[str, StoredTensor], tied: set[str]
) -> None:
    """Raise SpecError unless the files hold exactly the parameters of the decoder."""
    lacking = [name for name in shapes if name not in stored]
    extra = [n for n in stored if n not in shapes and n not in tied and "rotary_emb" not in n]
    if lacking:
        problem = f"the weights lack {lacking[0]} ({len(lacking)} missing)"
        raise SpecError(problem, hint=nearest(lacking[0], extra) or "is a shard missing?")
    if extra:
        hint = "config.json and the weights must be of one model"
        raise SpecError(f"the decoder has no parameter {extra[0]}", hint=hint)
