"""Edition of a model: a hash that changes with its weights, computed without loading them."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from dse_evaluators.workloads.assets import ASSETS
from dse_evaluators.workloads.models import ModelRef
from dse_evaluators.workloads.shapes import shapes_of

_SHIPPED = {"shakespeare-lm": Path(__file__).with_name("shakespeare_lm.npz")}
_LETTERS = 8


@cache
def edition_of(model: ModelRef) -> str:
    """Return a hash of a model's shapes, files and weights, as the version of its metrics.

    Networks that are trained on first use have no file of weights; their shapes and data are
    hashed, and the record of a study has hashes of their weights (see ``trained_models``). For a
    model of the user, the hash covers its file or weights, and its data.

    Raises:
        PluginError: there is no such model.
    """
    if not isinstance(model, str):
        return model.edition
    found = hashlib.sha256(repr(shapes_of(model)).encode())
    for asset in ASSETS.values():
        if model in asset.used_by:
            found.update(asset.sha256.encode())
    if model in _SHIPPED:
        found.update(_SHIPPED[model].read_bytes())
    return found.hexdigest()[:_LETTERS]
