"""Hashes of the weights of built-in models that each machine trains on first use."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

from dse_evaluators.workloads import weight_cache
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import ModelRef, workload_of

TRAINED = ("digits-cnn", "mnist-cnn", "movielens-dlrm")
"""Models without a file of weights."""

_LETTERS = 16


def trained_weights(model: ModelRef) -> dict[str, str]:
    """Return the hash of a model's weights by its name, if this machine trains the weights.

    The result is empty if it trains none. The hash is kept next to the cached weights as long as
    these do not change, because reading them takes seconds.

    Args:
        model: name of a built-in model, or a model of the user, whose edition covers its weights.

    Raises:
        PluginError: the data of the model is not installed.
    """
    if not isinstance(model, str) or model not in TRAINED:
        return {}
    folder = weight_cache.folder()
    note = folder / f"{model}-{edition_of(model)}-torch-{version('torch')}.json"
    known = _read_note(note)
    if known.get("files") != _list_files(folder, model) or not known.get("files"):
        found = hash_parameters(model)
        known = {"hash": found, "files": _list_files(folder, model)}
        with suppress(OSError):  # the next process computes it again
            weight_cache.write_text(note, json.dumps(known))
    return {model: str(known["hash"])}


def hash_parameters(model: str) -> str:
    """Return the hash of the names, shapes and values of a model's parameters.

    Args:
        model: name of a built-in model.

    Raises:
        PluginError: the data of the model is not installed.
    """
    found = hashlib.sha256()
    for name, array in sorted(workload_of(model).parameters.items()):
        found.update(f"{name} {array.shape} {array.dtype.str} ".encode())
        found.update(array.tobytes())
    return found.hexdigest()[:_LETTERS]


def _list_files(folder: Path, model: str) -> dict[str, list[int]]:
    """Return size and time of change of each file of cached weights of a model, by its name."""
    stats = {path.name: path.stat() for path in sorted(folder.glob(f"{model}-*.npz"))}
    return {name: [one.st_size, one.st_mtime_ns] for name, one in stats.items()}


def _read_note(path: Path) -> dict[str, Any]:
    """Return the content of a note; empty if it is missing or damaged."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) and isinstance(found.get("hash"), str) else {}
