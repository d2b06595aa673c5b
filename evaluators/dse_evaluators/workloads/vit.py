"""Layer table of the vision transformer ViT-B/16 for 224 x 224 images.

Source:
    Dosovitskiy et al.: An Image is Worth 16x16 Words, 2021, table 1 and section 3.1; with one dense
    layer as its head, as it is fine-tuned.
"""

from __future__ import annotations

from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import convolution, dense
from dse_evaluators.workloads.transformer import TokenBatch, blocks, others
from dse_evaluators.workloads.transformer_configs import Transformer

_SIDE = 224 // 16
_CLASSES = 1000
_TOKENS = _SIDE * _SIDE + 1
"""Number of tokens: one per patch, and the class token."""

_B16 = Transformer(
    name="vit-b16",
    layers=12,
    hidden=768,
    heads=12,
    kv_heads=12,
    ffn=3072,
    vocabulary=0,
    gated=False,
    biased=True,
    positions=_TOKENS,
    source="Dosovitskiy et al. 2021",
)


def _vit(model: Transformer) -> LayerTable:
    return LayerTable(
        layers=(
            convolution("patches", _SIDE, 16, 3, model.hidden, stride=16),
            *blocks(model, TokenBatch(fresh=_TOKENS, context=_TOKENS)),
            dense("head", model.hidden, _CLASSES, first=True, last=True),
        ),
        # biases of the patch embedding, the class token, biases of the head
        others=others(model) + model.hidden + model.hidden + _CLASSES,
    )


VIT_B16 = _vit(_B16)
