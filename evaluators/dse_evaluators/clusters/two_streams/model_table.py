"""Table of the models of MAD-Max's authors, and of diffusion models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Literal

from dse_evaluators.clusters.two_streams.layer_units import TwoStreamsModel, Unit
from dse_evaluators.fits import fits_in
from dse_evaluators.readings import look_up_row
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import Layer

_SOURCE = "Hsia et al., ISCA 2024, configurations of their tool (ScaleExplorer@562db98)"

_WORDS = 50_257

_EXPERTS, _ACTIVE = 16, 2

_DLRM_BATCH, _OTHER_BATCH = 65_536, 2_048

_BLOCK: tuple[int, int, int, int] = (4, 512, 2_048, 80)
"""Transformer blocks between a recommender's stacks: layers, width, inner width and tokens."""

_BATCH = 2_048
"""Batch size of Stable Diffusion 1 (model card of version 1-4, 2022)."""

_FITS = fits_in(Path(__file__).with_name("diffusion.fits.json"))


def _unet(name: str, latent: int, fit: str) -> TwoStreamsModel:
    """Build a U-Net with one unit of layers per residual block, including its attention.

    Its convolutions reach a far smaller share of the peak rate than the GEMMs of MAD-Max models,
    so ``flops_share`` is fitted.
    """
    layers = layers_of(f"sd-unet:latent={latent}")
    return TwoStreamsModel(
        name=name,
        units=tuple(_unit(list(some)) for _, some in groupby(layers, key=_block)),
        weight_bytes=2,
        batch=_BATCH,
        source="Rombach et al., 2022; the table of dse_evaluators.workloads.unet",
        flops_share=_FITS[fit].constants["flops_share"],
    )


def _block(layer: Layer) -> str:
    """Return the name of a layer's block: ``down0-1`` for layer ``down0-1-residual-first``."""
    return "-".join(layer.name.split("-")[:2])


def _unit(layers: list[Layer]) -> Unit:
    last = layers[-1]
    return Unit(
        stack="blocks",
        weights=float(sum(layer.weights for layer in layers)),
        operations=2.0 * sum(layer.macs for layer in layers),
        outputs=float(last.output_height * last.output_width * last.filters),
    )


