"""Stored parameter shapes of every model, so that sizes are available without the model.

    python -m dse_evaluators.workloads.shapes

regenerates them from the models, whose assets must then be installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from dse_evaluators.workloads.models import MODELS, model_of, workload_of

_FILE = Path(__file__).with_name("shapes.json")

Shapes = Mapping[str, tuple[int, ...]]


@cache
def shapes_of(model: str) -> Shapes:
    """Return the stored shape of each parameter, in the order of the model.

    Raises:
        PluginError: there is no such model.
    """
    model_of(model)
    told = json.loads(_FILE.read_text())[model]
    return {name: tuple(shape) for name, shape in told.items()}


def read_shapes(model: str) -> Shapes:
    """Return the shape of each parameter, read from the model itself."""
    return {name: value.shape for name, value in workload_of(model).parameters.items()}


if __name__ == "__main__":
    lines = (
        f'"{model}": {json.dumps(read_shapes(model), separators=(",", ":"))}' for model in MODELS
    )
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
