"""Table of every model's parameter shapes, so that sizes are known without loading models.

    python -m dse_evaluators.workloads.shapes

regenerates the table from the models, whose assets must then be installed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from dse_evaluators.workloads.models import MODELS, ModelRef, model_of, workload_of

_FILE = Path(__file__).with_name("shapes.json")

Shapes = Mapping[str, tuple[int, ...]]


@cache
def shapes_of(model: ModelRef) -> Shapes:
    """Return the shape of each parameter of a model by name, from the stored table.

    The shapes of a model of the user are those in its file or module.

    Raises:
        PluginError: there is no such model.
    """
    if not isinstance(model, str):
        return model.shapes
    model_of(model)
    rows = json.loads(_FILE.read_text())[model]
    return {name: tuple(shape) for name, shape in rows.items()}


def read_shapes(model: str) -> Shapes:
    """Return the shape of each parameter by name, read from the model itself."""
    return {name: value.shape for name, value in workload_of(model).parameters.items()}


if __name__ == "__main__":
    lines = (
        f'"{model}": {json.dumps(read_shapes(model), separators=(",", ":"))}' for model in MODELS
    )
    _FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
