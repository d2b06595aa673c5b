"""Folder of the user with ``config.json`` and safetensors: its layout, and the model on data."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import nn

from dse.errors import SpecError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.decoder_rotation import DecoderRotation
from dse_evaluators.workloads.own.families.family import TransformerFamily, family_of
from dse_evaluators.workloads.own.module_layers import ModuleLayers
from dse_evaluators.workloads.own.module_workload import ModuleWorkload
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_quality import Quality
from dse_evaluators.workloads.own.safetensors_file import (
    StoredTensor,
    read_headers,
    read_json,
)
from dse_evaluators.workloads.workload import Layout, Workload

_UNFIT = "config.json and the weights must be of one model"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedWeights:
    """PyTorch module without values, with the stored tensor of each parameter by name.

    With a rotation, parameters have the values of the rotated decoder.
    """

    module: nn.Module
    family: TransformerFamily
    stored: Mapping[str, StoredTensor]
    rotation: DecoderRotation | None = None

    def rotated(self, seed: int) -> MatchedWeights:
        """Return the weights of the decoder after a random rotation.

        Raises:
            SpecError: the structure of the model does not allow one.
        """
        return replace(self, rotation=DecoderRotation.of(self.module, seed))

    def is_turned(self, name: str) -> bool:
        """Return whether a parameter is stored as (inputs, outputs)."""
        return re.search(self.family.turned, name) is not None

    def read(self, name: str) -> Single:
        """Return the values of a parameter, in its shape."""
        if self.rotation is not None:
            return self.rotation.rotate(name, self._read_stored)
        return self._read_stored(name)

    def _read_stored(self, name: str) -> Single:
        array = self.stored[name].read()
        return np.ascontiguousarray(array.T if self.is_turned(name) else array)


def folder_layout(folder: Path) -> Layout:
    """Return the parameters' shapes and compressible layers of a folder, from its headers.

    Args:
        folder: the folder with ``config.json``.

    Raises:
        SpecError: a file is missing or damaged, or the weights do not fit ``config.json``.
    """
    matched = match_weights(folder)
    found = ModuleLayers.of(matched.module)
    shapes = {name: tuple(one.shape) for name, one in matched.module.named_parameters()}
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
        SpecError: a file is missing or damaged, the weights do not fit ``config.json``, or an
            encoder is to predict next tokens.
    """
    matched = match_weights(folder)
    needs_labels = any(one.needs == "labels" for one in qualities)
    if matched.family.is_encoder and needs_labels and data is not None and data.targets is None:
        raise SpecError(
            f"{label} is an encoder, which predicts no next token",
            hint="give targets in data, or quality: cosine, which needs none",
        )
    fill_module(matched)
    return ModuleWorkload(name=label, module=matched.module, data=data, qualities=qualities)


def fill_module(matched: MatchedWeights, prefix: str = "") -> None:
    """Fill parameters of a module with their stored values; tied parameters stay tied.

    Args:
        matched: the module and the stored tensors.
        prefix: start of the names of the parameters to fill; all by default.
    """
    filled: dict[int, nn.Parameter] = {}
    for name, parameter in list(matched.module.named_parameters(remove_duplicate=False)):
        if not name.startswith(prefix):
            continue
        if id(parameter) not in filled:
            values = torch.from_numpy(matched.read(name))
            filled[id(parameter)] = nn.Parameter(values, requires_grad=False)
        owner, _, last = name.rpartition(".")
        setattr(matched.module.get_submodule(owner), last, filled[id(parameter)])


def match_weights(folder: Path) -> MatchedWeights:
    """Build the module without values, and find the stored tensor of each parameter.

    Raises:
        SpecError: a file is missing or damaged, or the weights do not fit ``config.json``.
    """
    content = read_json(folder / "config.json")
    family = family_of(content)
    named = _renamed(family, read_headers(folder))
    with torch.device("meta"):
        module = family.build(ConfigValues(content, len(named)), named)
    every = dict(module.named_parameters(remove_duplicate=False))
    matched = MatchedWeights(module=module, family=family, stored=named)
    shapes = {name: tuple(one.shape) for name, one in module.named_parameters()}
    _check_names(shapes, every, named)
    for name, shape in shapes.items():
        named[name].check_kind(name)
        stored = named[name].shape[::-1] if matched.is_turned(name) else named[name].shape
        if stored != shape:
            raise SpecError(
                f"{named[name].file.name}: {name} has the shape {stored}, but config.json makes "
                f"it {shape}",
                hint=_UNFIT,
            )
    return matched


def _renamed(
    family: TransformerFamily, stored: Mapping[str, StoredTensor]
) -> dict[str, StoredTensor]:
    """Return the stored tensors by the names of the parameters, without those that are not used.

    Two tensors of one parameter, of which files written by old programs have copies, are one.
    """
    found: dict[str, StoredTensor] = {}
    for name, tensor in stored.items():
        if family.rename(name):
            found.setdefault(family.rename(name), tensor)
    return found


def _check_names(
    shapes: Mapping[str, object], every: Mapping[str, object], stored: Mapping[str, StoredTensor]
) -> None:
    """Raise SpecError unless the files hold exactly the parameters of the model.

    Args:
        shapes: shape of each parameter.
        every: the parameters by all their names; tied ones have two.
        stored: the stored tensors.
    """
    lacking = [name for name in shapes if name not in stored]
    extra = [name for name in stored if name not in every]
    if lacking:
        problem = f"the weights lack {lacking[0]} ({len(lacking)} missing)"
        raise SpecError(problem, hint=nearest(lacking[0], extra) or "is a shard missing?")
    if extra:
        raise SpecError(f"the model has no parameter {extra[0]}", hint=_UNFIT)
