"""Evaluator `faults.mission`: missions of a quadrotor under bit flips, with anomaly detectors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.faults.anomaly_detectors import DETECTORS, fit_monitor
from dse_evaluators.faults.missions import OBSTACLES, REFRESH, STAGES, Flights, Flip, fly
from dse_evaluators.reading_table import ChoiceInput, NumberInput, Reading

_FIELDS: Mapping[str, range] = {
    "all": range(32),
    "sign": range(31, 32),
    "exponent": range(23, 31),
    "mantissa": range(23),
}
_WORDS: Mapping[str, int] = {"perception": 3 * OBSTACLES, "planning": 2, "control": 2}
_FIRST, _LAST = 20, 140
"""Steps at which bits flip, in the first 14 s of a mission of about 16 s."""

_TRAINED_ON = 1_000_000
"""Seed of the missions that detectors are fitted to; seeds of designs are smaller."""


def _codes(names: tuple[str, ...]) -> dict[Value, float]:
    return {name: float(code) for code, name in enumerate(names)}


INPUTS: Mapping[str, Reading] = {
    "detector": ChoiceInput(_codes(DETECTORS), default="none"),
    "threshold": NumberInput(1, 20, default=4),
    "width": NumberInput(1, 3, default=2, whole=True),
    "monitored": ChoiceInput(_codes(("all", *STAGES)), default="all"),
    "stage": ChoiceInput(_codes(STAGES), default="planning"),
    "bits": ChoiceInput(_codes(tuple(_FIELDS)), default="exponent"),
    "seed": NumberInput(0, _TRAINED_ON - 1, default=0, whole=True),
}
METRICS = (
    Metric(name="success", goal="maximize"),
    Metric(name="success_without_faults", goal="maximize"),
    Metric(name="flight_time", unit="s", goal="minimize"),
    Metric(name="detected", goal="maximize"),
    Metric(name="false_alarms", goal="minimize"),
    Metric(name="monitor_operations", unit="FLOP/s", goal="minimize"),
)


class FaultyMission(DeclaredEvaluator, reads=INPUTS, provides=METRICS, version="1"):
    """Success and time of quadrotor missions in which a bit of the state of one stage flips.

    A point mass flies 60 m past ten random obstacles. Perception maps the obstacles and planning
    chooses a waypoint, both every 2 s; control sets a velocity every 0.1 s. Each mission suffers
    one flip in a word in single precision of one stage, which stays flipped until the stage
    computes the word again. A detector compares the states of the monitored stages with states of
    missions without faults, and lets a stage with an alarm compute its state again.

    Args:
        missions: number of missions of each design.

    Inputs:
        detector: ``none``; ``gaussian``, an alarm beyond ``threshold`` standard deviations of a
            word; or ``autoencoder``, a linear autoencoder with an alarm if the reconstruction error
            of a state is beyond ``threshold`` times the root mean square without faults.
        threshold: multiple of the standard deviation, or of the root mean square of the
            reconstruction error.
        width: number of components of the autoencoder.
        monitored: stage that the detector monitors, or ``all``.
        stage: stage in whose state a bit flips.
        bits: bits that flip.
        seed: seed of the obstacles and the flips; designs with equal seeds fly the same missions.

    Limits:
        Missions are in a plane, without wind, sensors or motors. The autoencoder is linear
        (principal components), the autoencoder of the paper is a neural network.
        ``monitor_operations`` counts the detector alone; the time of computing a stage again, once
        for each alarm, is not included.

    Error:
        Not validated: the authors fly in the simulator AirSim. ``success`` has a binomial standard
        error.

    Source:
        Hsiao et al., MAVFI: An End-to-End Fault Analysis Framework with Anomaly Detection and
        Recovery for Micro Aerial Vehicles, 2023 (stages, detectors, recomputation).

    Example:
        options: {missions: 100}
        parameters: {detector: [none, gaussian, autoencoder], threshold: [3, 6]}
        objectives: {success: maximize, false_alarms: minimize}

    Raises:
        PluginError: the number of missions is out of range.
    """

    missions: int = 1_000
    detector: str | None = None
    stage: str | None = None
    bits: str | None = None
    monitored: str | None = None

    def __post_init__(self) -> None:
        check_count("missions", self.missions, least=10)
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the metrics of n designs; missions of equal designs are simulated once."""
        table = np.stack([inputs[name] for name in INPUTS], axis=1)  # (n, inputs)
        found = [
            _simulate(_Design.of(dict(zip(INPUTS, row, strict=True))), self.missions)
            for row in table.tolist()
        ]
        columns = {metric.name: np.array([one[metric.name] for one in found]) for metric in METRICS}
        share = columns["success"]
        spread = {"success": np.sqrt(share * (1 - share) / self.missions)}
        return Metrics(columns=columns, spread=spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Design:
    """Inputs of one design."""

    detector: str
    threshold: float
    width: int
    monitored: str
    stage: str
    bits: str
    seed: int

    @staticmethod
    def of(row: Mapping[str, float]) -> _Design:
        return _Design(
            detector=DETECTORS[int(row["detector"])],
            threshold=row["threshold"],
            width=int(row["width"]),
            monitored=("all", *STAGES)[int(row["monitored"])],
            stage=STAGES[int(row["stage"])],
            bits=tuple(_FIELDS)[int(row["bits"])],
            seed=int(row["seed"]),
        )


@lru_cache(maxsize=4096)
def _simulate(design: _Design, missions: int) -> dict[str, float]:
    """Return the metrics of one design."""
    stages = STAGES if design.monitored == "all" else (design.monitored,)
    monitor = fit_monitor(
        design.detector, _training(missions).seen, stages, design.threshold, design.width
    )
    flip = _draw_flips(design, missions)
    faulty = fly(design.seed, missions, flip, monitor)
    intact = fly(design.seed, missions, None, monitor)
    reached = faulty.reached
    return {
        "success": float(reached.mean()),
        "success_without_faults": float(intact.reached.mean()),
        "flight_time": float(
            faulty.time_s[reached].mean() if reached.any() else faulty.time_s.max()
        ),
        "detected": float((faulty.alarms > intact.alarms).mean()),
        "false_alarms": float(intact.alarms.sum() / max(intact.updates.sum(), 1)),
        "monitor_operations": 0.0 if monitor is None else monitor.operations_per_s(),
    }


@lru_cache(maxsize=4)
def _training(missions: int) -> Flights:
    """Return missions without faults, to which detectors are fitted."""
    return fly(_TRAINED_ON, missions, None, None)


def _draw_flips(design: _Design, missions: int) -> Flip:
    rng = np.random.default_rng([design.seed, STAGES.index(design.stage)])
    steps = rng.integers(_FIRST, _LAST, size=missions)
    if design.stage != "control":
        steps = steps // REFRESH * REFRESH  # where the stage computes its state
    bits: NDArray[np.uint32] = rng.choice(_FIELDS[design.bits], size=missions).astype(np.uint32)
    words = rng.integers(_WORDS[design.stage], size=missions)
    return Flip(stage=design.stage, steps=steps, words=words, masks=np.uint32(1) << bits)
