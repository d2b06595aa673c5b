"""Layer table of the U-Net of Stable Diffusion 1, for one denoising step of a latent image.

Source:
    Rombach et al.: High-Resolution Image Synthesis with Latent Diffusion Models, 2022, section 3
    and appendix; sizes of the published configuration of version 1.
"""

from __future__ import annotations

from dataclasses import replace

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable, add_biases, join_tables
from dse_evaluators.workloads.layers import Layer, Prunes, convolution, product
from dse_evaluators.workloads.transformer import TokenBatch, attention
from dse_evaluators.workloads.workload_text import NumberKey, WorkloadFamily, WorkloadOptions

_WIDTHS = (320, 640, 1280, 1280)
"""Channels of each level; all levels but the last have attention and halve the image after it."""
_BLOCKS = 2
"""Blocks of a level on the downward path; the upward path has one more."""
_HEADS = 8
_WORDS, _WORD = 77, 768
"""Number of tokens of the text prompt, and the width of their embeddings."""
_TIME = 1280
_LATENT = 4
_WIDENED = 4
_HALVINGS = 2 ** (len(_WIDTHS) - 1)


def unet(side: int = 64) -> LayerTable:
    """Return the layer table of a U-Net for a square latent image.

    The ``side`` of the latent image is a multiple of 8. The side of the generated picture is eight
    times that of the latent image. The keys and values of the text are recomputed in each step, as
    in the published code.
    """
    first = _WIDTHS[0]
    parts = [
        add_biases(product("time1", 1, first, _TIME), product("time2", 1, _TIME, _TIME)),
        add_biases(_square("conv-in", side, 3, (_LATENT, first))),
    ]
    skips = [first]
    for level, width in enumerate(_WIDTHS):
        for block in range(_BLOCKS):
            channels = _WIDTHS[max(level - 1, 0)] if block == 0 else width
            parts += _stage(f"down{level}-{block}", level, side, channels)
            skips.append(width)
        if level < len(_WIDTHS) - 1:
            side //= 2
            parts.append(
                add_biases(_square(f"down{level}-halve", side, 3, (width, width), stride=2))
            )
            skips.append(width)
    parts += [
        _residual("middle-0", side, width, width),
        _build_attention("middle-1", side, width),
        _residual("middle-2", side, width, width),
    ]
    return join_tables(*parts, *_upwards(side, skips))


def _upwards(side: int, skips: list[int]) -> list[LayerTable]:
    """Build the upsampling path; each block also reads a skip connection, in reverse order."""
    parts: list[LayerTable] = []
    channels = _WIDTHS[-1]
    left = iter(reversed(skips))
    for level in reversed(range(len(_WIDTHS))):
        for block in range(_BLOCKS + 1):
            parts += _stage(f"up{level}-{block}", level, side, channels + next(left))
            channels = _WIDTHS[level]
        if level:
            side *= 2
            parts.append(add_biases(_square(f"up{level}-double", side, 3, (channels, channels))))
    last = _square("conv-out", side, 3, (channels, _LATENT))
    return [*parts, _norm(channels), add_biases(last)]


def _stage(name: str, level: int, side: int, channels: int) -> list[LayerTable]:
    """Build a residual block of a resolution level, with attention on all levels but the last."""
    width = _WIDTHS[level]
    block = _residual(f"{name}-residual", side, channels, width)
    attends = level < len(_WIDTHS) - 1
    return [block, _build_attention(f"{name}-attention", side, width)] if attends else [block]


def _residual(name: str, side: int, channels: int, filters: int) -> LayerTable:
    """Build a residual block: convolution, time embedding, convolution, and a shortcut if needed.

    The 1 x 1 convolution of the shortcut is needed only if the width changes.
    """
    shortcut = _square(f"{name}-shortcut", side, 1, (channels, filters))
    return join_tables(
        _norm(channels),
        add_biases(_square(f"{name}-first", side, 3, (channels, filters), prunes="outputs")),
        add_biases(product(f"{name}-time", 1, _TIME, filters, prunes="outputs")),
        _norm(filters),
        add_biases(_square(f"{name}-second", side, 3, (filters, filters), prunes="inputs")),
        add_biases(*([shortcut] if channels != filters else [])),
    )


def _square(
    name: str,
    side: int,
    window: int,
    ends: tuple[int, int],
    *,
    stride: int = 1,
    prunes: Prunes = "neither",
) -> Layer:
    """Build a square convolution; ``prunes`` names the side that structured pruning may narrow."""
    return replace(
        convolution(name, side, window, *ends, stride=stride),
        pruned_inputs=prunes == "inputs",
        pruned_outputs=prunes == "outputs",
    )


def _build_attention(name: str, side: int, width: int) -> LayerTable:
    """Build a transformer block on the pixels of a feature map.

    The pixels attend to one another and then to the text.
    """
    pixels = side * side
    inner = _WIDENED * width
    return join_tables(
        _norm(width),
        add_biases(product(f"{name}-in", pixels, width, width)),
        _norm(width),
        _bare(product(f"{name}-self-qkv", pixels, width, 3 * width)),
        _attends(f"{name}-self", width, pixels, pixels),
        _norm(width),
        _bare(
            product(f"{name}-text-query", pixels, width, width),
            product(f"{name}-text-kv", _WORDS, _WORD, 2 * width),
        ),
        _attends(f"{name}-text", width, pixels, _WORDS),
        _norm(width),
        add_biases(
            product(f"{name}-up", pixels, width, 2 * inner, prunes="outputs"),
            product(f"{name}-down", pixels, inner, width, prunes="inputs"),
        ),
        add_biases(product(f"{name}-out", pixels, width, width)),
    )


def _attends(name: str, width: int, pixels: int, context: int) -> LayerTable:
    tokens = TokenBatch(fresh=pixels, context=context)
    return join_tables(
        _bare(*attention(name, (_HEADS, _HEADS), width // _HEADS, tokens)),
        add_biases(product(f"{name}-project", pixels, width, width)),
    )


def _norm(channels: int) -> LayerTable:
    """Return a layer table of only a norm's parameters: a gain and a bias per channel."""
    return LayerTable(layers=(), others=2 * channels)


def _bare(*layers: Layer) -> LayerTable:
    """Return a layer table of these layers without biases."""
    return LayerTable(layers=layers)


def _build_unet(options: WorkloadOptions) -> LayerTable:
    side = options.numbers["latent"]
    if side % _HALVINGS:
        raise SpecError(
            f"in the workload {options.text!r}, latent is {side}",
            hint=f"it is halved three times: a multiple of {_HALVINGS}",
        )
    return unet(side)


UNET = WorkloadFamily(
    make=_build_unet, keys={"latent": NumberKey(least=_HALVINGS, most=512, default=64)}
)
"""Family of the U-Net by the side of its latent image: ``sd-unet:latent=64``."""
