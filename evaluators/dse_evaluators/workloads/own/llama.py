"""Decoder of the Llama family: grouped-query attention, RMSNorm and rotary positions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.own.module_layers import CachedSignal

FAMILIES = ("llama", "mistral", "qwen2")
"""Values of ``model_type`` in ``config.json`` that this decoder implements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaConfig:
    """Sizes of a decoder, named as in ``config.json``."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_hidden_layers: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    rms_norm_eps: float
    rope_theta: float
    sliding_window: int | None
    tie_word_embeddings: bool
    input_bias: bool
    output_bias: bool
    mlp_bias: bool

    @staticmethod
    def of(values: Mapping[str, Any]) -> LlamaConfig:
        """Read the content of ``config.json``.

        Args:
            values: the content of the file.

        Raises:
            SpecError: the model is of another family, a size is missing or not valid, or the
                model has a feature that this decoder lacks.
        """
        family = values.get("model_type")
        if family not in FAMILIES:
            hint = f"{nearest(family, FAMILIES)}; other models: {{python: net.py:make}} or ONNX"
            raise SpecError(f"config.json: model_type {family!r} cannot be read", hint=hint)
        rope = values.get("rope_parameters") or values.get("rope_scaling") or {}
        kind = rope.get("rope_type", rope.get("type", "default"))
        if kind != "default" or values.get("hidden_act", "silu") != "silu":
            what = f"rope_type {kind!r}" if kind != "default" else "hidden_act"
            raise SpecError(f"config.json: {what} is not supported")
        heads = _size(values, "num_attention_heads")
        hidden = _size(values, "hidden_size")
        window = values.get("sliding_window")
        slides = values.get("use_sliding_window", family == "mistral")
        bias = bool(values.get("attention_bias", family == "qwen2"))
        found = LlamaConfig(
            vocab_size=_size(values, "vocab_size"),
            hidden_size=hidden,
            intermediate_size=_size(values, "intermediate_size"),
            num_hidden_layers=_size(values, "num_hidden_layers"),
            num_attention_heads=heads,
            num_key_value_heads=_size(values, "num_key_value_heads", heads),
            head_dim=_size(values, "head_dim", hidden // heads),
            rms_norm_eps=float(values.get("rms_norm_eps", 1e-6)),
            rope_theta=float(rope.get("rope_theta", values.get("rope_theta", 10000.0))),
            sliding_window=window if slides else None,
            tie_word_embeddings=bool(values.get("tie_word_embeddings", False)),
            input_bias=bias,
            output_bias=bias and family != "qwen2",
            mlp_bias=bool(values.get("mlp_bias", False)),
        )
        if heads % found.num_key_value_heads or found.head_dim % 2:
            raise SpecError(
                f"config.json: {heads} heads of width {found.head_dim} do not share "
                f"{found.num_key_value_heads} key/value heads",
                hint="num_key_value_heads divides num_attention_heads; head_dim is even",
            )
        return found


class LlamaDecoder(nn.Module):
    """Language model that returns the logits of the next token at each position, (n, t, v).

    The names of its parameters are those of the files that ``transformers`` writes. Keys and
    values pass a :class:`CachedSignal` after the rotation, as they are cached in inference.

    Source:
        Touvron et al.: LLaMA, 2023, section 2.2; Ainslie et al.: GQA, 2023.
    """

    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.model = _Trunk(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, tokens: Tensor) -> Tensor:
        logits: Tensor = self.lm_head(self.model(tokens))
        return logits


class _Trunk(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_Block(config) for _ in range(config.num_hidden_layers))
        self.norm = _RootMeanSquareNorm(config)

    def forward(self, tokens: Tensor) -> Tensor:
        signal: Tensor = self.embed_tokens(tokens)
        turns = _rotations(self.config, tokens.shape[1])
        mask = _causal_mask(self.config, tokens.shape[1])
        for layer in self.layers:
            signal = layer(signal, turns, mask)
        result: Tensor = self.norm(signal)
        return result


class _Block(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.input_layernorm = _RootMeanSquareNorm(config)
        self.self_attn = _GroupedAttention(config)
        self.post_attention_layernorm = _RootMeanSquareNorm(config)
        self.mlp = _GatedLayer(config)

    def forward(self, signal: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        signal = signal + self.self_attn(self.input_layernorm(signal), turns, mask)
        result: Tensor = signal + self.mlp(self.post_attention_layernorm(signal))
        return result


class _RootMeanSquareNorm(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(config.hidden_size))
        self.eps = config.rms_norm_eps

    def forward(self, signal: Tensor) -> Tensor:
        scale = torch.rsqrt(signal.pow(2).mean(-1, keepdim=True) + self.eps)
        return self.weight * (signal * scale)


class _GroupedAttention(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        self.width = config.head_dim
        queries = config.num_attention_heads * config.head_dim
        keys = config.num_key_value_heads * config.head_dim
        self.q_proj = nn.Linear(config.hidden_size, queries, bias=config.input_bias)
        self.k_proj = nn.Linear(config.hidden_size, keys, bias=config.input_bias)
        self.v_proj = nn.Linear(config.hidden_size, keys, bias=config.input_bias)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=config.output_bias)
        self.cached_keys = CachedSignal()
        self.cached_values = CachedSignal()
        self.shared = config.num_attention_heads // config.num_key_value_heads

    def forward(self, signal: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        count, length, _ = signal.shape
        queries = _rotate(self._heads(self.q_proj(signal)), turns)
        keys = self.cached_keys(_rotate(self._heads(self.k_proj(signal)), turns))
        values = self.cached_values(self._heads(self.v_proj(signal)))
        keys, values = (one.repeat_interleave(self.shared, dim=1) for one in (keys, values))
        scores = queries @ keys.transpose(-1, -2) / self.width**0.5 + mask
        mixed = scores.softmax(dim=-1) @ values  # (n, heads, t, width)
        result: Tensor = self.o_proj(mixed.transpose(1, 2).reshape(count, length, -1))
        return result

    def _heads(self, signal: Tensor) -> Tensor:
        """Return a projection divided into heads, (n, heads, t, width)."""
        count, length, _ = signal.shape
        return signal.reshape(count, length, -1, self.width).transpose(1, 2)


class _GatedLayer(nn.Module):
    def __init__(self, config: LlamaConfig) -> None:
        super().__init__()
        hidden, wide, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_proj = nn.Linear(hidden, wide, bias=bias)
        self.up_proj = nn.Linear(hidden, wide, bias=bias)
        self.down_proj = nn.Linear(wide, hidden, bias=bias)

    def forward(self, signal: Tensor) -> Tensor:
        gate = functional.silu(self.gate_proj(signal))
        result: Tensor = self.down_proj(gate * self.up_proj(signal))
        return result


def _rotations(config: LlamaConfig, length: int) -> tuple[Tensor, Tensor]:
    """Return cosines and sines of the rotation of each position, (t, width).

    Source:
        Su et al.: RoFormer, 2021, eq. 34; halves are paired, as in the files of transformers.
    """
    half = torch.arange(0, config.head_dim, 2, dtype=torch.float32) / config.head_dim
    angles = torch.outer(torch.arange(length, dtype=torch.float32), config.rope_theta**-half)
    both = torch.cat([angles, angles], dim=-1)
    return both.cos(), both.sin()


def _rotate(signal: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
    first, second = signal.chunk(2, dim=-1)
    return signal * turns[0] + torch.cat([-second, first], dim=-1) * turns[1]


def _causal_mask(config: LlamaConfig, length: int) -> Tensor:
    """Return 0 where a position attends to another, else minus infinity, (t, t)."""
    places = torch.arange(length)
    distance = places[:, None] - places[None, :]
    hidden = distance < 0
    if config.sliding_window is not None:
        hidden |= distance >= config.sliding_window
    return torch.zeros(length, length).masked_fill(hidden, float("-inf"))


def _size(values: Mapping[str, Any], key: str, usual: int | None = None) -> int:
    found = values.get(key, usual)
    found = usual if found is None else found
    if isinstance(found, bool) or not isinstance(found, int) or not 1 <= found <= 2**24:
        hint = "a whole number from 1" if key in values else nearest(key, values)
        raise SpecError(f"config.json: {key} is {found!r}", hint=hint)
    return found
