"""Families of transformers by ``model_type``: how to build them, and the names of their weights."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from torch import nn

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.own.families.bert import PREDICTIONS, Bert
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.decoder import RotaryDecoder
from dse_evaluators.workloads.own.families.decoder_config import DECODERS, DecoderConfig
from dse_evaluators.workloads.own.families.gpt2 import Gpt2

_OTHERS = "other models: {python: net.py:make} or ONNX"


@dataclass(frozen=True, slots=True, kw_only=True)
class TransformerFamily:
    """Implementation of a model family, and how its files name and store the parameters.

    Attributes:
        build: function of the values of ``config.json`` and the names of the stored tensors,
            which returns the module.
        rename: function of a stored name, which returns the parameter's; empty for a tensor that
            the model does not use.
        turned: pattern of the parameters that are stored as (inputs, outputs).
        is_encoder: whether positions attend to later ones, so that no next token is predicted.
    """

    build: Callable[[ConfigValues, Collection[str]], nn.Module]
    rename: Callable[[str], str]
    turned: str = r"(?!)"
    is_encoder: bool = False


def family_of(values: Mapping[str, object]) -> TransformerFamily:
    """Return the family that ``model_type`` of ``config.json`` names.

    Args:
        values: the content of the file.

    Raises:
        SpecError: the family is not implemented, or its weights are quantized.
    """
    name = values.get("model_type")
    if not isinstance(name, str) or name not in FAMILIES:
        near = nearest(str(name), FAMILIES) if isinstance(name, str) else ""
        hint = f"{near or 'supported: ' + ', '.join(FAMILIES)}; {_OTHERS}"
        raise SpecError(f"config.json: model_type {name!r} cannot be read", hint=hint)
    if values.get("quantization_config"):
        raise SpecError(
            "config.json: quantization_config: the weights are compressed already",
            hint="give the weights in F32, F16 or BF16",
        )
    return FAMILIES[name]


def _rename_decoder(name: str) -> str:
    return "" if "rotary_emb" in name else name


def _rename_gpt2(name: str) -> str:
    if re.search(r"\.attn\.(bias|masked_bias)$", name):
        return ""  # constant masks
    return name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"


def _rename_bert(name: str) -> str:
    name = name.replace("LayerNorm.gamma", "LayerNorm.weight")
    name = name.replace("LayerNorm.beta", "LayerNorm.bias")
    if name.endswith("position_ids") or name.startswith("cls.seq_relationship."):
        return ""
    if name == f"{PREDICTIONS}decoder.bias":
        return f"{PREDICTIONS}bias"
    return name if name.startswith(("bert.", "cls.", "classifier.")) else f"bert.{name}"


FAMILIES: Mapping[str, TransformerFamily] = {
    **{
        name: TransformerFamily(
            build=lambda values, _: RotaryDecoder(DecoderConfig.of(values)), rename=_rename_decoder
        )
        for name in DECODERS
    },
    "gpt2": TransformerFamily(
        build=lambda values, _: Gpt2(values),
        rename=_rename_gpt2,
        turned=r"\.(c_attn|c_proj|c_fc)\.weight$",
    ),
    "bert": TransformerFamily(build=Bert, rename=_rename_bert, is_encoder=True),
}
"""Families by ``model_type``."""
