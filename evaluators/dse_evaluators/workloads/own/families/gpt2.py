"""GPT-2: a decoder with learned positions and one projection for queries, keys and values."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dse_evaluators.workloads.own.families.attention_heads import (
    attend,
    causal_mask,
    divide_heads,
    padding_mask,
)
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.token_check import check_tokens
from dse_evaluators.workloads.own.module_layers import CachedSignal


class Gpt2(nn.Module):
    """GPT-2 language model that returns the logits of each next token, (n, t, v).

    The names of its parameters are those of the files that ``transformers`` writes; its weights
    are (outputs, inputs), while the files store (inputs, outputs).

    Args:
        values: the content of ``config.json``.

    Raises:
        SpecError: a size is missing or not valid, or a feature is not implemented.

    Source:
        Radford et al.: Language Models are Unsupervised Multitask Learners, 2019, section 2.3.
    """

    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        values.refuse("add_cross_attention")
        hidden = values.size("n_embd")
        self.transformer = _Gpt2Trunk(values)
        self.lm_head = nn.Linear(hidden, values.size("vocab_size"), bias=False)
        if values.flag("tie_word_embeddings", usual=True):
            self.lm_head.weight = self.transformer.wte.weight

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        logits: Tensor = self.lm_head(self.transformer(input_ids, attention_mask))
        return logits


class _Gpt2Trunk(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("n_embd")
        self.wte = nn.Embedding(values.size("vocab_size"), hidden)
        self.wpe = nn.Embedding(values.size("n_positions"), hidden)
        self.h = nn.ModuleList(_Gpt2Block(values, one) for one in range(values.count("n_layer")))
        self.ln_f = _layer_norm(values)

    def forward(self, tokens: Tensor, given: Tensor | None) -> Tensor:
        length = tokens.shape[1]
        check_tokens(tokens, self.wte.num_embeddings, self.wpe.num_embeddings)
        signal = self.wte(tokens) + self.wpe(torch.arange(length))
        mask = padding_mask(causal_mask(length), given)
        for layer in self.h:
            signal = layer(signal, mask)
        result: Tensor = self.ln_f(signal)
        return result


class _Gpt2Block(nn.Module):
    def __init__(self, values: ConfigValues, place: int) -> None:
        super().__init__()
        self.ln_1 = _layer_norm(values)
        self.attn = _Gpt2Attention(values, place)
        self.ln_2 = _layer_norm(values)
        self.mlp = _Gpt2Mlp(values)

    def forward(self, signal: Tensor, mask: Tensor) -> Tensor:
        signal = signal + self.attn(self.ln_1(signal), mask)
        result: Tensor = signal + self.mlp(self.ln_2(signal))
        return result


class _Gpt2Attention(nn.Module):
    def __init__(self, values: ConfigValues, place: int) -> None:
        super().__init__()
        hidden = values.size("n_embd")
        self.width = hidden // values.divisor("n_head", "n_embd")
        self.c_attn = nn.Linear(hidden, 3 * hidden)
        self.c_proj = nn.Linear(hidden, hidden)
        self.scale = self.width**-0.5 if values.flag("scale_attn_weights", usual=True) else 1.0
        if values.flag("scale_attn_by_inverse_layer_idx", usual=False):
            self.scale /= place + 1
        self.cached_keys = CachedSignal()
        self.cached_values = CachedSignal()

    def forward(self, signal: Tensor, mask: Tensor) -> Tensor:
        queries, keys, values = (
            divide_heads(one, self.width) for one in self.c_attn(signal).chunk(3, dim=-1)
        )
        mixed = attend(
            queries, self.cached_keys(keys), self.cached_values(values), mask, scale=self.scale
        )
        result: Tensor = self.c_proj(mixed)
        return result


class _Gpt2Mlp(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("n_embd")
        wide = values.size("n_inner", 4 * hidden, most=2**26)
        self.c_fc = nn.Linear(hidden, wide)
        self.c_proj = nn.Linear(wide, hidden)
        self.activation = values.activation("activation_function", "gelu_new")

    def forward(self, signal: Tensor) -> Tensor:
        result: Tensor = self.c_proj(self.activation(self.c_fc(signal)))
        return result


def _layer_norm(values: ConfigValues) -> nn.LayerNorm:
    eps = values.number("layer_norm_epsilon", 1e-5)
    return nn.LayerNorm(values.size("n_embd"), eps=eps)
