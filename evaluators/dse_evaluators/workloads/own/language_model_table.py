"""Layer table of a language or diffusion model of the user, from its ``config.json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import SpecError
from dse_evaluators.workloads.diffusion_config import CLASS, diffusion_table
from dse_evaluators.workloads.layer_table import ReadLayers
from dse_evaluators.workloads.model_source import transformer_of
from dse_evaluators.workloads.transformer import family_of_transformer
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer
from dse_evaluators.workloads.workload_text import parse_keys

_USUAL = 2048


def read_language_model(
    origin: Path | Mapping[str, object], keys: Mapping[str, str], label: str
) -> ReadLayers:
    """Return the layers of a language model that processes tokens, or of a diffusion model.

    Args:
        origin: a folder with ``config.json``, the file itself, or ``{like: NAME, FIELD: value}``.
        keys: numbers of tokens, as ``prefill`` or ``decode``, or ``tokens`` of an encoder, and of
            sequences, as ``batch``; ``latent``, ``words`` and ``frames`` of a diffusion model.
        label: name of the model for messages.

    Raises:
        SpecError: the file cannot be read, a layer of the model is no fixed list of matrix products
            (experts, states), or a key is unknown.
    """
    if isinstance(origin, Path):
        content = _read_content(origin)
        if CLASS in content:
            return ReadLayers(table=diffusion_table(content, keys, label))
    model = _read_sizes(origin) if isinstance(origin, Path) else transformer_of(origin, "workload")
    if model.window_layers:
        keys = _keys_within_window(model, keys)
        model = replace(model, window_layers=0, window=0)
    if not model.is_plain or model.experts > 1:
        raise _no_table(model)
    family = family_of_transformer(model)
    text = f"{label}:" + ",".join(f"{key}={size}" for key, size in keys.items())
    return ReadLayers(table=family.make(parse_keys(text.rstrip(":"), family.keys)))


def _keys_within_window(model: Transformer, keys: Mapping[str, str]) -> Mapping[str, str]:
    """Return the keys of a model with sliding windows, within which its attention is complete."""
    phases = [key for key in ("prefill", "decode") if key in keys]
    if not phases:
        return {"prefill": str(min(model.window, _USUAL)), **keys}
    longest = int(keys[phases[0]])
    if longest > model.window:
        problem = f"layers of {model.name} attend to {model.window} tokens, fewer than {longest}"
        raise SpecError(problem, hint=f"{phases[0]} of at most {model.window}")
    return keys


def _no_table(model: Transformer) -> SpecError:
    return SpecError(
        f"{model.name} has no fixed layers: the weights that a token uses depend on the token, or "
        "its layers have a state",
        hint="clusters.serving models it; or export one layer of it to ONNX",
    )


def _read_content(path: Path) -> Mapping[str, Any]:
    from dse_evaluators.workloads.own.safetensors_file import read_json

    return read_json(path / "config.json" if path.is_dir() else path)


def _read_sizes(path: Path) -> Transformer:
    """Return the sizes of a language model, also of GPT-2 and BERT, whose files name them apart."""
    file, content = path / "config.json" if path.is_dir() else path, _read_content(path)
    kind = content.get("model_type")
    if not isinstance(kind, str) or kind not in _ALIASES:
        return transformer_of(str(file.resolve()), "workload")
    base, names = _ALIASES[kind]
    sizes: dict[str, Any] = {}
    for field, key in names.items():
        value = content.get(key)
        if type(value) is not int or value < 1:
            raise SpecError(f"{file.name}: {key} cannot be {value!r}", hint="a whole number from 1")
        sizes[field] = value
    wide = content.get("n_inner") or 4 * sizes["hidden"]
    sizes = {"ffn": wide, **sizes, "kv_heads": sizes["heads"]}
    if sizes["hidden"] % sizes["heads"]:
        problem = f"{sizes['hidden']} is no multiple of {sizes['heads']} heads"
        raise SpecError(f"{file.name}: {problem}", hint="copy the file again")
    return replace(TRANSFORMERS[base], name=file.parent.name, **sizes)


_ALIASES: Mapping[object, tuple[str, Mapping[str, str]]] = {
    "gpt2": (
        "gpt2",
        {
            "layers": "n_layer",
            "hidden": "n_embd",
            "heads": "n_head",
            "vocabulary": "vocab_size",
            "positions": "n_positions",
        },
    ),
    "bert": (
        "bert-base",
        {
            "layers": "num_hidden_layers",
            "hidden": "hidden_size",
            "heads": "num_attention_heads",
            "ffn": "intermediate_size",
            "vocabulary": "vocab_size",
            "positions": "max_position_embeddings",
            "segments": "type_vocab_size",
        },
    ),
}
"""Transformer of ours that a ``model_type`` resembles, and the keys of its sizes."""
