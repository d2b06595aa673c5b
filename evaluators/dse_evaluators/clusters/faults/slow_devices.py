"""The evaluator ``clusters.slow-devices``: step time by the placement of slow devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import comb
from typing import NamedTuple

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.alike import infeasible_rows
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading, one_of

PLACEMENTS = ("random", "one_stage", "one_replica", "spread")
"""Placements of slow devices: random, all in one stage, in the fewest or the most replicas."""

_PARTS = ("nominal", "uneven", "slow")
_METRICS = (
    Metric(name="step_time", unit="s", goal="minimize"),
    *(Metric(name=f"{part}_time", unit="s", part_of="step_time") for part in _PARTS),
    Metric(name="slowdown", goal="minimize"),
    Metric(name="bottleneck", words=_PARTS),
)
_READINGS: Mapping[str, Reading] = {
    "placement": one_of(PLACEMENTS),
    **dict.fromkeys(
        ("stages", "replicas", "microbatches", "layers"), NumberInput(1, 4096, whole=True)
    ),
    "slow_devices": NumberInput(0, 4096, whole=True),
    "slow_layers": NumberInput(0, 4096, default=0.0, whole=True),
    "slow_factor": NumberInput(1, 100),
    "layer_time": NumberInput(1e-12, 1e9, "s"),
}


class Setting(NamedTuple):
    """Dimensions of replicated pipelines, and the placement of slow devices in them."""

    placement: int
    stages: int
    replicas: int
    microbatches: int
    layers: int
    slow_devices: int
    slow_layers: int
    slow_factor: float


class SlowDevices(DeclaredEvaluator, reads=_READINGS, provides=_METRICS, version="1"):
    """Exact expected step time of replicated pipelines, some stages of which are slow.

    Each stage of a replica is one device; a slow device takes ``slow_factor`` times as long.
    ``one_stage`` puts the slow devices in the same stage of their replicas, and that stage may have
    its own number of layers, ``slow_layers``; other placements have equal stages. ``uneven_time``
    is the cost of an uneven split without slow devices.

    Inputs:
        layer_time: time of a layer for one microbatch, forward and backward.
        slow_devices: number of slow devices among stages x replicas.
        slow_layers: layers of a slow stage; 0: as even as possible.

    Limits:
        Not modelled: devices that differ within a stage, and the part of a slow early stage that
        1F1B hides. All forward passes precede all backward ones, which takes as long as 1F1B where
        stages are equal or the last is the slowest.

    Error:
        Agrees with enumeration of all 220 placements, and with a simulated schedule in which all
        forward passes come first.

    Example:
        options: {stages: 8, replicas: 4, microbatches: 16, layers: 32, layer_time: 10 ms}
        parameters:
            {placement: [random, spread, one_stage], slow_devices: [1, 3], slow_factor: [1.3]}

    Source:
        Golden et al.: PRISM, 2025, for the effect of placement; a flow shop of equal jobs takes the
        sum of one job's stage times, plus the slowest stage for every further microbatch.
    """

    stages: int | None = None
    replicas: int | None = None
    microbatches: int | None = None
    layers: int | None = None
    layer_time: float | str | None = None
    slow_devices: int | None = None
    slow_factor: float | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the expected step times of n placements of slow devices."""
        columns = np.stack([inputs[name] for name in Setting._fields], axis=1)
        settings, place = np.unique(columns, axis=0, return_inverse=True)
        found = [_setting(row) for row in settings.tolist()]
        faults = {at: reason for at, one in enumerate(found) if (reason := _impossible(one))}
        times = [(1.0, 1.0, 1.0) if at in faults else _times(one) for at, one in enumerate(found)]
        layer_s = inputs["layer_time"]
        nominal, even, slow = (
            column[place] * layer_s for column in np.array(times).reshape(-1, 3).T
        )
        parts = {"nominal_time": nominal, "uneven_time": even - nominal, "slow_time": slow - even}
        return Metrics(
            columns={
                **parts,
                "step_time": slow,
                "slowdown": slow / nominal,
                "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
            },
            failures=infeasible_rows(faults.get(at) for at in place.tolist()),
        )


