"""Rotations that are folded into the weights of a decoder, which leave its outputs the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.families.decoder import RotaryDecoder
from dse_evaluators.workloads.own.families.decoder_config import DecoderConfig
from dse_evaluators.workloads.own.families.hadamard import hadamard_block, random_rotation

NO_ROTATION = "none"

_BLOCK = re.compile(r"(model\.layers\.\d+\.)(.+)")
_FROM_ATTENTION_NORM = ("q_proj", "k_proj", "v_proj", "qkv_proj")
_INTO_STREAM = ("o_proj", "down_proj", "w2")
_GIVES_VALUES = ("v_proj", "qkv_proj")
_UNCHANGED = ("q_norm", "k_norm")
_ATTENTION_NORM, _MLP_NORM = "input_layernorm.weight", "post_attention_layernorm.weight"


def rotation_seed(text: str) -> int | None:
    """Return the seed that a rotation names, as in ``hadamard`` or ``hadamard:7``; None for none.

    Raises:
        SpecError: the text is neither ``none`` nor ``hadamard`` with an optional seed.
    """
    if text == NO_ROTATION:
        return None
    name, _, seed = text.partition(":")
    if name != "hadamard" or not (seed or "0").isdecimal():
        raise SpecError(
            f"there is no rotation {text!r}",
            hint=f"{NO_ROTATION}, hadamard, or hadamard:7 with a seed; compression.recipe also "
            "learns one: learned 100/int4:channel",
            part=["rotation"],
        )
    return int(seed or "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderRotation:
    """Rotation of a decoder's residual stream, and of the values of each attention head.

    The weights of the norms are folded into the layers that they feed, so that the norms commute
    with the rotation. All heads of a block share one rotation. The function of the model is the
    same up to rounding; outliers of single channels are spread over all.

    Attributes:
        config: sizes of the decoder.
        stream: orthogonal matrix that multiplies the residual stream, (width, width).
        heads: orthogonal matrix of each block's values, (head width, head width).

    Source:
        Ashkboos et al., QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs, 2024, section 4,
        stages 1a and 1b, without the rotations that are computed during inference; folding of
        norms: Ashkboos et al., SliceGPT, 2024, section 3.
    """

    config: DecoderConfig
    stream: Floats
    heads: tuple[Floats, ...]

    @staticmethod
    def of(module: object, seed: int) -> DecoderRotation:
        """Return a random Hadamard rotation of a module, the same for the heads of all blocks.

        Raises:
            SpecError: the structure of the module does not allow one.
        """
        if not isinstance(module, RotaryDecoder):
            raise _refuse(
                "the model is no decoder with rotary positions and norms by root mean squares",
                "folders of Llama, Mistral, Mixtral, Qwen and Phi-3 can be rotated",
            )
        config = module.config
        if config.family.post_norms:
            raise _refuse(
                "norms stand between its layers and the residual stream, and do not commute with a "
                "rotation",
                "leave out rotation; Gemma 2 and 3 cannot be rotated",
            )
        if config.is_tied:
            raise _refuse(
                "its embeddings are also its head, and only the head takes the last norm's weights",
                "store lm_head.weight apart, with tie_word_embeddings: false",
            )
        try:
            hadamard_block(config.hidden_size)
        except SpecError as error:
            raise _refuse(error.problem, "leave out rotation") from error
        head = random_rotation(config.head_width, seed + 1)
        return DecoderRotation(
            config=config,
            stream=random_rotation(config.hidden_size, seed),
            heads=(head,) * len(config.windows),
        )

    def rotate(self, name: str, read: Callable[[str], Single]) -> Single:
        """Return the rotated values of a parameter.

        Args:
            name: name of the parameter.
            read: function that returns the stored values of a parameter.
        """
        layer = _layer_of(name)
        if layer in _UNCHANGED:
            return read(name)
        if layer.endswith("norm"):
            return np.full_like(read(name), 1.0 - self._norm_offset)
        values = read(name).astype(np.float64)
        norm = self._norm_before(name, layer)
        if norm:
            values = values * (read(norm).astype(np.float64) + self._norm_offset)
        turned = self.turn(name, values, self.stream, self.heads)
        return np.ascontiguousarray(turned, dtype=np.float32)

    # Arrays and tensors have no common type, so that one formula serves both as Any.
    def turn(self, name: str, values: Any, stream: Any, heads: Sequence[Any]) -> Any:
        """Return a parameter, whose norm is folded into it, multiplied by rotations.

        Args:
            name: name of the parameter.
            values: its values, an array or a tensor, as are the other arguments and the result.
            stream: matrix that multiplies the residual stream, (width, width).
            heads: matrix of each block's values, (head width, head width).
        """
        layer, found = _layer_of(name), _BLOCK.fullmatch(name)
        is_weight = name.endswith(".weight")
        if layer in _UNCHANGED or layer.endswith("norm"):
            return values
        head = heads[int(found[1].split(".")[2])] if found else None
        if layer in _INTO_STREAM:
            if layer == "o_proj" and is_weight:
                by_head = values.reshape(len(values), -1, self.config.head_width)
                values = (by_head @ head).reshape(values.shape)
            return stream.T @ values
        turned = values @ stream if is_weight else values
        if layer not in _GIVES_VALUES:
            return turned
        return self._turn_values(turned, head)

    @property
    def _norm_offset(self) -> float:
        return 1.0 if self.config.family.is_gemma else 0.0

    def _norm_before(self, name: str, layer: str) -> str:
        """Return the name of the norm that feeds a weight; empty if there is none."""
        if layer in _INTO_STREAM or layer == "embed_tokens" or not name.endswith(".weight"):
            return ""
        found = _BLOCK.fullmatch(name)
        if not found:
            return "model.norm.weight"
        return found[1] + (_ATTENTION_NORM if layer in _FROM_ATTENTION_NORM else _MLP_NORM)

    def _turn_values(self, values: Any, head: Any) -> Any:
        """Return a projection, or its bias, whose last outputs are the values of each head."""
        count = self.config.key_value_heads * self.config.head_width
        first, rows = values[: len(values) - count], values[len(values) - count :]
        by_head = rows.reshape(self.config.key_value_heads, self.config.head_width, -1)
        turned = (head.T @ by_head).reshape(rows.shape)
        if not len(first):
            return turned
        if isinstance(turned, torch.Tensor):
            return torch.cat([first, turned])
        return np.concatenate([first, turned])


def _layer_of(name: str) -> str:
    """Return the name of a parameter's layer, such as ``q_proj``."""
    return name.split(".")[-2]


def _refuse(why: str, hint: str) -> SpecError:
    return SpecError(f"the model cannot be rotated: {why}", hint=hint, part=["rotation"])
