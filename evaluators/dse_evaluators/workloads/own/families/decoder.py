"""Decoder with rotary positions: Llama, Mistral, Mixtral, Qwen, Phi-3 and Gemma."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dse_evaluators.workloads.own.families.attention_heads import (
    attend,
    causal_mask,
    divide_heads,
    padding_mask,
)
from dse_evaluators.workloads.own.families.decoder_config import DecoderConfig
from dse_evaluators.workloads.own.families.gated_layers import GatedLayer, RoutedLayer
from dse_evaluators.workloads.own.families.rotary_positions import rotate
from dse_evaluators.workloads.own.module_layers import CachedSignal

BlockContext = tuple[tuple[Tensor, Tensor], Tensor]
"""Cosines and sines of the positions, (t, width) each, and the mask of attention."""


class RotaryDecoder(nn.Module):
    """Decoder language model that returns the logits of each next token, (n, t, v).

    The names of its parameters are those of the files that ``transformers`` writes. Keys and
    values pass a :class:`CachedSignal` after the rotation, as they are cached in inference.

    Args:
        config: sizes and features of the decoder.

    Source:
        Touvron et al.: LLaMA, 2023, section 2.2; Gemma Team: Gemma 2, 2024, section 2.
    """

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.model = _Trunk(config)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.is_tied:
            self.lm_head.weight = self.model.embed_tokens.weight

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.lm_head(self.model(input_ids, attention_mask))
        cap = self.config.logit_cap
        return logits if cap is None else torch.tanh(logits / cap) * cap


class _Trunk(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(_Block(config, one) for one in range(len(config.windows)))
        self.norm = RootMeanSquareNorm(config, config.hidden_size)

    def forward(self, tokens: Tensor, given: Tensor | None) -> Tensor:
        signal = self.embed(tokens)
        contexts = self.contexts(tokens.shape[1], given)
        for layer, context in zip(self.layers, contexts, strict=True):
            signal = layer(signal, *context)
        result: Tensor = self.norm(signal)
        return result

    def embed(self, tokens: Tensor) -> Tensor:
        """Return the inputs of the first block, (n, t, h)."""
        signal: Tensor = self.embed_tokens(tokens)
        return signal * self.config.hidden_size**0.5 if self.config.family.is_gemma else signal

    def contexts(self, length: int, given: Tensor | None = None) -> list[BlockContext]:
        """Return what each block gets besides its inputs.

        Args:
            length: number of positions, t.
            given: 1 for tokens and 0 for padding, (n, t); ``None`` if no example is padded.
        """
        turns = [one.turns(length) for one in self.config.positions]
        masks = {
            window: padding_mask(causal_mask(length, window), given)
            for window in set(self.config.windows)
        }
        return [(turns[window is not None], masks[window]) for window in self.config.windows]


class _Block(nn.Module):
    def __init__(self, config: DecoderConfig, place: int) -> None:
        super().__init__()
        hidden, routed = config.hidden_size, config.routed
        self.post_norms = config.family.post_norms
        self.input_layernorm = RootMeanSquareNorm(config, hidden)
        self.self_attn = _GroupedAttention(config)
        self.post_attention_layernorm = RootMeanSquareNorm(config, hidden)
        if self.post_norms:
            self.pre_feedforward_layernorm = RootMeanSquareNorm(config, hidden)
            self.post_feedforward_layernorm = RootMeanSquareNorm(config, hidden)
        self.mlp_name = "mlp"
        if routed is not None and place in routed.layers:
            self.mlp_name = routed.names[0]
            self.add_module(self.mlp_name, RoutedLayer(config, routed))
        else:
            self.mlp = GatedLayer(config, config.intermediate_size)

    def forward(self, signal: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        mlp = getattr(self, self.mlp_name)
        mixed = self.self_attn(self.input_layernorm(signal), turns, mask)
        if self.post_norms:
            signal = signal + self.post_attention_layernorm(mixed)
            deep = self.post_feedforward_layernorm(mlp(self.pre_feedforward_layernorm(signal)))
        else:
            signal = signal + mixed
            deep = mlp(self.post_attention_layernorm(signal))
        result: Tensor = signal + deep
        return result


class RootMeanSquareNorm(nn.Module):
    """Division by the root mean square, then multiplication by weights (of Gemma: 1 + weights).

    Args:
        config: sizes and features of the decoder.
        width: length of the vectors that are normalized.

    Source:
        Zhang, Sennrich: Root Mean Square Layer Normalization, 2019, eq. 4.
    """

    def __init__(self, config: DecoderConfig, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = config.eps
        self.offset = 1.0 if config.family.is_gemma else 0.0

    def forward(self, signal: Tensor) -> Tensor:
        scale = torch.rsqrt(signal.pow(2).mean(-1, keepdim=True) + self.eps)
        weight = self.weight + self.offset if self.offset else self.weight
        return weight * (signal * scale)


class _GroupedAttention(nn.Module):
    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        width, bias = config.head_width, config.input_bias
        queries, keys = config.heads * width, config.key_value_heads * width
        if config.family.fused:
            self.qkv_proj = nn.Linear(config.hidden_size, queries + 2 * keys, bias=bias)
        else:
            self.q_proj = nn.Linear(config.hidden_size, queries, bias=bias)
            self.k_proj = nn.Linear(config.hidden_size, keys, bias=bias)
            self.v_proj = nn.Linear(config.hidden_size, keys, bias=bias)
        self.o_proj = nn.Linear(queries, config.hidden_size, bias=config.output_bias)
        if config.family.head_norms:
            self.q_norm = RootMeanSquareNorm(config, width)
            self.k_norm = RootMeanSquareNorm(config, width)
        self.cached_keys = CachedSignal()
        self.cached_values = CachedSignal()

    def forward(self, signal: Tensor, turns: tuple[Tensor, Tensor], mask: Tensor) -> Tensor:
        config = self.config
        queries, keys, values = (
            divide_heads(one, config.head_width) for one in self._project(signal)
        )
        if config.family.head_norms:
            queries, keys = self.q_norm(queries), self.k_norm(keys)
        queries, keys = rotate(queries, turns), self.cached_keys(rotate(keys, turns))
        mixed = attend(
            queries,
            keys,
            self.cached_values(values),
            mask,
            scale=config.scale,
            cap=config.attention_cap,
        )
        result: Tensor = self.o_proj(mixed)
        return result

    def _project(self, signal: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        if not self.config.family.fused:
            return self.q_proj(signal), self.k_proj(signal), self.v_proj(signal)
        width = self.config.head_width
        keys = self.config.key_value_heads * width
        sizes = [self.config.heads * width, keys, keys]
        queries, keys_part, values = self.qkv_proj(signal).split(sizes, dim=-1)
        return queries, keys_part, values