def _dit(name: str, layers: int, width: int, latent: int, patch: int) -> TwoStreamsModel:
    """Build a DiT: blocks of attention and feed-forward, each modulated by the diffusion time.

    Each of the two parts has three modulation vectors: a shift, a scale and a gate.

    Source:
        Peebles, Xie: Scalable Diffusion Models with Transformers (DiT), ICCV 2023, section 3.
    """
    tokens = (latent // patch) ** 2
    modulation = 3.0 * width * width  # a shift, a scale and a gate, per sample instead of per token
    outputs = float(tokens * width)
    scores = 2.0 * tokens * tokens * width
    pair = tuple(
        Unit(
            stack="blocks",
            weights=weights + modulation,
            operations=2.0 * (weights * tokens + beside + modulation),
            outputs=outputs,
        )
        for weights, beside in ((4.0 * width * width, scores), (8.0 * width * width, 0.0))
    )
    return TwoStreamsModel(
        name=name,
        units=pair * layers,
        weight_bytes=2,
        batch=256,
        source="Peebles and Xie, ICCV 2023, table 1 and section 4",
    )


DIFFUSION: Mapping[str, TwoStreamsModel] = {
    "sd-unet-256": _unet("sd-unet-256", 32, "sd-unet-256"),
    "sd-unet-512": _unet("sd-unet-512", 64, "sd-unet-512"),
    "sd-unet-1024": _unet("sd-unet-1024", 128, "sd-unet-512"),
    "dit-b": _dit("dit-b", 12, 768, 32, 2),
    "dit-l": _dit("dit-l", 24, 1024, 32, 2),
    "dit-xl": _dit("dit-xl", 28, 1152, 32, 2),
    "dit-xl-512": _dit("dit-xl-512", 28, 1152, 64, 2),
}


def _mlp(stack: Literal["bottom", "top"], layers: int, width: int, experts: int = 1) -> list[Unit]:
    """Return the square layers of an MLP, with one tensor-parallel all-reduce for each pair.

    As in Megatron, the first layer of a pair is sharded by columns, the second by rows.
    """
    active = min(experts, _ACTIVE)
    return [
        Unit(
            stack=stack,
            weights=float(experts * width * width),
            operations=2.0 * active * width * width,
            outputs=float(width),
            sums_forward=place % 2 == 1,
            sums_backward=place % 2 == 0,
            experts=experts,
        )
        for place in range(layers)
    ]


def _blocks(layers: int, width: int, inner: int, tokens: int, experts: int = 1) -> tuple[Unit, ...]:
    """Return alternating attention and feed-forward units; only weighted GEMMs count."""
    active = min(experts, _ACTIVE)
    attention, forward = 4.0 * width * width, 2.0 * width * inner
    pair = (
        Unit(
            stack="blocks",
            weights=attention,
            operations=2.0 * attention * tokens,
            outputs=float(tokens * width),
        ),
        Unit(
            stack="blocks",
            weights=experts * forward,
            operations=2.0 * active * forward * tokens,
            outputs=float(tokens * width),
            experts=experts,
        ),
    )
    return pair * layers


def _dlrm(
    name: str,
    dense: tuple[int, int],
    tables: tuple[int, int, int, int],
    *,
    experts: int = 1,
    attends: bool = False,
) -> TwoStreamsModel:
    """Build a recommender: two MLP stacks of equal depth, joined with the embedding tables.

    With ``attends`` there are four transformer blocks between the stacks.
    """
    layers, width = dense
    count, rows, vector, pooled = tables
    bottom, top = _mlp("bottom", layers, width), _mlp("top", layers, width, experts)
    between = _blocks(*_BLOCK) if attends else ()
    return TwoStreamsModel(
        name=name,
        units=(*bottom, *between, *top),
        weight_bytes=4,
        batch=_DLRM_BATCH,
        source=_SOURCE,
        joins=len(bottom),
        table_weights=float(count * rows * vector),
        lookup_bytes=float(count * pooled * vector * 2),
        tables="mp",
    )


def _language(
    name: str, sizes: tuple[int, int, int, int], *, experts: int = 1, entries: int = _WORDS
) -> TwoStreamsModel:
    layers, width, inner, tokens = sizes
    return TwoStreamsModel(
        name=name,
        units=_blocks(layers, width, inner, tokens, experts),
        weight_bytes=2,
        batch=_OTHER_BATCH,
        source=_SOURCE,
        table_weights=float((entries + tokens) * width),
        lookup_bytes=2.0 * tokens * width * 2,
    )


def _vision(name: str, layers: int, width: int, inner: int, patch: int) -> TwoStreamsModel:
    """Build a vision transformer for images of 224 x 224 pixels with three channels."""
    tokens = (224 // patch) ** 2
    return _language(name, (layers, width, inner, tokens), entries=3 * patch * patch)


# Layers and width of a stack; tables, their rows, the width of a vector, lookups in a table.
_RECOMMENDERS = {
    "dlrm-a": ((10, 3994), (4096, 2_080_000, 94, 15)),
    "dlrm-a-small": ((10, 3994), (4096, 130_000, 94, 15)),
    "dlrm-f": ((4, 560), (64, 732_000_000, 256, 20)),
    "dlrm-i": ((22, 826), (512, 7_050_000, 92, 70)),
    "dlrm-i-small": ((22, 826), (512, 440_000, 92, 70)),
}

# Layers, width, inner width of the feed-forward part, tokens.
_LANGUAGE = {
    "gpt3-175b": (96, 12_288, 49_152, 2048),
    "llama-7b": (32, 4096, 10_924, 2048),
    "llama-13b": (40, 5120, 13_654, 2048),
    "llama-30b": (60, 6656, 17_750, 2048),
    "llama-65b": (80, 8192, 21_846, 2048),
    "llama2-70b": (80, 8192, 21_846, 4096),
    "llama2-70b-8k": (80, 8192, 21_846, 8192),
    "llama2-70b-16k": (80, 8192, 21_846, 16_384),
    "llama2-70b-32k": (80, 8192, 21_846, 32_768),
}

# Layers, width, inner width, side of a patch. The depths of ViT-H and DINOv2-B are those of the
# authors' tool and differ from their papers (32 and 12 layers).
_VISION = {
    "vit-l": (24, 1024, 4096, 16),
    "vit-h": (4, 1280, 5120, 16),
    "vit-10b": (32, 5120, 20_480, 14),
    "vit-25b": (36, 7680, 30_720, 14),
    "vit-60b": (48, 10_240, 40_960, 14),
    "vit-120b": (96, 10_240, 40_960, 14),
    "dinov2-s": (12, 384, 1536, 16),
    "dinov2-b": (18, 768, 3072, 16),
    "dinov2-l": (24, 1024, 4096, 16),
    "dinov2-g": (40, 1536, 6144, 16),
}

MODELS: Mapping[str, TwoStreamsModel] = {
    **{name: _dlrm(name, *sizes) for name, sizes in _RECOMMENDERS.items()},
    **{
        f"{name}-moe": _dlrm(f"{name}-moe", *_RECOMMENDERS[name], experts=_EXPERTS)
        for name in ("dlrm-a", "dlrm-a-small", "dlrm-i", "dlrm-i-small")
    },
    **{
        f"{name}-transformer": _dlrm(f"{name}-transformer", *_RECOMMENDERS[name], attends=True)
        for name in ("dlrm-a", "dlrm-a-small", "dlrm-i", "dlrm-i-small")
    },
    **{name: _language(name, sizes) for name, sizes in _LANGUAGE.items()},
    "gpt4-1.8t": _language("gpt4-1.8t", (120, 10_704, 42_816, 8192), experts=_EXPERTS),
    **{name: _vision(name, *sizes) for name, sizes in _VISION.items()},
    **DIFFUSION,
}


def model_of(name: str) -> TwoStreamsModel:
    """Return a built-in model by name, as a sequence of layer units and embedding tables.

    Raises:
        SpecError: there is no such model; the hint gives the nearest name.
    """
    return look_up_row("model", name, MODELS)