def step_layers(setting: Setting) -> float:
    """Return the expected step time of the latest replica, in units of ``layer_time``.

    ``layer_time`` is the time of one layer for one microbatch, forward and backward.
    """
    within = setting.slow_devices
    if setting.placement == PLACEMENTS.index("one_stage"):
        return _replica(setting, min(within, 1))
    if setting.placement == PLACEMENTS.index("random"):
        chances = most_in_one(setting.stages, setting.replicas, within)
    else:
        gathered = setting.placement == PLACEMENTS.index("one_replica")
        most = min(within, setting.stages) if gathered else -(-within // setting.replicas)
        chances = {most: 1.0}
    return sum(chance * _replica(setting, most) for most, chance in chances.items())


@cache
def most_in_one(stages: int, replicas: int, slow: int) -> dict[int, float]:
    """Return the distribution of the largest number of slow devices in one replica.

    All placements are equally likely. Those with at most c slow devices in each replica are counted
    by a power of the polynomial whose coefficients are the ways to choose k slow stages.
    """
    every = comb(stages * replicas, slow)
    fewer, law = 0, dict[int, float]()
    for most in range(min(stages, slow) + 1):
        ways = _power([comb(stages, k) for k in range(most + 1)], replicas, slow)
        if ways > fewer:
            law[most] = (ways - fewer) / every
        fewer = ways
    return law


def _power(factor: Sequence[int], times: int, degree: int) -> int:
    """Return the coefficient of x ** degree in a polynomial (``factor``) to the power ``times``."""
    total = [1] + [0] * degree
    for _ in range(times):
        total = [
            sum(factor[k] * total[at - k] for k in range(min(len(factor), at + 1)))
            for at in range(degree + 1)
        ]
    return total[degree]


def _replica(setting: Setting, count: int) -> float:
    """Return the step time of a replica with ``count`` slow stages, in units of ``layer_time``."""
    plain, own = _split(setting)
    slow = own * (setting.slow_factor if count else 1.0)
    late = (slow - own) * count
    longest = max(slow, plain) if count < setting.stages else slow
    return setting.layers + late + (setting.microbatches - 1) * longest


def _split(setting: Setting) -> tuple[float, float]:
    """Return the most layers of any ordinary stage, and the layers of a possibly slow stage."""
    own = setting.slow_layers or -(-setting.layers // setting.stages)
    others = max(setting.stages - 1, 1)
    return -(-(setting.layers - own) // others), own


def _times(setting: Setting) -> tuple[float, float, float]:
    """Return three pipeline step times in units of ``layer_time``.

    The first two are without slow devices, with an even and with the actual split of layers over
    stages; the third is with slow devices.
    """
    nominal = setting.layers / setting.stages * (setting.microbatches + setting.stages - 1)
    return nominal, step_layers(setting._replace(slow_factor=1.0)), step_layers(setting)


def _impossible(setting: Setting) -> str:
    """Return why a design is infeasible; empty if it is feasible."""
    slots = setting.stages * setting.replicas
    gathers = setting.placement == PLACEMENTS.index("one_stage")
    if setting.slow_layers and not gathers:
        return f"slow_layers is {setting.slow_layers}, but only placement one_stage allows it"
    rest = 0 if setting.slow_layers else setting.layers % setting.stages
    if rest:
        return f"{setting.layers} layers in {setting.stages} stages leave {rest} over"
    room, what = (setting.replicas, "the stage") if gathers else (slots, "all stages")
    over = setting.slow_devices - room
    if over > 0:
        return f"{setting.slow_devices} slow devices, {what} has {room}: {over} too many"
    over = max(setting.stages, setting.slow_layers + setting.stages - 1) - setting.layers
    return f"{setting.layers} layers are {over} too few for the stages" if over > 0 else ""


def _setting(row: Sequence[float]) -> Setting:
    *counts, factor = row
    return Setting._make((*map(int, counts), factor))
