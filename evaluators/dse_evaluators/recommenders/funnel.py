"""The evaluator ``recommenders.funnel``: recommendation in stages on a partitioned accelerator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading, one_of
from dse_evaluators.recommenders.funnel_cycles import BANDWIDTHS, CYCLE_S, MODELS, count_cycles
from dse_evaluators.recommenders.funnel_queue import simulate_p99

MOST_STAGES = 3
_SIDES = ChoiceInput({side: float(side) for side in BANDWIDTHS}, 128)
_CORES = ChoiceInput({2**power: 2.0**power for power in range(7)}, 1)

STAGES: Mapping[str, Reading] = {
    "stages": NumberInput(1, MOST_STAGES, default=1, whole=True),
    **{f"model_{stage}": one_of(MODELS, "small") for stage in range(1, MOST_STAGES + 1)},
    **{
        f"items_{stage}": NumberInput(1, 1 << 20, default=512 if stage > 1 else 4096, whole=True)
        for stage in range(1, MOST_STAGES + 1)
    },
}
"""Inputs that the quality of a funnel depends on, too."""

_INPUTS: Mapping[str, Reading] = {
    **STAGES,
    **{f"side_{stage}": _SIDES for stage in range(1, MOST_STAGES + 1)},
    **{f"cores_{stage}": _CORES for stage in range(1, MOST_STAGES + 1)},
    "rate": NumberInput(1e-3, 1e9, "1/s", default=100),
}
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="p99", unit="s", goal="minimize"),
    Metric(name="capacity", unit="1/s", goal="maximize"),
    Metric(name="elements", goal="minimize"),
)


class Funnel(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Time of a recommendation that filters items in stages, each on arrays of its own.

    ``latency`` is the time of a query alone, ``p99`` the 99th percentile under Poisson arrivals,
    ``capacity`` the queries a second of the slowest stage, and ``elements`` the number of elements
    of all arrays. A stage has ``cores`` arrays of ``side`` x ``side`` elements; a query takes one.

    Args:
        knobs: inputs that all designs share, such as ``{rate: 200}``.

    Inputs:
        stages: number of stages; inputs of later ones have no effect.
        model_1: ``small``, ``medium`` or ``large``: 4, 16 or 32 numbers in an embedding.
        model_2: as ``model_1``.
        model_3: as ``model_1``.
        items_1: items that the first stage ranks.
        items_2: items that the first stage passes on; fewer than ``items_1``.
        items_3: items that the second stage passes on; fewer than ``items_2``.
        side_1: elements of the side of an array: 128, 64, 32 or 16.
        side_2: as ``side_1``.
        side_3: as ``side_1``.
        cores_1: arrays of the stage, a power of two up to 64.
        cores_2: as ``cores_1``.
        cores_3: as ``cores_1``.
        rate: queries a second.

    Limits:
        The bandwidth belongs to the side of an array, as in the published model. No area or power;
        no CPU or GPU. ``p99`` is that of 1,792 simulated queries, the same for all designs.

    Error:
        Four logged times of the authors' model agree to 0.001 %.

    Source:
        Gupta et al.: RecPipe, MICRO 2021.

    Example:
        options: {knobs: {stages: 2, items_1: 4096, model_2: large, side_1: 64, side_2: 64}}
        parameters: {items_2: [128, 512], cores_1: [1, 2]}

    Raises:
        SpecError: a knob has an invalid value.
    """

    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,); growing items and overload are infeasible."""
        inputs = self.readings.columns(batch)
        services, servers = [], []
        for stage in range(1, MOST_STAGES + 1):
            is_there = inputs["stages"] >= stage
            services.append(np.where(is_there, _service_s(inputs, stage), 0.0))
            servers.append(np.where(is_there, inputs[f"cores_{stage}"], 1.0))
        loads = [inputs["rate"] * one / count for one, count in zip(services, servers, strict=True)]
        busiest = np.max(loads, axis=0)
        columns = {
            "latency": np.sum(services, axis=0),
            "p99": simulate_p99(inputs["rate"], services, servers),
            "capacity": inputs["rate"] / busiest,
            "elements": _count_elements(inputs),
        }
        return Metrics(columns=columns, failures={**_overloads(busiest), **find_growth(inputs)})


def find_growth(inputs: Mapping[str, Floats]) -> dict[int, Failure]:
    """Return the designs with a stage that ranks no fewer items than the one before.

    Each is given by index with the reason of its infeasibility.
    """
    found: dict[int, Failure] = {}
    for stage in range(2, MOST_STAGES + 1):
        now, before = inputs[f"items_{stage}"], inputs[f"items_{stage - 1}"]
        for row in np.flatnonzero((inputs["stages"] >= stage) & (now >= before)).tolist():
            reason = (
                f"stage {stage} ranks {now[row]:g} items, and stage {stage - 1} {before[row]:g}"
            )
            found.setdefault(row, Failure(kind="infeasible", reason=reason))
    return found


def _overloads(busiest: Floats) -> dict[int, Failure]:
    return {
        row: Failure(
            kind="infeasible",
            reason=f"the rate is {busiest[row]:.3g} times what a stage can serve",
        )
        for row in np.flatnonzero(busiest >= 1).tolist()
    }


def _service_s(inputs: Mapping[str, Floats], stage: int) -> Floats:
    """Return the time of a query in a stage, (n,)."""
    side, items = inputs[f"side_{stage}"], inputs[f"items_{stage}"]
    bandwidth = np.select([side == one for one in BANDWIDTHS], list(BANDWIDTHS.values()))
    of_models = [count_cycles(model, items, side, bandwidth) for model in MODELS.values()]
    return np.choose(inputs[f"model_{stage}"].astype(int), of_models) * CYCLE_S


def _count_elements(inputs: Mapping[str, Floats]) -> Floats:
    stages = range(1, MOST_STAGES + 1)
    each = [inputs[f"cores_{one}"] * inputs[f"side_{one}"] ** 2 for one in stages]
    there = [inputs["stages"] >= one for one in stages]
    return np.sum(np.where(there, each, 0.0), axis=0)
