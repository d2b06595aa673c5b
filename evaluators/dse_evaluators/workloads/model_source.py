"""Language models as a study names them: a name, a config.json, or one of ours with changes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.model_config import read_config
from dse_evaluators.workloads.transformer_configs import (
    PLAIN_TRANSFORMERS,
    STATE_KINDS,
    TRANSFORMERS,
    Transformer,
)

ModelOption = str | Mapping[str, Any]
"""Value of an option ``model``: a name, a path, or ``{like: NAME, layers: 40, ...}``."""

_TEXTS = ("source",)
_LABELS = ("name", "source")
_KINDS = {"int": int, "bool": bool, "str": str}
_WORDS = {"state": ("", *STATE_KINDS), "query_norm": ("", "head", "all")}
_MOST = {
    "layers": 10_000,
    "hidden": 2**20,
    "heads": 2**16,
    "kv_heads": 2**16,
    "ffn": 2**24,
    "vocabulary": 2**26,
    "experts": 2**16,
    "norms": 16,
}
_MOST_OTHERWISE = 2**26
_LEAST = dict.fromkeys(("layers", "hidden", "heads", "kv_heads", "vocabulary", "experts"), 1)


def transformer_of(value: object, option: str = "model") -> Transformer:
    """Return the language model that an option names.

    Args:
        value: a name of ``workloads.transformer_configs``; the path of a config.json or of a folder
            that has one; or a mapping ``{like: NAME or path, FIELD: value, ...}`` with other values
            of fields of :class:`~dse_evaluators.workloads.transformer_configs.Transformer`.
        option: name of the option, for messages.

    Raises:
        SpecError: the name, the file or a field is unknown, or sizes contradict each other.
    """
    if isinstance(value, Transformer):
        return _check(value, option)
    if isinstance(value, str):
        if is_model_path(value):
            return _check(read_config(Path(value)), option)
        return _look_up(value, option)
    if not isinstance(value, Mapping):
        hint = "a name, the path of a config.json, or {like: llama3-8b, layers: 40}"
        raise SpecError(f"{option} cannot be {value!r}", hint=hint)
    if "like" not in value:
        hint = nearest(str(next(iter(value), "")), ["like"]) or "as {like: llama3-8b, layers: 40}"
        raise SpecError(f"{option} has no key 'like'", hint=hint, part=[option])
    base = transformer_of(value["like"], option)
    changes = {key: _field(key, one, option) for key, one in value.items() if key != "like"}
    return _check(replace(base, **changes), option)


def plain_transformer_of(value: object, evaluator: str, option: str = "model") -> Transformer:
    """Return the language model that an option names, if its layers are equal, with full attention.

    Args:
        value: the value of the option, as for :func:`transformer_of`.
        evaluator: name of the evaluator, for messages.
        option: name of the option, for messages.

    Raises:
        SpecError: the name, the file or a field is unknown, sizes contradict each other, or the
            layers are not all equal with full attention.
    """
    model = transformer_of(value, option)
    if not model.is_plain:
        problem = f"{evaluator} does not model the layers of {model.name}"
        hint = "it has equal layers with full attention; clusters.serving has the other kinds"
        raise SpecError(problem, hint=hint, part=[option])
    return model


def plain_transformers_of(
    value: object, evaluator: str, option: str = "model"
) -> Mapping[str, Transformer]:
    """Return the language models among which designs choose, by name.

    Args:
        value: a value of the option, as for :func:`transformer_of`; a list of such values; or
            ``None`` for all built-in models with equal layers.
        evaluator: name of the evaluator, for messages.
        option: name of the option, for messages.

    Raises:
        SpecError: a value is invalid, the list is empty, or two models have one name.
    """
    if value is None:
        return PLAIN_TRANSFORMERS
    some = value if isinstance(value, list | tuple) else [value]
    models = [plain_transformer_of(one, evaluator, option) for one in some]
    found = {model.name: model for model in models}
    if not models or len(found) < len(models):
        problem = f"{option} has two models of one name" if models else f"{option} is empty"
        hint = f"name the other one, as {{like: {models[-1].name}, name: other}}" if models else ""
        raise SpecError(problem, hint=hint, part=[option])
    return found


def label_of_model(value: object) -> str:
    """Return the name of a model that an option names, as a space refers to it.

    The name is the built-in one, the name of the folder of a config.json, or the key ``name`` of a
    mapping.

    Args:
        value: the value of the option, as for :func:`transformer_of`.
    """
    return transformer_of(value).name


def model_edition(value: object) -> str:
    """Return a hash of the sizes of a model of the user, or an empty text for a built-in name.

    Args:
        value: the value of an option, as for :func:`transformer_of`.
    """
    if isinstance(value, str) and not is_model_path(value):
        return ""
    sizes = {
        name: one for name, one in asdict(transformer_of(value)).items() if name not in _LABELS
    }
    return hashlib.sha256(repr(sorted(sizes.items())).encode()).hexdigest()[:12]


def edition_of_models(version: str, *values: object) -> str:
    """Return an evaluator's version, with a hash of the models of the user that it evaluates.

    Args:
        version: version of the evaluator.
        values: values of options as for :func:`transformer_of`, or ``None``.
    """
    editions = [model_edition(value) for value in values if value is not None]
    return "-".join([version, *filter(None, editions)])


def is_model_path(text: str) -> bool:
    """Return whether a text names a file: it has a slash, or an ending such as ``.json``."""
    return "/" in text or "\\" in text or Path(text).suffix == ".json"


def _look_up(name: str, option: str) -> Transformer:
    if name in TRANSFORMERS:
        return TRANSFORMERS[name]
    own = f"a model of your own is a path: ./{name}" if Path(name).exists() else ""
    hint = own or nearest(name, TRANSFORMERS)
    raise SpecError(f"{option} cannot be {name!r}", hint=hint, part=[option])


def _field(key: object, value: object, option: str) -> Any:
    kinds = {one.name: str(one.type) for one in fields(Transformer) if one.name not in _TEXTS}
    if key not in kinds:
        hint = nearest(str(key), kinds) or f"such as {', '.join(list(kinds)[:6])}"
        raise SpecError(f"{option} has no field {key!r}", hint=hint, part=[option])
    name, kind = str(key), _KINDS[kinds[str(key)]]
    if type(value) is not kind:
        word = {"int": "a whole number", "bool": "true or false", "str": "a word"}[kinds[name]]
        raise SpecError(f"{name} cannot be {value!r}", hint=word, part=[option, name])
    return value


def _check(model: Transformer, option: str) -> Transformer:
    """Return a model whose sizes are possible and do not contradict each other.

    Raises:
        SpecError: a size is impossible, or two sizes contradict each other.
    """
    for each in fields(Transformer):
        value = getattr(model, each.name)
        if each.name in _WORDS and value not in _WORDS[each.name]:
            hint = nearest(value, _WORDS[each.name]) or ", ".join(filter(None, _WORDS[each.name]))
            raise _odd(model, f"{each.name} cannot be {value!r}", hint, option)
        if type(value) is int:
            least, most = _LEAST.get(each.name, 0), _MOST.get(each.name, _MOST_OTHERWISE)
            if not least <= value <= most:
                hint = f"a whole number from {least} to {most}"
                raise _odd(model, f"{each.name} cannot be {value}", hint, option)
    for broken, problem, hint in _contradictions(model):
        if broken:
            raise _odd(model, problem, hint, option)
    return model


def _odd(model: Transformer, problem: str, hint: str, option: str) -> SpecError:
    return SpecError(f"{model.name}: {problem}", hint=hint, part=[option])


def _contradictions(model: Transformer) -> list[tuple[bool, str, str]]:
    """Return, for each rule that sizes must obey: whether it is broken, the problem, and a hint."""
    special = model.window_layers + model.state_layers
    index = (model.index_heads, model.index_width)
    stateful = (model.state_heads, model.state_groups, model.state_key, model.state_width)
    return [
        (
            not model.head_width and model.hidden % model.heads != 0,
            f"hidden of {model.hidden} is no multiple of {model.heads} heads",
            "give head_width, or other heads",
        ),
        (
            model.heads % model.kv_heads != 0,
            f"{model.heads} heads are no multiple of {model.kv_heads} kv_heads",
            "kv_heads divides heads",
        ),
        (
            not 1 <= model.active_experts <= model.experts,
            f"active_experts of {model.active_experts} with {model.experts} experts",
            f"active_experts from 1 to {model.experts}",
        ),
        (
            special > model.layers,
            f"window_layers and state_layers are {special} of {model.layers} layers",
            "give window_layers and state_layers together with layers",
        ),
        (
            model.window_layers > 0 and not model.window,
            f"{model.window_layers} window_layers, but window is 0",
            "window: tokens that such a layer attends to",
        ),
        (
            model.dense_layers > model.layers,
            f"dense_layers are {model.dense_layers} of {model.layers} layers",
            "give dense_layers together with layers",
        ),
        (
            model.dense_layers > 0 and not (model.dense_ffn and model.experts > 1),
            f"{model.dense_layers} dense_layers need dense_ffn and experts",
            "dense_layers are the first layers of a model with experts",
        ),
        (
            model.state_layers > 0 and not (model.state and all(stateful) and model.convolution),
            f"{model.state_layers} state_layers lack the sizes of their state",
            "state, state_heads, state_groups, state_key, state_width, convolution",
        ),
        (
            model.kv_latent > 0 and not 0 < model.rotary_width < model.head,
            f"rotary_width of {model.rotary_width} in a head of {model.head}",
            "rotary_width is the part of a head with rotary embedding",
        ),
        (
            model.index_tokens > 0 and not (all(index) and model.query_latent and model.kv_latent),
            f"index_tokens of {model.index_tokens} lack an indexer over latent attention",
            "index_heads, index_width, query_latent, kv_latent",
        ),
        (
            any(index) and not model.index_tokens,
            "an indexer without index_tokens",
            "index_tokens: tokens that a query attends to",
        ),
    ]
