"""Layer tables of diffusion models from the ``config.json`` that diffusers keeps with weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.diffusion_transformer import (
    DiffusionTransformer,
    diffusion_transformer,
)
from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.unet import Scene, UnetSizes, check_side, unet_table
from dse_evaluators.workloads.workload_text import (
    NumberKey,
    WorkloadFamily,
    WorkloadOptions,
    parse_keys,
)

CLASS = "_class_name"
"""Key of a config.json of diffusers that names the class of the model."""

_LARGEST = 4096
_ENTRY_HEADS = 8
_BLOCKS = ("down_block_types", "up_block_types")


def diffusion_family(content: Mapping[str, Any], label: str) -> WorkloadFamily:
    """Return the workload family of a diffusion model, for one denoising step of a latent.

    Its keys are ``latent``, the side of the latent image (by default ``sample_size``); ``words`` of
    a prompt; ``frames`` of a video.

    Args:
        content: the content of the config.json.
        label: name of the model for messages.

    Raises:
        SpecError: the class is unknown, a size is missing or invalid, or the model has layers that
            are not known here.
    """
    name = content.get(CLASS)
    if not isinstance(name, str) or name not in _CLASSES:
        problem = f"{label}: the class {name!r} is unknown"
        hint = f"{nearest(name, _CLASSES)}; or export the model to ONNX: workload: net.onnx"
        raise SpecError(problem, hint=hint)
    kind = _CLASSES[name]
    config = _Config(content, label)
    config.check(kind.plain)
    defaults = {"latent": config.number("sample_size", kind.side), **kind.data}
    keys = {key: NumberKey(least=1, most=_LARGEST, default=one) for key, one in defaults.items()}
    return WorkloadFamily(make=kind.prepare(config), keys=keys)


def diffusion_table(content: Mapping[str, Any], keys: Mapping[str, str], label: str) -> LayerTable:
    """Return the layers of a diffusion model for one denoising step of a latent image or video.

    Args:
        content: the content of the config.json.
        keys: values of the keys of :func:`diffusion_family`.
        label: name of the model for messages.

    Raises:
        SpecError: as :func:`diffusion_family`, or a key is unknown or out of range.
    """
    family = diffusion_family(content, label)
    text = f"{label}:" + ",".join(f"{key}={size}" for key, size in keys.items())
    return family.make(parse_keys(text.rstrip(":"), family.keys))


@dataclass(frozen=True, slots=True)
class _Config:
    """Keys of one config.json; those that a file leaves out have the defaults of diffusers."""

    content: Mapping[str, Any]
    label: str

    def check(self, plain: Mapping[str, tuple[object, ...]]) -> None:
        """Raise SpecError unless keys that would add other layers have their plain values."""
        for key, values in plain.items():
            found = self.content.get(key, values[0])
            if found not in values:
                hint = f"known: {values[0]!r}; or export the model to ONNX: workload: net.onnx"
                raise SpecError(f"{self.label}: {key} is {found!r}", hint=hint)

    def number(self, key: str, default: int | None = None) -> int:
        """Return a whole number from 1."""
        value = self.content.get(key)
        if value is None and default is not None:
            return default
        if type(value) is not int or value < 1:
            raise SpecError(
                f"{self.label}: {key} cannot be {value!r}", hint="a whole number from 1"
            )
        return value

    def numbers(
        self, key: str, default: list[int], *, levels: int | None = None
    ) -> tuple[int, ...]:
        """Return whole numbers from 1; one number stands for all ``levels``."""
        value = self.content.get(key, default)
        found = value if isinstance(value, list) else [value]
        if levels is not None and (value == default or not isinstance(value, list)):
            found = found[:1] * levels
        whole = all(type(one) is int and one > 0 for one in found)
        if not whole or not found or (levels is not None and len(found) != levels):
            hint = "a list of whole numbers from 1"
            if levels is not None:
                hint = f"a whole number from 1, or a list of {levels}"
            raise SpecError(f"{self.label}: {key} cannot be {value!r}", hint=hint)
        return tuple(found)

    def attends(self, key: str, kinds: Mapping[str, bool], levels: int) -> tuple[bool, ...]:
        """Return for each level, in the file's order, whether its type of block has attention."""
        attended, plain = kinds
        usual = [attended] * (levels - 1) + [plain]
        value = self.content.get(key, usual if key == _BLOCKS[0] else usual[::-1])
        found = value if isinstance(value, list) else []
        odd = next((one for one in found if one not in kinds), None)
        if odd is not None:
            raise SpecError(f"{self.label}: {key} has {odd!r}", hint=nearest(str(odd), kinds))
        if len(found) != levels:
            hint = f"a list of {levels}, as many as block_out_channels"
            raise SpecError(f"{self.label}: {key} cannot be {value!r}", hint=hint)
        return tuple(kinds[one] for one in found)


