"""Python objects in the options of plug-in evaluators, such as a model or arrays."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import numpy as np

from dse.protocols import user_options
from dse.registry import load
from dse.schema.study.user_files import GIVEN


def name_objects(name: str, entry: Mapping[str, Any]) -> tuple[Mapping[str, Any], dict[str, Any]]:
    """Replace the Python objects in an evaluator's entry by strings that name them.

    Only options that the evaluator declares for the user's files, functions and objects are
    replaced; other options are returned unchanged.

    Args:
        name: the evaluator's name in the study.
        entry: the evaluator's entry in a study file, with objects as options.

    Returns:
        The entry with strings such as ``given:quality.model``, and the objects by these strings.

    Raises:
        PluginError: the entry has objects, and names an evaluator plug-in that does not exist.
    """
    odd = [key for key, value in entry.items() if not _is_plain(value)]
    if not odd or "use" not in entry:
        return entry, {}
    allowed = user_options(load("evaluators", str(entry["use"])))
    objects: dict[str, Any] = {}
    texts = {
        key: _name_value(f"{name}.{key}", entry[key], objects) for key in odd if key in allowed
    }
    return {**entry, **texts}, objects


def _name_value(name: str, value: Any, objects: dict[str, Any]) -> Any:
    """Store an object in ``objects`` and return the string that names it there.

    A mapping with an object under ``python`` is returned with such a string under that key.
    """
    if _is_plain(value):
        return value
    if isinstance(value, Mapping) and not _is_plain(value.get("python")):
        function = value["python"]
        text = f"{GIVEN}{name}:{getattr(function, '__name__', type(function).__name__)}"
        objects[text] = function
        return {**value, "python": text}
    objects[GIVEN + name] = value
    return GIVEN + name


def _is_plain(value: object) -> bool:
    """Return whether YAML can express a value."""
    if isinstance(value, Mapping):
        return all(map(_is_plain, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, bool | int | float | str | np.generic | PurePath)
