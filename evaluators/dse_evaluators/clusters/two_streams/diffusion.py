"""Diffusion models: the U-Net of Stable Diffusion, and diffusion transformers (DiT)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from pathlib import Path

from dse_evaluators.clusters.two_streams.models import TwoStreamsModel, Unit
from dse_evaluators.fits import fits_in
from dse_evaluators.workloads.catalogue import layers_of
from dse_evaluators.workloads.layers import Layer

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
    told = 3.0 * width * width  # a shift, a scale and a gate, per sample instead of per token
    outputs = float(tokens * width)
    scores = 2.0 * tokens * tokens * width
    pair = tuple(
        Unit(
            stack="blocks",
            weights=weights + told,
            operations=2.0 * (weights * tokens + beside + told),
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
