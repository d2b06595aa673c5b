"""Registry of the models that can be run, by the name that a study uses.

The functions that make them are entry points of the group ``dse.models``. Metrics and layer names
of the built-in ones are listed here, so that a study file can be checked without torch and without
a model's assets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from dse.core.metric import Metric
from dse.errors import PluginError, nearest
from dse_evaluators.workloads.judging import METRICS
from dse_evaluators.workloads.model_factories import load_factory
from dse_evaluators.workloads.workload import UserModel, Workload

ModelRef = str | UserModel
"""Name of a registered model, or a model of the user."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadModel:
    """Built-in workload, with its quality metrics and compressible layers."""

    quality: tuple[str, ...]  # names in METRICS
    layers: tuple[str, ...]  # its `compressible`
    is_trainable: bool = False  # whether it is a `Trainable`

    @property
    def metrics(self) -> dict[str, Metric]:
        """Quality metrics of the workload, by name."""
        return {name: METRICS[name] for name in self.quality}


MODELS: Mapping[str, WorkloadModel] = {
    name: WorkloadModel(
        quality=tuple(row["quality"]),
        layers=tuple(row["layers"]),
        is_trainable=row.get("trainable", False),
    )
    for name, row in json.loads(
        Path(__file__).with_name("models.json").read_text(encoding="utf-8")
    ).items()
}
"""Models of ``models.json``, by name."""


def model_of(name: ModelRef) -> WorkloadModel | UserModel:
    """Return the properties of a model, registered or of the user, without creating it.

    Raises:
        PluginError: no model has this name.
    """
    if not isinstance(name, str):
        return name
    if name not in MODELS:
        raise PluginError(f"there is no model {name!r}", hint=nearest(str(name), MODELS))
    return MODELS[name]


@cache
def workload_of(name: ModelRef) -> Workload:
    """Return the workload of a model, trained or read from its files once per process.

    Raises:
        PluginError: no model has this name, or it needs an asset that is not installed.
        EvaluationError: a model of the user cannot be read, or does not fit its data.
    """
    found = model_of(name)
    if not isinstance(found, WorkloadModel):
        return found.make()
    made: Workload = load_factory(str(name), built_in=True)()
    return made