Make = Callable[[WorkloadOptions], LayerTable]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Class:
    """Class of diffusers: how to read its sizes, its plain keys, and defaults of its data."""

    prepare: Callable[[_Config], Make]
    plain: Mapping[str, tuple[object, ...]]
    side: int = 64
    data: Mapping[str, int] = field(default_factory=dict)


def _scene_of(options: WorkloadOptions) -> Scene:
    found = options.numbers
    return Scene(side=found["latent"], words=found.get("words", 1), frames=found.get("frames", 1))


def _prepare_unet(sizes: UnetSizes) -> Make:
    def make(options: WorkloadOptions) -> LayerTable:
        check_side(sizes, options.numbers["latent"], options.text)
        return unet_table(sizes, _scene_of(options))

    return make


_WIDTHS = [320, 640, 1280, 1280]
_DOWN = {"CrossAttnDownBlock2D": True, "DownBlock2D": False}
_UP = {"CrossAttnUpBlock2D": True, "UpBlock2D": False}
_DOWN_VIDEO = {"CrossAttnDownBlock3D": True, "DownBlock3D": False}
_UP_VIDEO = {"CrossAttnUpBlock3D": True, "UpBlock3D": False}


def _read_images(config: _Config) -> Make:
    sizes = _unet_sizes(config, (_DOWN, _UP), words=1280)
    levels = len(sizes.widths)
    named = config.content.get("num_attention_heads") is not None
    # Files of images name the number of heads `attention_head_dim`, as diffusers does.
    heads = config.numbers(
        "num_attention_heads" if named else "attention_head_dim", [8], levels=levels
    )
    for width, count in zip(sizes.widths, heads, strict=True):
        _check_multiple(config, width, count, f"the number of heads, {count}")
    added = config.content.get("addition_embed_type") == "text_time"
    sizes = replace(
        sizes,
        heads=heads,
        depths=config.numbers("transformer_layers_per_block", [1], levels=levels),
        added=config.number("projection_class_embeddings_input_dim") if added else 0,
    )
    return _prepare_unet(sizes)


