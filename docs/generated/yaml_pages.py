"""The reference of study and space files, from the models that check them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from dse.schema.models import StudySpec
from dse.schema.space.file import SpaceSpec, TableSpec
from plain_text import cell, prose

_ROOTS: Mapping[str, type[BaseModel]] = {
    "study": StudySpec,
    "space": SpaceSpec,
    "space.tables[]": TableSpec,
}
_PLAIN = {str: "text", int: "whole number", float: "number", bool: "true or false", Any: "anything"}
_LIMITS = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
_HEAD = """# YAML

All keys of study files and space files. A number with a unit is a text such as `64 KiB`. A key
that is not listed is refused, with the nearest valid key as a hint, unless the section allows other
keys. The column *default* gives the value of a key that is left out.
[The language of spaces](../language.md) has examples of all keys.
"""

Meanings = Mapping[str, Mapping[str, str]]


def meanings() -> Meanings:
    """What each key means, by model; a description in the model goes before it."""
    text = Path(__file__).with_name("meanings.yaml").read_text(encoding="utf-8")
    found: Meanings = yaml.safe_load(text)
    return found


def sections() -> dict[str, type[BaseModel]]:
    """Each model by the place where a file first has it: ``study.evaluators.NAME``."""
    found: dict[str, type[BaseModel]] = {}
    for place, model in _ROOTS.items():
        for at, inner in _below(place, model):
            if inner not in found.values():
                found[at] = inner
    return found


def yaml_reference() -> str:
    """The page of all keys."""
    known, told = sections(), meanings()
    anchors = {model: _anchor(place) for place, model in known.items()}
    parts = [_section(place, model, anchors, told) for place, model in known.items()]
    return "\n".join([_HEAD, *parts])


def key_of(name: str, field: FieldInfo) -> str:
    """What the file calls a field."""
    return field.alias or name


def _below(place: str, model: type[BaseModel]) -> Iterator[tuple[str, type[BaseModel]]]:
    yield place, model
    for name, field in model.model_fields.items():
        for suffix, inner in _models(field.annotation):
            yield from _below(f"{place}.{key_of(name, field)}{suffix}", inner)


def _models(kind: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models within a type, each with how a file comes to it."""
    origin, inside = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        yield "", kind
    elif origin is Annotated:
        yield from _models(inside[0])
    elif origin in (Union, UnionType):
        for one in inside:
            yield from _models(one)
    elif origin in (list, dict):
        own = "[]" if origin is list else ".NAME"
        yield from ((own + suffix, model) for suffix, model in _models(inside[-1]))


def _section(
    place: str, model: type[BaseModel], anchors: Mapping[type, str], told: Meanings
) -> str:
    others = "Other keys are allowed, too." if model.model_config.get("extra") == "allow" else ""
    lines = [f"## `{place}` {{#{_anchor(place)}}}", "", prose(inspect.getdoc(model) or "")]
    lines += ["", others, "", "| key | value | default | meaning |", "|---|---|---|---|"]
    for name, field in model.model_fields.items():
        meaning = field.description or told[model.__name__][key_of(name, field)]
        row = (f"`{key_of(name, field)}`", _taken(field, anchors), _default(field), prose(meaning))
        lines.append(f"| {' | '.join(cell(one) for one in row)} |")
    return "\n".join([*lines, ""])


def _taken(field: FieldInfo, anchors: Mapping[type, str]) -> str:
    limits = [
        f"{word} {getattr(one, key):,}"
        for one in field.metadata
        for key, word in _LIMITS.items()
        if getattr(one, key, None) is not None
    ]
    return ", ".join([_words(field.annotation, anchors), *limits])


def _words(kind: Any, anchors: Mapping[type, str]) -> str:
    """A type as a reader of YAML would say it."""
    origin, inside = get_origin(kind), get_args(kind)
    if origin is Literal:
        return " or ".join(f"`{one}`" for one in inside)
    if origin is Annotated:
        return _words(inside[0], anchors)
    if origin is list:
        return f"list of {_words(inside[0], anchors)}"
    if origin is dict:
        return f"mapping of names to {_words(inside[1], anchors)}"
    if origin in (Union, UnionType):
        return _either(inside, anchors)
    if kind in anchors:
        return f"[these keys](#{anchors[kind]})"
    return _PLAIN[kind]


def _either(kinds: tuple[Any, ...], anchors: Mapping[type, str]) -> str:
    given = [kind for kind in kinds if kind is not NoneType]
    if {*given} == {int, float, str}:
        return "number, with or without a unit"
    if {*given} == {bool, int, float, str}:
        return "number, text, true or false"
    return ", or ".join(_words(kind, anchors) for kind in given)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.default
    if isinstance(value, BaseModel):
        value = getattr(value, "use", None)
    if value is None or (not value and not isinstance(value, bool | int)):
        return "none"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _anchor(place: str) -> str:
    return place.replace("[]", "").replace(".", "-").lower()
