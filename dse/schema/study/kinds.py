"""Detection of whether a file is a study or a space, by its keys; some may be misspelt."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import PurePath
from typing import Any

from dse.schema.models import StudySpec
from dse.schema.space.space_file_models import SpaceSpec

_DECISIVE = frozenset({"study", "evaluators", "objectives"})
_OF_STUDIES, _OF_SPACES = StudySpec.model_fields.keys(), SpaceSpec.model_fields.keys()
_SIMILAR = 0.8
_MOST_KEYS = 100
"""Number of keys that are checked for misspellings: each comparison is slow."""


def is_study(value: Mapping[str, Any]) -> bool:
    """Return whether a YAML value is the content of a study file, even with misspelt keys.

    The key ``evaluator:`` alone is enough, and so is ``space: x.yaml`` with any second key.
    """
    if value.keys() & _DECISIVE:
        return True
    if "parameters" in value:
        return False
    if _names_file(value.get("space")):
        return len(value) > 1
    if value.keys() & (_OF_SPACES - _OF_STUDIES):
        return False
    own = sorted(_OF_STUDIES - _OF_SPACES)
    keys = islice(value, _MOST_KEYS)
    return any(get_close_matches(str(key)[:60], own, n=1, cutoff=_SIMILAR) for key in keys)


def is_space(value: Mapping[str, Any]) -> bool:
    """Return whether a YAML value is a space file: not a study, and with a key of a space."""
    return not is_study(value) and bool(value.keys() & _OF_SPACES)


def _names_file(value: object) -> bool:
    return isinstance(value, str) and PurePath(value).suffix in (".yaml", ".yml")
