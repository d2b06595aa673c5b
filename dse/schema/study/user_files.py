"""Options of evaluators that name a file, a function or an object of the user."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dse.schema.yaml.files import resolve_path

_FUNCTION = "python"
"""Key of a mapping that names a function of the user's own file: ``{python: net.py:make}``."""

_FILE = "file"
"""Key of a mapping that names a file, with settings for reading it."""

_LIKE = "like"
"""Key of a mapping that names what it changes: a built-in name, or a file of the user."""

_METRICS = "metrics"
"""Key of a mapping that names quality metrics, which may be functions of the user's own file."""

_KINDS = ("onnx:",)
"""Prefixes of a path that state the kind of its file: ``onnx:net.onnx,batch=1``."""

EACH_VALUE = ".*"
"""End of the name of a user option of which each value of a mapping names something."""

GIVEN = "given:"
"""Prefix of a text that names an object of a Python program."""


def resolve_user_option(value: Any, study_file: Path, objects: Mapping[str, Any]) -> Any:
    """Return an option's value with its paths resolved relative to the study's file.

    A text is a path if it has a slash or an ending such as ``.onnx``, or follows ``onnx:``; other
    texts are names. Settings may follow a path, as in ``net.onnx:tokens=128``. In a
    mapping, ``file`` is a path, ``python`` a path with a function's name, and ``like`` and
    ``metrics`` are texts, mappings or lists of the same kinds.

    Args:
        value: the value of the option.
        study_file: the study's file.
        objects: the objects of a Python program, by the texts that name them.

    Raises:
        SpecError: a path is not valid.
    """
    if isinstance(value, str):
        return _resolve_text(value, study_file, objects)
    if isinstance(value, list):
        return [resolve_user_option(one, study_file, objects) for one in value]
    if isinstance(value, Mapping):
        return _resolve_mapping(value, study_file, objects)
    return value


def _resolve_mapping(
    value: Mapping[Any, Any], study_file: Path, objects: Mapping[str, Any]
) -> dict[Any, Any]:
    found = dict(value)
    if isinstance(found.get(_FILE), str):
        found[_FILE] = str(resolve_path(found[_FILE], study_file))
    for key in (_LIKE, _METRICS):
        if key in found:
            found[key] = resolve_user_option(found[key], study_file, objects)
    function = found.get(_FUNCTION)
    if isinstance(function, str) and function in objects:
        found[_FUNCTION] = objects[function]
    elif isinstance(function, str) and not function.startswith(GIVEN):
        file, colon, name = function.rpartition(":")
        found[_FUNCTION] = f"{resolve_path(file, study_file)}{colon}{name}" if file else function
    return found


def resolve_each_value(value: Any, study_file: Path, objects: Mapping[str, Any]) -> Any:
    """Return a mapping with the paths among its values resolved to the study file's folder.

    Args:
        value: the value of the option, ``{name: text}``.
        study_file: the study's file.
        objects: the objects of a Python program, by the texts that name them.

    Raises:
        SpecError: a path is not valid.
    """
    if not isinstance(value, Mapping):
        return value
    texts = {key: one for key, one in value.items() if isinstance(one, str)}
    resolved = {key: resolve_user_option(one, study_file, objects) for key, one in texts.items()}
    return {**value, **resolved}


def _resolve_text(text: str, study_file: Path, objects: Mapping[str, Any]) -> Any:
    if text in objects:
        return objects[text]
    kind = next((one for one in _KINDS if text.startswith(one)), "")
    if kind and text != kind:
        return kind + str(resolve_path(text.removeprefix(kind), study_file))
    return str(resolve_path(text, study_file)) if _is_path(text) else text


def _is_path(text: str) -> bool:
    if text.startswith(GIVEN):
        return False
    return "/" in text or "\\" in text or Path(text).suffix[1:2].isalpha()
