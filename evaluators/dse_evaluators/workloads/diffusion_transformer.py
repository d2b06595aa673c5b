"""Layer tables of diffusion transformers, which denoise patches of a latent image.

Source:
    Peebles, Xie: Scalable Diffusion Models with Transformers (DiT), 2023, section 3.2; Chen et al.:
    PixArt-alpha, 2024, section 2.3, for text. The classes ``DiTTransformer2DModel`` and
    ``PixArtTransformer2DModel`` of diffusers 0.42 (Apache-2.0) have these layers.
"""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.workloads.layer_table import LayerTable, Lookup, add_biases, join_tables
from dse_evaluators.workloads.layers import Layer, convolution, product
from dse_evaluators.workloads.transformer import TokenBatch, attention

_WIDENED = 4
_FREQUENCIES = 256
"""Width of the sines of a time step."""
_MODULATIONS = 6
"""Shifts, scales and gates of a block: three for attention, three for the feed-forward network."""
_CONDITIONS = 3
"""Height, width and aspect ratio of a picture."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffusionTransformer:
    """Sizes of a diffusion transformer.

    A model of classes has ``classes`` and computes its modulation in each block. A model of text
    attends to words of ``word_width`` and computes the modulation once; if it is ``conditioned``,
    it also reads the size of the picture.
    """

    layers: int
    heads: int
    head: int
    patch: int
    inputs: int
    outputs: int
    classes: int = 0
    word_width: int = 0
    conditioned: bool = False

    @property
    def hidden(self) -> int:
        """Width of a token."""
        return self.heads * self.head


def diffusion_transformer(model: DiffusionTransformer, side: int, words: int) -> LayerTable:
    """Return the layer table for one denoising step of a square latent image.

    A model of classes embeds the time step once more for its last modulation, in diffusers; these
    products, some 1e-5 of all, are left out, since they have no weights of their own.

    Args:
        model: sizes of the model.
        side: side of the latent image, a multiple of the patch.
        words: tokens of the prompt; a model of classes reads none.
    """
    across = side // model.patch
    patches = convolution("patches", across, model.patch, model.inputs, model.hidden)
    parts = [add_biases(_stride_layer(patches, model.patch, across))]
    parts += _embed_prompt(model, words) if model.word_width else []
    for place in range(model.layers):
        parts.append(_block(f"block{place}", model, across * across, words))
    outputs = model.patch * model.patch * model.outputs
    last = add_biases(product("out", across * across, model.hidden, outputs))
    if model.word_width:
        return join_tables(*parts, LayerTable(layers=(), others=2 * model.hidden), last)
    return join_tables(*parts, _linear("out-modulation", 1, model.hidden, 2 * model.hidden), last)


def _stride_layer(layer: Layer, stride: int, across: int) -> Layer:
    """Return a convolution whose windows do not overlap."""
    side = across * stride
    return Layer(
        name=layer.name,
        height=side,
        width=side,
        filter_height=stride,
        filter_width=stride,
        channels=layer.channels,
        filters=layer.filters,
        stride=stride,
        pruned_inputs=False,
    )


def _embed_prompt(model: DiffusionTransformer, words: int) -> list[LayerTable]:
    """Build the embeddings of the time step, of the picture's size and of the words."""
    width = model.hidden
    parts = [_embed_time("time", width)]
    if model.conditioned:
        third = width // _CONDITIONS
        for name, rows in (("resolution", _CONDITIONS - 1), ("aspect-ratio", 1)):
            parts.append(_embed_time(name, third, rows=rows))
    parts.append(_linear("modulation", 1, width, _MODULATIONS * width))
    if model.word_width:
        parts.append(_linear("words1", words, model.word_width, width))
        parts.append(_linear("words2", words, width, width))
    return parts


def _embed_time(name: str, width: int, *, rows: int = 1) -> LayerTable:
    return join_tables(
        _linear(f"{name}1", rows, _FREQUENCIES, width),
        _linear(f"{name}2", rows, width, width),
    )


def _block(name: str, model: DiffusionTransformer, tokens: int, words: int) -> LayerTable:
    width, inner = model.hidden, _WIDENED * model.hidden
    parts = [
        _modulate(name, model),
        _linear(f"{name}-self-qkv", tokens, width, 3 * width),
        _attend(f"{name}-self", model, tokens, tokens),
    ]
    if model.word_width:
        parts += [
            _linear(f"{name}-text-query", tokens, width, width),
            _linear(f"{name}-text-kv", words, width, 2 * width),
            _attend(f"{name}-text", model, tokens, words),
        ]
    up = product(f"{name}-up", tokens, width, inner, prunes="outputs")
    down = product(f"{name}-down", tokens, inner, width, prunes="inputs")
    return join_tables(*parts, add_biases(up, down))


def _modulate(name: str, model: DiffusionTransformer) -> LayerTable:
    """Build the modulation of a block: its own for a model of classes, otherwise a table."""
    width = model.hidden
    if model.word_width:
        return LayerTable(layers=(), others=_MODULATIONS * width)
    labels = Lookup(name=f"{name}-classes", rows=model.classes + 1, width=width)
    return join_tables(
        LayerTable(layers=(), lookups=(labels,)),
        _embed_time(f"{name}-time", width),
        _linear(f"{name}-modulation", 1, width, _MODULATIONS * width),
    )


def _attend(name: str, model: DiffusionTransformer, tokens: int, context: int) -> LayerTable:
    heads = (model.heads, model.heads)
    batch = TokenBatch(fresh=tokens, context=context)
    return join_tables(
        LayerTable(layers=attention(name, heads, model.head, batch)),
        _linear(f"{name}-project", tokens, model.hidden, model.hidden),
    )


def _linear(name: str, rows: int, inputs: int, outputs: int) -> LayerTable:
    return add_biases(product(name, rows, inputs, outputs))
