"""Sizes and features of decoders with rotary positions, by family and ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dse.errors import SpecError
from dse_evaluators.workloads.own.families.config_values import Activation, ConfigValues
from dse_evaluators.workloads.own.families.rotary_positions import RotaryPositions

_GLOBAL, _SLIDING = "full_attention", "sliding_attention"


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderFamily:
    """Features that distinguish the decoders of a family, apart from their sizes.

    Attributes:
        biases: ``none``; ``inputs``: queries, keys and values have biases; ``option``: all
            projections have them if ``attention_bias`` is true.
        window: layers whose attention slides: ``none``, ``all``, ``option`` (``all`` if
            ``use_sliding_window``), ``after`` (from ``max_window_layers``), ``before`` (every
            second layer before it), ``pattern`` (all but every n-th one).
        pattern: the n of ``pattern``, unless ``sliding_window_pattern`` states it.
        sliding_window: positions in the window, if ``config.json`` does not state them.
        head_width: width of a head, if ``config.json`` does not state it; 0: hidden size / heads.
        head_norms: whether queries and keys are normalized before the rotation.
        post_norms: whether the results of attention and MLP are normalized, too.
        is_gemma: whether norms multiply by 1 + weight, and embeddings by the root of their width.
        fused: whether q, k and v, and gate and up, are one projection each.
        activation: activation function, if ``config.json`` does not state it.
        caps: soft caps of attention scores and of logits, if ``config.json`` does not state them.
        theta: base of the rotary frequencies, if ``config.json`` does not state it.
        eps: constant of the norms, if ``config.json`` does not state it.
        experts: names of the routed MLP and its gate, up and down projections; none if dense.
    """

    biases: str = "none"
    window: str = "none"
    pattern: int = 2
    sliding_window: int | None = 4096
    head_width: int = 0
    head_norms: bool = False
    post_norms: bool = False
    is_gemma: bool = False
    fused: bool = False
    activation: str = "silu"
    caps: tuple[float | None, float | None] = (None, None)
    theta: float = 10_000.0
    eps: float = 1e-6
    experts: tuple[str, ...] = ()


_GATED = ("gate_proj", "up_proj", "down_proj")
_GEMMA: Mapping[str, Any] = {
    "biases": "option",
    "head_width": 256,
    "is_gemma": True,
    "activation": "gelu_pytorch_tanh",
}

DECODERS: Mapping[str, DecoderFamily] = {
    "llama": DecoderFamily(biases="option"),
    "mistral": DecoderFamily(window="all"),
    "qwen2": DecoderFamily(biases="inputs", window="after"),
    "qwen3": DecoderFamily(biases="option", window="after", head_width=128, head_norms=True),
    "phi3": DecoderFamily(window="all", sliding_window=None, fused=True, eps=1e-5),
    "gemma": DecoderFamily(**_GEMMA),
    "gemma2": DecoderFamily(**_GEMMA, window="pattern", post_norms=True, caps=(50.0, 30.0)),
    "gemma3_text": DecoderFamily(
        **_GEMMA, window="pattern", pattern=6, post_norms=True, head_norms=True, theta=1e6
    ),
    "mixtral": DecoderFamily(
        window="all",
        sliding_window=None,
        theta=1e6,
        eps=1e-5,
        experts=("block_sparse_moe", "w1", "w3", "w2"),
    ),
    "qwen2_moe": DecoderFamily(biases="inputs", window="before", experts=("mlp", *_GATED)),
    "qwen3_moe": DecoderFamily(
        biases="option", window="option", head_norms=True, experts=("mlp", *_GATED)
    ),
}
"""Decoders by ``model_type``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedConfig:
    """Sizes of the routed experts of a layer.

    Attributes:
        names: names of the routed MLP and its gate, up and down projections.
        experts: number of experts.
        picked: number of experts that a token is routed to.
        width: hidden width of an expert.
        shared_width: hidden width of the expert that every token passes; 0 if there is none.
        is_normalized: whether the weights of the picked experts are scaled to the sum 1.
        layers: layers with routed experts; the others have one MLP.
    """

    names: tuple[str, ...]
    experts: int
    picked: int
    width: int
    shared_width: int
    is_normalized: bool
    layers: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecoderConfig:
    """Sizes and features of a decoder.

    ``windows`` has the attention window of each layer, ``positions`` the rotary positions of
    layers without (first) and with a window, ``scale`` the factor of the attention scores.
    """

    family: DecoderFamily
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    heads: int
    key_value_heads: int
    head_width: int
    eps: float
    activation: Activation
    windows: tuple[int | None, ...]
    positions: tuple[RotaryPositions, RotaryPositions]
    scale: float
    attention_cap: float | None
    logit_cap: float | None
    is_tied: bool
    input_bias: bool
    output_bias: bool
    mlp_bias: bool
    routed: RoutedConfig | None

    @staticmethod
    def of(values: ConfigValues) -> DecoderConfig:
        """Read the sizes and features of a decoder.

        Args:
            values: the content of ``config.json``.

        Raises:
            SpecError: a size is missing or not valid, or a feature is not implemented.
        """
        name = str(values.values.get("model_type"))
        family = DECODERS[name]
        heads, hidden = values.size("num_attention_heads"), values.size("hidden_size")
        shared = values.size("num_key_value_heads", heads)
        width = values.size("head_dim", family.head_width or max(hidden // heads, 1), most=2**14)
        _check_heads(heads, shared, width)
        act = "hidden_activation" if values.values.get("hidden_activation") else "hidden_act"
        options = _attention_options(values, name, width)
        return DecoderConfig(
            family=family,
            vocab_size=values.size("vocab_size"),
            hidden_size=hidden,
            intermediate_size=values.size("intermediate_size"),
            heads=heads,
            key_value_heads=shared,
            head_width=width,
            eps=values.number("rms_norm_eps", family.eps),
            activation=values.activation(act, family.activation),
            windows=_windows(values, family),
            positions=_positions(values, family, width),
            is_tied=values.flag("tie_word_embeddings", usual=family.is_gemma),
            mlp_bias=name == "llama" and values.flag("mlp_bias", usual=False),
            routed=_routed(values, family),
            **options,
        )


def _attention_options(values: ConfigValues, name: str, width: int) -> dict[str, Any]:
    """Return the biases, scale and soft caps of attention."""
    family = DECODERS[name]
    values.refuse("use_bidirectional_attention")
    caps: list[float | None] = [None, None]
    scale = float(width)
    if family.post_norms:
        scale = values.number("query_pre_attn_scalar", 256.0)
        caps = [
            values.optional_number(key, usual)
            for key, usual in zip(
                ("attn_logit_softcapping", "final_logit_softcapping"), family.caps, strict=True
            )
        ]
        if family.head_norms:
            values.refuse("attn_logit_softcapping")
    option = family.biases == "option" and values.flag("attention_bias", usual=False)
    inputs = family.biases == "inputs" and values.flag("qkv_bias", usual=True)
    return {
        "scale": scale**-0.5,
        "attention_cap": caps[0],
        "logit_cap": caps[1],
        "input_bias": option or inputs,
        "output_bias": option,
    }


def _check_heads(heads: int, shared: int, width: int) -> None:
    if heads % shared or width % 2 or heads * width > 2**24:
        raise SpecError(
            f"config.json: {heads} heads of width {width} do not share {shared} key/value heads",
            hint="num_key_value_heads divides num_attention_heads; head_dim is even",
        )


def _windows(values: ConfigValues, family: DecoderFamily) -> tuple[int | None, ...]:
    """Return the attention window of each layer; ``None`` for attention to all earlier tokens."""
    layers = values.count("num_hidden_layers")
    uses = family.window in ("all", "pattern") or values.flag("use_sliding_window", usual=False)
    window = values.window("sliding_window", family.sliding_window) if uses else None
    if family.window == "none" or window is None:
        return (None,) * layers
    kinds = values.values.get("layer_types")
    if kinds is None or family.window in ("all", "option"):
        kinds = [_SLIDING if _slides(values, family, place) else _GLOBAL for place in range(layers)]
    known = (_GLOBAL, _SLIDING)
    if not isinstance(kinds, list) or len(kinds) != layers or any(k not in known for k in kinds):
        raise SpecError(
            f"config.json: layer_types is {kinds!r:.80}",
            hint=f"{layers} times {_GLOBAL} or {_SLIDING}",
        )
    return tuple(window if kind == _SLIDING else None for kind in kinds)


def _slides(values: ConfigValues, family: DecoderFamily, place: int) -> bool:
    match family.window:
        case "after":
            return place >= values.size("max_window_layers", 28, least=0)
        case "before":
            return place % 2 == 0 and place < values.size("max_window_layers", 28, least=0)
        case "pattern":
            return (place + 1) % values.size("sliding_window_pattern", family.pattern) != 0
        case _:
            return True


def _positions(
    values: ConfigValues, family: DecoderFamily, width: int
) -> tuple[RotaryPositions, RotaryPositions]:
    """Return the rotary positions of layers without and with an attention window."""
    theta = values.number("rope_theta", family.theta)
    given = values.mapping("rope_parameters") or values.mapping("rope_scaling")
    if family.fused and "yarn" in (given.get("rope_type"), given.get("type")):
        hint = "state the factors of the frequencies, as longrope"
        raise SpecError("config.json: yarn is not supported for phi3", hint=hint)
    nested = ConfigValues(given)
    is_split = family.pattern > 2  # local and global layers differ in their frequencies
    if not is_split:
        plain = RotaryPositions.of(values, given, width, theta)
        return plain, plain
    if _GLOBAL in given or _SLIDING in given:
        both = nested.mapping(_GLOBAL), nested.mapping(_SLIDING)
    else:
        both = given, {}
    local = values.number("rope_local_base_freq", 10_000.0)
    return (
        RotaryPositions.of(values, both[0], width, theta),
        RotaryPositions.of(values, both[1], width, local),
    )


def _routed(values: ConfigValues, family: DecoderFamily) -> RoutedConfig | None:
    if not family.experts:
        return None
    is_mixtral = family.experts[0] != "mlp"
    has_local = is_mixtral or "num_experts" not in values.values
    experts = values.count("num_local_experts" if has_local else "num_experts")
    layers = range(values.count("num_hidden_layers"))
    step = values.size("decoder_sparse_step", 1)
    dense = values.values.get("mlp_only_layers") or []
    if not isinstance(dense, list):
        raise SpecError(f"config.json: mlp_only_layers is {dense!r}", hint="a list of layers")
    if experts * len(layers) > values.tensors:
        raise SpecError(
            f"config.json: {len(layers)} layers of {experts} experts have more weights than the "
            f"files, which have {values.tensors} tensors",
            hint="config.json and the weights must be of one model",
        )
    return RoutedConfig(
        names=family.experts,
        experts=experts,
        picked=values.size("num_experts_per_tok", most=experts),
        width=values.size("intermediate_size" if is_mixtral else "moe_intermediate_size"),
        shared_width=_shared_width(values),
        is_normalized=is_mixtral or values.flag("norm_topk_prob", usual=False),
        layers=frozenset(
            place
            for place in layers
            if is_mixtral or (place not in dense and not (place + 1) % step)
        ),
    )


def _shared_width(values: ConfigValues) -> int:
    if values.values.get("model_type") != "qwen2_moe":
        return 0
    return values.size("shared_expert_intermediate_size", 5632)