def _read_videos(config: _Config) -> Make:
    sizes = _unet_sizes(config, (_DOWN_VIDEO, _UP_VIDEO), words=1024)
    head = config.number("attention_head_dim", 64)
    for width in sizes.widths:
        _check_multiple(config, width, head, f"attention_head_dim, {head}")
    heads = tuple(width // head for width in sizes.widths)
    sizes = replace(sizes, heads=heads, entry_heads=_ENTRY_HEADS, entry_head_width=head)
    return _prepare_unet(sizes)


def _check_multiple(config: _Config, width: int, divisor: int, what: str) -> None:
    if width % divisor:
        problem = f"{config.label}: block_out_channels has {width}"
        raise SpecError(problem, hint=f"a multiple of {what}")


def _unet_sizes(
    config: _Config, kinds: tuple[Mapping[str, bool], Mapping[str, bool]], *, words: int
) -> UnetSizes:
    """Return the sizes of a U-Net, whose heads are not known yet; ``words`` is a default."""
    widths = config.numbers("block_out_channels", _WIDTHS)
    levels = len(widths)
    down, up = (config.attends(key, one, levels) for key, one in zip(_BLOCKS, kinds, strict=True))
    return UnetSizes(
        widths=widths,
        blocks=config.numbers("layers_per_block", [2], levels=levels),
        heads=(1,) * levels,
        depths=(1,) * levels,
        attends_down=down,
        attends_up=tuple(reversed(up)),
        word_width=config.number("cross_attention_dim", words),
        inputs=config.number("in_channels", 4),
        outputs=config.number("out_channels", 4),
    )


def _read_classes(config: _Config) -> Make:
    return _read_transformer(config, {"classes": config.number("num_embeds_ada_norm", 1000)})


def _read_text(config: _Config) -> Make:
    conditioned = config.content.get("use_additional_conditions")
    if conditioned is None:
        conditioned = config.number("sample_size", 128) == 128
    width = config.number("caption_channels")
    return _read_transformer(config, {"word_width": width, "conditioned": bool(conditioned)})


def _read_transformer(config: _Config, other: Mapping[str, Any]) -> Make:
    inputs = config.number("in_channels", 4)
    model = DiffusionTransformer(
        layers=config.number("num_layers", 28),
        heads=config.number("num_attention_heads", 16),
        head=config.number("attention_head_dim", 72),
        patch=config.number("patch_size", 2),
        inputs=inputs,
        outputs=config.number("out_channels", 8 if "word_width" in other else inputs),
        **other,
    )

    def make(options: WorkloadOptions) -> LayerTable:
        scene = _scene_of(options)
        if scene.side % model.patch:
            problem = f"in the workload {options.text!r}, latent is {scene.side}"
            raise SpecError(problem, hint=f"a multiple of the patch, {model.patch}")
        return diffusion_transformer(model, scene.side, scene.words)

    return make


_UNET_PLAIN: Mapping[str, tuple[object, ...]] = {
    "mid_block_type": ("UNetMidBlock2DCrossAttn",),
    "only_cross_attention": (False, None),
    "dual_cross_attention": (False, None),
    "encoder_hid_dim_type": (None,),
    "class_embed_type": (None,),
    "num_class_embeds": (None,),
    "addition_embed_type": (None, "text_time"),
    "reverse_transformer_layers_per_block": (None,),
    "cross_attention_norm": (None,),
    "attention_type": ("default", None),
    "time_embedding_type": ("positional", None),
    "time_embedding_dim": (None,),
    "time_cond_proj_dim": (None,),
    "resnet_time_scale_shift": ("default", None),
    "conv_in_kernel": (3, None),
    "conv_out_kernel": (3, None),
}

_CLASSES: Mapping[str, _Class] = {
    "UNet2DConditionModel": _Class(prepare=_read_images, plain=_UNET_PLAIN, data={"words": 77}),
    "UNet3DConditionModel": _Class(
        prepare=_read_videos,
        plain={"time_cond_proj_dim": (None,), "num_attention_heads": (None,)},
        data={"words": 77, "frames": 16},
    ),
    "DiTTransformer2DModel": _Class(
        prepare=_read_classes,
        plain={"norm_type": ("ada_norm_zero",), "attention_bias": (True,)},
        side=32,
    ),
    "Transformer2DModel": _Class(
        prepare=_read_classes,
        plain={
            "norm_type": ("ada_norm_zero",),
            "attention_bias": (True,),
            "cross_attention_dim": (None,),
            "num_vector_embeds": (None,),
            "activation_fn": ("gelu-approximate",),
        },
        side=32,
    ),
    "PixArtTransformer2DModel": _Class(
        prepare=_read_text,
        plain={"norm_type": ("ada_norm_single",), "attention_bias": (True,)},
        side=128,
        data={"words": 120},
    ),
}
