"""Sizes of a language model from the ``config.json`` that Hugging Face keeps with its weights."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_records import read_records
from dse_evaluators.workloads.transformer_configs import Transformer

_MOST_BYTES = 1 << 20

_WINDOWED = ("sliding_attention",)
_STATES = ("linear_attention",)
_FULL = ("full_attention",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Architecture:
    """Features of a language model that its ``model_type`` in config.json implies.

    ``window`` names the layers that a ``sliding_window`` applies to, if the file has no
    ``layer_types``: ``all``, those from ``max_window_layers`` on (``upper``), or all but each n-th.
    """

    model_type: str
    norms: int
    query_norm: str = ""
    qkv_biased: bool = False
    tied: bool = False
    window: str = ""
    router_offset: bool = False
    shared_gated: bool = False
    gated_attention: bool = False
    sinks: bool = False
    expert_biased: bool = False
    source: str


ARCHITECTURES: Mapping[str, Architecture] = read_records(
    Path(__file__).with_name("architectures.csv"), Architecture
)
"""Rows of ``architectures.csv``, by the ``model_type`` of a config.json."""


def read_config(path: Path) -> Transformer:
    """Return the sizes of a language model whose ``config.json`` is at ``path``.

    Of a multimodal model, only the language model is read. The number format of the file's weights
    is not read: formats are inputs of an evaluator.

    Args:
        path: a config.json, or a folder that has one.

    Raises:
        SpecError: there is no such file, it is no JSON object, its ``model_type`` is unknown, or
            it lacks a size.
    """
    file = path / "config.json" if path.is_dir() else path
    label = (file.parent if file.name == "config.json" else file).name or file.stem
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise SpecError(f"{file.name} is larger than 1 MiB", hint="name a config.json")
        found = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        hint = "a config.json, or a folder that has one"
        raise SpecError(f"there is no file {file}", hint=hint) from error
    except (OSError, ValueError, RecursionError) as error:
        problem = f"{file} cannot be read as JSON: {error}"
        raise SpecError(problem[:200], hint="the config.json of a model") from error
    if not isinstance(found, dict):
        raise SpecError(f"{file} is no JSON object", hint="the config.json of a model")
    return config_of(found, name=label, source=file.name)


def config_of(found: Mapping[str, Any], *, name: str, source: str) -> Transformer:
    """Return the sizes of a language model from the content of its config.json.

    Args:
        found: the content.
        name: name of the model in messages.
        source: the file's name, for messages.

    Raises:
        SpecError: the ``model_type`` is unknown, or a size is missing or is no whole number.
    """
    inner = found.get("text_config")
    if isinstance(inner, Mapping):
        outer = {key: found[key] for key in ("tie_word_embeddings",) if key in found}
        found = {**outer, "model_type": f"{found.get('model_type')}_text", **inner}
    kind = found.get("model_type")
    if not isinstance(kind, str) or kind not in ARCHITECTURES:
        problem = f"{source} of {name} has no model_type"
        if kind is not None:
            problem = f"{source} of {name}: the model_type {kind!r} is unknown"
        known = nearest(str(kind), ARCHITECTURES) if kind is not None else "as in model_type: llama"
        hint = f"{known}; or give sizes: model: {{like: llama3-8b, layers: 40}}"
        raise SpecError(problem, hint=hint)
    return _Reader(found, ARCHITECTURES[kind], name, source).read()


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reader of the keys of one config.json."""

    found: Mapping[str, Any]
    kind: Architecture
    name: str
    source: str

    def read(self) -> Transformer:
        """Return the sizes of the model.

        Raises:
            SpecError: a size is missing or is no whole number.
        """
        kind = self.kind
        state = self._state()
        heads = self.number("num_attention_heads", "num_heads")
        biased = bool(self.found.get("attention_bias"))
        return Transformer(
            name=self.name,
            layers=self.number("num_hidden_layers"),
            hidden=self.number("hidden_size"),
            heads=heads,
            kv_heads=self.number("num_key_value_heads", default=heads),
            vocabulary=self.number("vocab_size"),
            source=f"{self.source} ({kind.model_type})",
            tied=bool(self.found.get("tie_word_embeddings", kind.tied)),
            qkv_biased=kind.qkv_biased or biased,
            out_biased=biased and kind.model_type not in _NO_OUT_BIAS,
            norms=kind.norms,
            query_norm=kind.query_norm if self.found.get("use_qk_norm", True) else "",
            sinks=kind.sinks,
            gated_attention=kind.gated_attention,
            mtp_layers=self.number("num_nextn_predict_layers", "mtp_num_hidden_layers", default=0),
            **self._attention(),
            **self._feed(),
            **self._windows(),
            **state,
        )

    def number(self, *keys: str, default: int | None = None) -> int:
        """Return the integer value of the first of these keys that the file has."""
        for key in keys:
            value = self.found.get(key)
            if value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 0:
                raise SpecError(
                    f"{self.source} of {self.name}: {key} cannot be {value!r}",
                    hint="a whole number",
                )
            return value
        if default is None:
            raise SpecError(
                f"{self.source} of {self.name} has no {keys[0]}",
                hint="some files leave out the defaults of their class: add the number",
            )
        return default

    def _attention(self) -> dict[str, Any]:
        if not self.number("kv_lora_rank", default=0):
            return {"head_width": self.number("head_dim", default=0)}
        rotary = self.number("qk_rope_head_dim")
        return {
            "head_width": self.number("qk_nope_head_dim") + rotary,
            "rotary_width": rotary,
            "value_width": self.number("v_head_dim"),
            "kv_latent": self.number("kv_lora_rank"),
            "query_latent": self.number("q_lora_rank", default=0),
            **self._index(),
        }

    def _index(self) -> dict[str, Any]:
        """Return the fields of the indexer of sparse attention."""
        tokens = self.number("index_topk", default=0)
        if not tokens:
            return {}
        return {
            "index_tokens": tokens,
            "index_heads": self.number("index_n_heads"),
            "index_width": self.number("index_head_dim"),
        }

    def _feed(self) -> dict[str, Any]:
        """Return the fields of the feed-forward parts: dense, routed and shared."""
        if self.kind.model_type == "mamba2":
            return {"ffn": 0}
        experts = self.number("n_routed_experts", "num_local_experts", "num_experts", default=0)
        if experts <= 1:
            return {"ffn": self.number("intermediate_size")}
        wide = self.number("moe_intermediate_size", "intermediate_size")
        shared = self.number("n_shared_experts", default=0) * wide
        layers = self._dense_layers()
        return {
            "ffn": wide,
            "experts": experts,
            "active_experts": self.number("num_experts_per_tok", "experts_per_token"),
            "shared_ffn": self.number("shared_expert_intermediate_size", default=shared),
            "shared_gated": self.kind.shared_gated,
            "router_offset": self.kind.router_offset,
            "expert_biased": self.kind.expert_biased,
            "dense_layers": layers,
            "dense_ffn": self.number("intermediate_size") if layers else 0,
        }

    def _dense_layers(self) -> int:
        """Return how many layers have no experts."""
        layers, step = self.number("num_hidden_layers"), self.found.get("decoder_sparse_step") or 1
        alone = set(self._items("mlp_only_layers"))
        alone |= {place for place in range(layers) if (place + 1) % step}
        alone |= set(range(self.number("first_k_dense_replace", default=0)))
        return len(alone)

    def _windows(self) -> dict[str, Any]:
        layers, window = self.number("num_hidden_layers"), self.number("sliding_window", default=0)
        kinds = self._items("layer_types")
        if kinds:
            odd = next((one for one in kinds if one not in (*_FULL, *_WINDOWED, *_STATES)), None)
            if odd is not None or len(kinds) != layers:
                problem = f"layer_types has {len(kinds)} entries for {layers} layers"
                if odd is not None:
                    problem = f"layer_types cannot have {odd!r}"
                hint = nearest(str(odd), (*_FULL, *_WINDOWED, *_STATES))
                raise SpecError(f"{self.source} of {self.name}: {problem}", hint=hint)
            count = sum(one in _WINDOWED for one in kinds)
            return {"window": window, "window_layers": count} if count else {}
        if not window or not self.kind.window or self.found.get("use_sliding_window") is False:
            return {}
        if self.kind.window == "all":
            return {"window": window, "window_layers": layers}
        if self.kind.window == "upper":
            if not self.found.get("use_sliding_window"):
                return {}
            upper = layers - self.number("max_window_layers", default=layers)
            return {"window": window, "window_layers": max(upper, 0)} if upper > 0 else {}
        every = self.number("sliding_window_pattern", default=int(self.kind.window))
        return {"window": window, "window_layers": layers - layers // max(every, 1)}

    def _state(self) -> dict[str, Any]:
        """Return the fields of layers with a recurrent state."""
        layers = self.number("num_hidden_layers")
        if self.kind.model_type == "mamba2":
            return {
                "state": "mamba2",
                "state_layers": layers,
                "state_heads": self.number("num_heads"),
                "state_groups": self.number("n_groups"),
                "state_key": self.number("state_size"),
                "state_width": self.number("head_dim"),
                "convolution": self.number("conv_kernel"),
            }
        if not self.number("linear_num_value_heads", default=0):
            return {}
        kinds = self._items("layer_types")
        full = layers // self.number("full_attention_interval", default=4)
        return {
            "state": "gated-delta",
            "state_layers": sum(one in _STATES for one in kinds) if kinds else layers - full,
            "state_heads": self.number("linear_num_value_heads"),
            "state_groups": self.number("linear_num_key_heads"),
            "state_key": self.number("linear_key_head_dim"),
            "state_width": self.number("linear_value_head_dim"),
            "convolution": self.number("linear_conv_kernel_dim"),
        }

    def _items(self, key: str) -> Sequence[Any]:
        value = self.found.get(key)
        return value if isinstance(value, list) else []


_NO_OUT_BIAS = ("glm4_moe",)
"""Types whose ``attention_bias`` is that of queries, keys and values alone."""
