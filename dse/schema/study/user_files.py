"""Options of evaluators that name something of the user: a file, a function or an object."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dse.schema.yaml.files import resolve_path

_FUNCTION = "python"
"""Key of a mapping that names a function of the user's own file: ``{python: net.py:make}``."""

_FILE = "file"
"""Key of a mapping that names a file, with settings for reading it."""


def resolve_user_option(value: Any, beside: Path) -> Any:  # an option as YAML gives it
    """Return an option's value with its paths resolved relative to the study's file.

    A text is a path if it has a slash or an ending such as ``.onnx``; other texts are names. In a
    mapping, ``file`` is a path and ``python`` a path with a function's name.

    Args:
        value: the value of the option, or an object of a Python program.
        beside: the study's file.

    Raises:
        SpecError: a path is not valid.
    """
    if isinstance(value, str) and _is_path(value):
        return str(resolve_path(value, beside))
    if isinstance(value, list):
        return [resolve_user_option(one, beside) for one in value]
    if not isinstance(value, Mapping):
        return value
    found = dict(value)
    if isinstance(found.get(_FILE), str):
        found[_FILE] = str(resolve_path(found[_FILE], beside))
    if isinstance(found.get(_FUNCTION), str):
        file, colon, name = found[_FUNCTION].rpartition(":")
        if file:
            found[_FUNCTION] = f"{resolve_path(file, beside)}{colon}{name}"
    return found


def _is_path(text: str) -> bool:
    return "/" in text or "\\" in text or Path(text).suffix[1:2].isalpha()
