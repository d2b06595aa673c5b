"""Rotations that are folded into the weights of a decoder, which leave its outputs the same."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

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
_UNCHANGED = ("q_norm", "k_norm")
_ATTENTION_NORM, _MLP_NORM = "input_layernorm.weight", "post_attention_layernorm.weight"


def rotation_seed(text: str) -> int | None:
    """Return the seed that a rotation names, as in ``hadamard`` or ``hadamard:7``; None for none.

    Raises:
        SpecError: the text is neither.
    """
    if text == NO_ROTATION:
        return None
    name, _, seed = text.partition(":")
    if name != "hadamard" or not (seed or "0").isdecimal():
        raise SpecError(
            f"there is no rotation {text!r}",
            hint=f"{NO_ROTATION}, hadamard, or hadamard:7 with a seed",
            part=["rotation"],
        )
    return int(seed or "0")


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderRotation:
    """Random rotation of a decoder's residual stream, and of the values of each attention head.

    The weights of the norms are folded into the layers that they feed, so that the norms commute
    with the rotation. All heads share one rotation. The function of the model is the same up to
    rounding; outliers of single channels are spread over all.

    Source:
        Ashkboos et al., QuaRot: Outlier-Free 4-Bit Inference in Rotated LLMs, 2024, section 4,
        stages 1a and 1b, without the rotations that are computed during inference; folding of
        norms: Ashkboos et al., SliceGPT, 2024, section 3.
    """

    config: DecoderConfig
    seed: int

    @staticmethod
    def of(module: object, seed: int) -> DecoderRotation:
        """Return the rotation of a module.

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
        return DecoderRotation(config=config, seed=seed)

    def rotate(self, name: str, read: Callable[[str], Single]) -> Single:
        """Return the rotated values of a parameter.

        Args:
            name: name of the parameter.
            read: function that returns the stored values of a parameter.
        """
        if name == "model.embed_tokens.weight":
            return _single(read(name).astype(np.float64) @ self._stream)
        if name == "lm_head.weight":
            return self._read_stream(read(name), read("model.norm.weight"))
        found = _BLOCK.fullmatch(name)
        prefix, rest = found.groups() if found else ("", name)
        module, _, kind = rest.rpartition(".")
        layer = module.rpartition(".")[2]
        if layer in _UNCHANGED:
            return read(name)
        if layer.endswith("norm"):
            return np.full_like(read(name), 1.0 - self._norm_offset)
        if layer in _INTO_STREAM:
            return self._write_stream(layer, kind, read(name))
        values = read(name)
        if kind == "weight":
            norm = _ATTENTION_NORM if layer in _FROM_ATTENTION_NORM else _MLP_NORM
            values = self._read_stream(values, read(prefix + norm))
        return self._rotate_values(layer, values)

    @property
    def _stream(self) -> Floats:
        return random_rotation(self.config.hidden_size, self.seed)

    @property
    def _norm_offset(self) -> float:
        return 1.0 if self.config.family.is_gemma else 0.0

    def _read_stream(self, weight: Single, norm: Single) -> Single:
        """Return a layer that reads the rotated stream after a norm without weights."""
        gain = norm.astype(np.float64) + self._norm_offset
        return _single((weight.astype(np.float64) * gain) @ self._stream)

    def _write_stream(self, layer: str, kind: str, values: Single) -> Single:
        """Return a layer, or its bias, that writes into the rotated stream."""
        wide = values.astype(np.float64)
        if layer == "o_proj" and kind == "weight":
            heads = wide.reshape(len(wide), -1, self.config.head_width)
            wide = (heads @ self._head).reshape(wide.shape)
        return _single(self._stream.T @ wide)

    def _rotate_values(self, layer: str, values: Single) -> Single:
        """Return a projection whose values, if it gives any, are rotated by head."""
        if layer not in ("v_proj", "qkv_proj"):
            return values
        count = self.config.key_value_heads * self.config.head_width
        first, rows = np.split(values, [len(values) - count])
        heads = rows.astype(np.float64)
        heads = heads.reshape(self.config.key_value_heads, self.config.head_width, -1)
        turned = (self._head.T @ heads).reshape(rows.shape)
        return np.concatenate([first, _single(turned)])

    @property
    def _head(self) -> Floats:
        return random_rotation(self.config.head_width, self.seed + 1)


def _single(values: Floats) -> Single:
    return np.ascontiguousarray(values, dtype=np.float32)


def _refuse(why: str, hint: str) -> SpecError:
    return SpecError(f"the model cannot be rotated: {why}", hint=hint, part=["rotation"])
