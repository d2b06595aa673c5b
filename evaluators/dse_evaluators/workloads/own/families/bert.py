"""BERT: an encoder with learned positions, token types and normalization after each layer."""

from __future__ import annotations

from collections.abc import Collection

import torch
from torch import Tensor, nn

from dse_evaluators.workloads.own.families.attention_heads import attend, divide_heads, padding_mask
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.token_check import check_tokens

PREDICTIONS = "cls.predictions."
"""Prefix of the parameters of the head that predicts masked tokens."""


class Bert(nn.Module):
    """BERT encoder that returns the outputs of the head that its files contain.

    The outputs are the logits of masked tokens, (n, t, v), or of classes, (n, k), the pooled
    output, (n, h), or, without any head, the last hidden states, (n, t, h).

    Args:
        values: the content of ``config.json``.
        stored: names of the stored tensors.

    Raises:
        SpecError: a size is missing or not valid, or a feature is not implemented.

    Source:
        Devlin et al.: BERT, 2019, section 3.
    """

    def __init__(self, values: ConfigValues, stored: Collection[str]) -> None:
        super().__init__()
        for key, plain in (("position_embedding_type", "absolute"), ("is_decoder", None)):
            values.refuse(key, plain)
        values.refuse("add_cross_attention")
        self.bert = _BertTrunk(values, stored)
        self.is_masked_lm = any(name.startswith(PREDICTIONS) for name in stored)
        self.is_classifier = "classifier.weight" in stored
        if self.is_masked_lm:
            self.cls = _Heads(values)
            if values.flag("tie_word_embeddings", usual=True):
                weight = self.bert.embeddings.word_embeddings.weight
                self.cls.predictions.decoder.weight = weight
        if self.is_classifier:
            labels = values.values.get("id2label")
            usual = len(labels) if isinstance(labels, dict) and labels else 2
            classes = values.size("num_labels", usual)
            self.classifier = nn.Linear(values.size("hidden_size"), classes)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        states: Tensor = self.bert(input_ids, attention_mask, token_type_ids)
        if self.is_masked_lm:
            states = self.cls.predictions(states)
        elif self.bert.pooler is not None:
            states = self.bert.pooler(states)
        if self.is_classifier:
            states = self.classifier(states)
        return states


class _BertTrunk(nn.Module):
    def __init__(self, values: ConfigValues, stored: Collection[str]) -> None:
        super().__init__()
        self.embeddings = _Embeddings(values)
        self.encoder = _Encoder(values)
        has_pooler = any("pooler.dense" in name for name in stored)
        self.pooler = _Pooler(values) if has_pooler else None

    def forward(self, tokens: Tensor, given: Tensor | None, kinds: Tensor | None) -> Tensor:
        length = tokens.shape[1]
        mask = padding_mask(torch.zeros(length, length), given)
        result: Tensor = self.encoder(self.embeddings(tokens, kinds), mask)
        return result


class _Embeddings(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("hidden_size")
        self.word_embeddings = nn.Embedding(values.size("vocab_size"), hidden)
        self.position_embeddings = nn.Embedding(values.size("max_position_embeddings"), hidden)
        self.token_type_embeddings = nn.Embedding(values.size("type_vocab_size", 2), hidden)
        self.LayerNorm = _layer_norm(values)

    def forward(self, tokens: Tensor, kinds: Tensor | None) -> Tensor:
        words, places = self.word_embeddings, self.position_embeddings
        check_tokens(tokens, words.num_embeddings, places.num_embeddings)
        kinds = torch.zeros_like(tokens) if kinds is None else kinds
        signal = words(tokens) + self.token_type_embeddings(kinds)
        result: Tensor = self.LayerNorm(signal + places(torch.arange(tokens.shape[1])))
        return result


class _Encoder(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        layers = values.count("num_hidden_layers")
        self.layer = nn.ModuleList(_EncoderLayer(values) for _ in range(layers))

    def forward(self, signal: Tensor, mask: Tensor) -> Tensor:
        for layer in self.layer:
            signal = layer(signal, mask)
        return signal


class _EncoderLayer(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden, wide = values.size("hidden_size"), values.size("intermediate_size")
        self.attention = nn.ModuleDict(
            {"self": _SelfAttention(values), "output": _Residual(values, hidden)}
        )
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(hidden, wide)})
        self.output = _Residual(values, wide)
        self.activation = values.activation("hidden_act", "gelu")

    def forward(self, signal: Tensor, mask: Tensor) -> Tensor:
        signal = self.attention["output"](self.attention["self"](signal, mask), signal)
        wide = self.activation(self.intermediate["dense"](signal))
        result: Tensor = self.output(wide, signal)
        return result


class _SelfAttention(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("hidden_size")
        self.width = hidden // values.divisor("num_attention_heads", "hidden_size")
        self.query = nn.Linear(hidden, hidden)
        self.key = nn.Linear(hidden, hidden)
        self.value = nn.Linear(hidden, hidden)

    def forward(self, signal: Tensor, mask: Tensor) -> Tensor:
        queries, keys, values = (
            divide_heads(one(signal), self.width) for one in (self.query, self.key, self.value)
        )
        return attend(queries, keys, values, mask, scale=self.width**-0.5)


class _Residual(nn.Module):
    def __init__(self, values: ConfigValues, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, values.size("hidden_size"))
        self.LayerNorm = _layer_norm(values)

    def forward(self, signal: Tensor, before: Tensor) -> Tensor:
        result: Tensor = self.LayerNorm(self.dense(signal) + before)
        return result


class _Pooler(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("hidden_size")
        self.dense = nn.Linear(hidden, hidden)

    def forward(self, states: Tensor) -> Tensor:
        return torch.tanh(self.dense(states[:, 0]))


class _Heads(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        self.predictions = _Predictions(values)


class _Predictions(nn.Module):
    def __init__(self, values: ConfigValues) -> None:
        super().__init__()
        hidden = values.size("hidden_size")
        self.transform = nn.ModuleDict(
            {"dense": nn.Linear(hidden, hidden), "LayerNorm": _layer_norm(values)}
        )
        self.decoder = nn.Linear(hidden, values.size("vocab_size"), bias=False)
        self.bias = nn.Parameter(torch.zeros(values.size("vocab_size")))
        self.activation = values.activation("hidden_act", "gelu")

    def forward(self, states: Tensor) -> Tensor:
        deep = self.transform["LayerNorm"](self.activation(self.transform["dense"](states)))
        result: Tensor = self.decoder(deep) + self.bias
        return result


def _layer_norm(values: ConfigValues) -> nn.LayerNorm:
    eps = values.number("layer_norm_eps", 1e-12)
    return nn.LayerNorm(values.size("hidden_size"), eps=eps)
