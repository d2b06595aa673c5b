"""Layer tables of denoising U-Nets on latent images and videos, for one denoising step.

Source:
    Rombach et al.: High-Resolution Image Synthesis with Latent Diffusion Models, 2022, section 3
    and appendix, for images; Wang et al.: ModelScope Text-to-Video Technical Report, 2023, section
    3, for videos. The classes ``UNet2DConditionModel`` and ``UNet3DConditionModel`` of diffusers
    0.42 (Apache-2.0) have these layers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable, add_biases, join_tables
from dse_evaluators.workloads.layers import Layer, Prunes, convolution, product
from dse_evaluators.workloads.transformer import TokenBatch, attention
from dse_evaluators.workloads.workload_text import NumberKey, WorkloadFamily, WorkloadOptions

_WIDENED = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class UnetSizes:
    """Sizes of a U-Net: a tuple has an entry for each level, from the largest image down.

    A level has ``blocks`` residual blocks on the downward path and one more on the upward path.
    ``depths`` are the transformer layers of an attention block. ``added`` is the width of further
    embeddings (size of the picture, pooled text), 0 without. A model of videos also has layers
    along the frames after each block; ``entry_heads`` are the heads of its first such layer.
    """

    widths: tuple[int, ...]
    blocks: tuple[int, ...]
    heads: tuple[int, ...]
    depths: tuple[int, ...]
    attends_down: tuple[bool, ...]
    attends_up: tuple[bool, ...]
    word_width: int
    inputs: int = 4
    outputs: int = 4
    added: int = 0
    entry_heads: int = 0
    entry_head_width: int = 0

    @property
    def is_video(self) -> bool:
        """Whether the model has layers along the frames of a video."""
        return self.entry_heads > 0

    @property
    def time(self) -> int:
        """Width of the embedding of the time step."""
        return _WIDENED * self.widths[0]

    @property
    def halvings(self) -> int:
        """Factor between the sides of the largest and of the smallest image."""
        return 1 << (len(self.widths) - 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """Data of one denoising step: frames of ``side`` x ``side`` latent pixels, and a prompt."""

    side: int
    words: int = 77
    frames: int = 1

    @property
    def pixels(self) -> int:
        """Pixels of a frame."""
        return self.side * self.side

    def scaled(self, factor: float) -> Scene:
        """Return the scene with a side that is ``factor`` times as long."""
        return replace(self, side=int(self.side * factor))


SD1 = UnetSizes(
    widths=(320, 640, 1280, 1280),
    blocks=(2, 2, 2, 2),
    heads=(8, 8, 8, 8),
    depths=(1, 1, 1, 1),
    attends_down=(True, True, True, False),
    attends_up=(True, True, True, False),
    word_width=768,
)
"""Published configuration of Stable Diffusion 1."""


def unet(side: int = 64) -> LayerTable:
    """Return the layer table of a U-Net for a square latent image.

    The ``side`` of the latent image is a multiple of 8. The side of the generated picture is eight
    times that of the latent image. The keys and values of the text are recomputed in each step, as
    in the published code.
    """
    return unet_table(SD1, Scene(side=side))


def unet_table(sizes: UnetSizes, scene: Scene) -> LayerTable:
    """Return the layer table of a U-Net for one denoising step.

    Args:
        sizes: sizes of the model.
        scene: the latent images; the side is a multiple of ``sizes.halvings``.
    """
    first, time = sizes.widths[0], sizes.time
    parts = [
        add_biases(product("time1", 1, first, time), product("time2", 1, time, time)),
        *_embed_conditions(sizes),
        add_biases(_square("conv-in", scene, 3, (sizes.inputs, first))),
    ]
    if sizes.is_video:
        inner = sizes.entry_heads * sizes.entry_head_width
        entry = ("entry-temporal", scene, (first, inner), sizes.entry_heads)
        parts.append(_build_temporal_attention(*entry))
    skips = [first]
    last = len(sizes.widths) - 1
    for level, width in enumerate(sizes.widths):
        for block in range(sizes.blocks[level]):
            channels = sizes.widths[max(level - 1, 0)] if block == 0 else width
            parts += _stage(f"down{level}-{block}", sizes, level, scene, channels)
            skips.append(width)
        if level < last:
            scene = scene.scaled(0.5)
            halve = _square(f"down{level}-halve", scene, 3, (width, width), stride=2)
            parts.append(add_biases(halve))
            skips.append(width)
    width = sizes.widths[-1]
    parts += [
        *_residual("middle-0", sizes, scene, width, width),
        *_attend("middle-1", sizes, last, scene),
        *_residual("middle-2", sizes, scene, width, width),
    ]
    return join_tables(*parts, *_upwards(sizes, scene, skips))


def _embed_conditions(sizes: UnetSizes) -> list[LayerTable]:
    if not sizes.added:
        return []
    time = sizes.time
    return [add_biases(product("added1", 1, sizes.added, time), product("added2", 1, time, time))]


def _upwards(sizes: UnetSizes, scene: Scene, skips: list[int]) -> list[LayerTable]:
    """Build the upsampling path; each block also reads a skip connection, in reverse order."""
    parts: list[LayerTable] = []
    channels = sizes.widths[-1]
    left = iter(reversed(skips))
    for level in reversed(range(len(sizes.widths))):
        for block in range(sizes.blocks[level] + 1):
            name = f"up{level}-{block}"
            parts += _stage(name, sizes, level, scene, channels + next(left), is_up=True)
            channels = sizes.widths[level]
        if level:
            scene = scene.scaled(2)
            parts.append(add_biases(_square(f"up{level}-double", scene, 3, (channels, channels))))
    last = _square("conv-out", scene, 3, (channels, sizes.outputs))
    return [*parts, _norm(channels), add_biases(last)]


def _stage(
    name: str, sizes: UnetSizes, level: int, scene: Scene, channels: int, *, is_up: bool = False
) -> list[LayerTable]:
    """Build a residual block of a resolution level, with attention where the level has it."""
    width = sizes.widths[level]
    block = _residual(f"{name}-residual", sizes, scene, channels, width)
    attends = (sizes.attends_up if is_up else sizes.attends_down)[level]
    return [*block, *(_attend(f"{name}-attention", sizes, level, scene) if attends else [])]


def _residual(
    name: str, sizes: UnetSizes, scene: Scene, channels: int, filters: int
) -> list[LayerTable]:
    """Build a residual block: convolution, time embedding, convolution, and a shortcut if needed.

    The 1 x 1 convolution of the shortcut is needed only if the width changes. In a model of videos
    four convolutions along the frames follow.
    """
    shortcut = _square(f"{name}-shortcut", scene, 1, (channels, filters))
    step = product(f"{name}-time", scene.frames, sizes.time, filters, prunes="outputs")
    block = join_tables(
        _norm(channels),
        add_biases(_square(f"{name}-first", scene, 3, (channels, filters), prunes="outputs")),
        add_biases(step),
        _norm(filters),
        add_biases(_square(f"{name}-second", scene, 3, (filters, filters), prunes="inputs")),
        add_biases(*([shortcut] if channels != filters else [])),
    )
    if not sizes.is_video:
        return [block]
    along = [_convolve_frames(f"{name}-temporal{place}", scene, filters) for place in range(4)]
    return [block, *(join_tables(_norm(filters), add_biases(one)) for one in along)]


def _square(
    name: str,
    scene: Scene,
    window: int,
    ends: tuple[int, int],
    *,
    stride: int = 1,
    prunes: Prunes = "neither",
) -> Layer:
    """Build a square convolution on each frame.

    Frames lie below one another in one image, whose rows between two frames are counted once.
    ``prunes`` names the side that structured pruning may narrow.
    """
    layer = convolution(name, scene.side, window, *ends, stride=stride)
    return replace(
        layer,
        height=(scene.side * scene.frames - 1) * stride + window,
        pruned_inputs=prunes == "inputs",
        pruned_outputs=prunes == "outputs",
    )


def _convolve_frames(name: str, scene: Scene, width: int) -> Layer:
    """Build a convolution over three frames of each pixel."""
    return Layer(
        name=name,
        height=scene.frames + 2,
        width=scene.pixels,
        filter_height=3,
        filter_width=1,
        channels=width,
        filters=width,
        pruned_inputs=False,
        pruned_outputs=False,
    )


def _attend(name: str, sizes: UnetSizes, level: int, scene: Scene) -> list[LayerTable]:
    """Build the attention of a level over pixels, and for videos also that over frames."""
    width, heads = sizes.widths[level], sizes.heads[level]
    parts = [_build_attention(name, sizes, level, scene)]
    if sizes.is_video:
        ends = (width, width)
        parts.append(_build_temporal_attention(f"{name}-temporal", scene, ends, heads))
    return parts


def _build_attention(name: str, sizes: UnetSizes, level: int, scene: Scene) -> LayerTable:
    """Build transformer layers on the pixels of each frame.

    The pixels attend to one another and then to the text.
    """
    width, rows = sizes.widths[level], scene.pixels * scene.frames
    ends = (add_biases(product(f"{name}-{end}", rows, width, width)) for end in ("in", "out"))
    layers = []
    for place in range(sizes.depths[level]):
        label = name if sizes.depths[level] == 1 else f"{name}-{place}"
        heads = sizes.heads[level]
        text = (
            product(f"{label}-text-query", rows, width, width),
            product(f"{label}-text-kv", scene.words * scene.frames, sizes.word_width, 2 * width),
        )
        layers += [
            _norm(width),
            _bare(product(f"{label}-self-qkv", rows, width, 3 * width)),
            _attends(f"{label}-self", scene, (width, heads), scene.pixels),
            _norm(width),
            _bare(*text),
            _attends(f"{label}-text", scene, (width, heads), scene.words),
            *_feed(label, rows, width),
        ]
    return join_tables(_norm(width), next(ends), *layers, next(ends))


def _attends(name: str, scene: Scene, ends: tuple[int, int], context: int) -> LayerTable:
    width, heads = ends
    tokens = TokenBatch(fresh=scene.pixels, context=context, batch=scene.frames)
    return join_tables(
        _bare(*attention(name, (heads, heads), width // heads, tokens)),
        add_biases(product(f"{name}-project", scene.pixels * scene.frames, width, width)),
    )


def _build_temporal_attention(
    name: str, scene: Scene, ends: tuple[int, int], heads: int
) -> LayerTable:
    """Build a transformer layer along the frames of each pixel, with self-attention twice.

    ``ends`` are the widths of the feature map and of the layer.
    """
    channels, width = ends
    rows = scene.pixels * scene.frames
    tokens = TokenBatch(fresh=scene.frames, context=scene.frames, batch=scene.pixels)
    parts = [_norm(channels), add_biases(product(f"{name}-in", rows, channels, width))]
    for label in (f"{name}-first", f"{name}-second"):
        parts += [
            _norm(width),
            _bare(product(f"{label}-qkv", rows, width, 3 * width)),
            _bare(*attention(label, (heads, heads), width // heads, tokens)),
            add_biases(product(f"{label}-project", rows, width, width)),
        ]
    out = add_biases(product(f"{name}-out", rows, width, channels))
    return join_tables(*parts, *_feed(name, rows, width), out)


def _feed(name: str, rows: int, width: int) -> tuple[LayerTable, LayerTable]:
    """Build a gated feed-forward network with its norm."""
    inner = _WIDENED * width
    return _norm(width), add_biases(
        product(f"{name}-up", rows, width, 2 * inner, prunes="outputs"),
        product(f"{name}-down", rows, inner, width, prunes="inputs"),
    )


def _norm(channels: int) -> LayerTable:
    """Return a layer table of only a norm's parameters: a gain and a bias per channel."""
    return LayerTable(layers=(), others=2 * channels)


def _bare(*layers: Layer) -> LayerTable:
    """Return a layer table of these layers without biases."""
    return LayerTable(layers=layers)


def check_side(sizes: UnetSizes, side: int, where: str) -> None:
    """Raise SpecError unless a U-Net can halve an image of this side at each of its levels.

    Args:
        sizes: sizes of the model.
        side: side of the latent image.
        where: the workload, for the message.
    """
    if side % sizes.halvings:
        times = len(sizes.widths) - 1
        raise SpecError(
            f"in the workload {where!r}, latent is {side}",
            hint=f"it is halved {_TIMES.get(times, times)} times: a multiple of {sizes.halvings}",
        )


_TIMES = {1: "one", 2: "two", 3: "three", 4: "four"}


def _build_unet(options: WorkloadOptions) -> LayerTable:
    side = options.numbers["latent"]
    check_side(SD1, side, options.text)
    return unet(side)


UNET = WorkloadFamily(
    make=_build_unet, keys={"latent": NumberKey(least=SD1.halvings, most=512, default=64)}
)
"""Family of the U-Net by the side of its latent image: ``sd-unet:latent=64``."""
