"""Evaluator ``edge.early-exit-dvfs``: a network that stops early, at a voltage for its deadline."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Ints
from dse.errors import SpecError, nearest
from dse_evaluators.alike import infeasible
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.edge.exit_trace import SPLITS, ExitTable, ExitTrace, read_exit_traces
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_MOST_STOPS = 4096
"""Most pairs of thresholds and quantiles whose stops are kept in memory."""

POLICIES = ("none", "early-exit", "dvfs")

_INPUTS: Mapping[str, Reading] = {
    "policy": one_of(POLICIES, "dvfs"),
    "threshold": NumberInput(0, 100),
    "quantile": NumberInput(0.01, 1, default=0.5),
    "deadline": NumberInput(1e-9, 1e6, "s"),
    "layer_time": NumberInput(1e-12, 1e6, "s"),
    "layer_energy": NumberInput(1e-15, 1e9, "J"),
    "voltage": NumberInput(0.1, 10, "V"),
    "lowest_voltage": NumberInput(0.1, 10, "V"),
    "slowest": NumberInput(0.001, 1),
    "voltage_step": NumberInput(1e-4, 1, "V", default=0.025),
}

_METRICS = (
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="saving", goal="maximize"),
    Metric(name="accuracy", goal="maximize"),
    Metric(name="depth", goal="minimize"),
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="missed", goal="minimize"),
    Metric(name="predicted_depth"),
)


class EarlyExitDvfs(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Energy and accuracy of a network that exits early and lowers its voltage until a deadline.

    The first layer runs at the highest voltage. An example whose entropy is then below
    ``threshold`` stops. For any other example, a table predicts from its entropy the layer at which
    it will stop; the layers after the first run at the lowest voltage whose clock reaches that
    layer by the deadline, and the example stops there at the latest. ``policy: early-exit`` exits
    early with all layers at the highest voltage. ``none`` runs all layers of the network at the
    highest voltage; ``saving`` is the energy of ``none`` over the energy of the design.

    Accuracy and exits come from a run of a network of yours: ``file`` has the entropy of each
    exit's prediction, and whether the prediction is right. The table is made of the split
    ``search`` only.

    Args:
        file: a CSV file with the columns ``split``, ``entropy_1`` ... ``entropy_L`` in nat, and
            ``hit_1`` ... ``hit_L``, a row for each example; see ``benchmarks/exit_traces.py``.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Inputs:
        policy: ``none``, ``early-exit`` or ``dvfs``.
        threshold: entropy in nat below which an exit is taken.
        quantile: share of the examples with about the same first entropy that stop no later than
            the table predicts; a larger quantile is safer and takes more energy.
        deadline: time for one example.
        layer_time: time of a layer at the highest voltage.
        layer_energy: energy of a layer at the highest voltage.
        voltage: the highest voltage.
        lowest_voltage: the lowest voltage.
        slowest: clock at the lowest voltage, as a share of the clock at the highest voltage;
            between them the clock is linear in the voltage.
        voltage_step: step of the voltages that can be set.

    Limits:
        Only dynamic energy is modelled, quadratic in the voltage: no leakage, and no time or energy
        to change the voltage or to evaluate an exit. All layers take the same time.

    Error:
        Exits and accuracy are exact on the examples of the file. Energy and time are not validated:
        no measurement of a chip was available.

    Source:
        Tambe et al.: EdgeBERT, 2021, section 5: entropy-based exits, prediction after the first
        layer, and the lowest voltage that meets the deadline. The table here has quantiles;
        the table of EdgeBERT is distilled from a small network.

    Example:
        options:
          file: exits.csv
          layer_time: 4 ms
          layer_energy: 1 mJ
          voltage: 0.8 V
          lowest_voltage: 0.5 V
          slowest: 0.2
          deadline: 12 ms
        parameters: {threshold: [0.2, 0.4], quantile: [0.5, 0.9]}
        objectives: {energy: minimize, accuracy: maximize}
        files:
          exits.csv: |
            split,entropy_1,entropy_2,entropy_3,hit_1,hit_2,hit_3
            search,0.1,0.1,0.1,1,1,1
            search,0.6,0.3,0.1,0,1,1
            test,0.5,0.4,0.2,1,1,1
            test,0.1,0.1,0.1,1,1,1

    Raises:
        SpecError: the file is missing or has invalid rows, or the split is unknown.
    """

    file: str
    split: str = "search"
    policy: str | None = None
    threshold: float | None = None
    quantile: float | None = None
    deadline: float | str | None = None
    layer_time: float | str | None = None
    layer_energy: float | str | None = None
    voltage: float | str | None = None
    lowest_voltage: float | str | None = None
    slowest: float | None = None
    voltage_step: float | str | None = None

    def __post_init__(self) -> None:
        if self.split not in SPLITS:
            raise SpecError(f"split cannot be {self.split!r}", hint=nearest(self.split, SPLITS))
        self._traces = read_exit_traces(Path(self.file))
        digest = hashlib.sha256(Path(self.file).read_bytes()).hexdigest()[:8]
        self.version = f"{self.version}-{digest}"
        self._stops: dict[tuple[float, ...], Stops] = {}
        super().__post_init__()

    def compute(self, inputs: Mapping[str, Floats], /) -> Metrics:
        """Return the metrics of n designs, (n,) each; an empty voltage range is infeasible."""
        keys = np.stack([inputs[name] for name in ("policy", "threshold", "quantile")], axis=1)
        distinct, which = np.unique(keys, axis=0, return_inverse=True)
        stops = [self._look_up_stops(*map(float, key)) for key in distinct]
        shares = np.array([one.shares for one in stops])  # (u, l, l)
        speed, volts = _scale_voltage(inputs, shares.shape[1])  # (n, l), by the predicted layer
        steps = np.arange(shares.shape[1])  # layers after the first one
        layer_s, top = inputs["layer_time"], inputs["voltage"]
        time_s = layer_s[:, None, None] * (1 + steps / speed[:, :, None])  # (n, l, l)
        spent = 1 + steps * (volts / top[:, None])[:, :, None] ** 2
        part = shares[which]
        energy = (part * spent).sum(axis=(1, 2)) * inputs["layer_energy"]
        late = time_s > inputs["deadline"][:, None, None] * (1 + 1e-9)
        columns = {
            "energy": energy,
            "saving": shares.shape[1] * inputs["layer_energy"] / energy,
            "accuracy": np.array([one.accuracy for one in stops])[which],
            "depth": (part * (steps + 1)).sum(axis=(1, 2)),
            "latency": (part * time_s).sum(axis=(1, 2)),
            "missed": (part * late).sum(axis=(1, 2)),
            "predicted_depth": (part * (steps + 1)[:, None]).sum(axis=(1, 2)),
        }
        failures = infeasible(
            inputs["lowest_voltage"] > top, lambda _: "the lowest voltage is above the highest"
        )
        return Metrics(columns=columns, failures=failures)

    def _look_up_stops(self, policy: float, threshold: float, quantile: float) -> Stops:
        key = (policy, threshold, quantile)
        if key not in self._stops:
            if len(self._stops) >= _MOST_STOPS:
                self._stops.clear()
            self._stops[key] = self._find_stops(*key)
        return self._stops[key]

    def _find_stops(self, policy: float, threshold: float, quantile: float) -> Stops:
        trace = self._traces[self.split]
        layers = trace.hits.shape[1]
        name = POLICIES[int(policy)]
        if name == "none":
            stopped = np.full(len(trace.hits), layers)
            return Stops.of(trace, stopped, np.ones_like(stopped))
        stopped = trace.exits(threshold)
        if name == "early-exit":
            return Stops.of(trace, stopped, np.ones_like(stopped))
        table = ExitTable.of(self._traces[SPLITS[0]], threshold, quantile)
        predicted = np.maximum(table.predict(trace.entropies[:, 0]), 2)
        predicted = np.where(stopped == 1, 1, predicted)
        return Stops.of(trace, np.minimum(stopped, predicted), predicted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stops:
    """Share of examples by predicted exit layer and by the layer at which inference stops.

    A predicted layer of 1 stands for the highest voltage.
    """

    shares: Floats  # (l, l)
    accuracy: float

    @staticmethod
    def of(trace: ExitTrace, stopped: Ints, predicted: Ints) -> Stops:
        """Count the examples of a trace by the predicted layer and by the layer of their exit."""
        layers = trace.hits.shape[1]
        shares = np.zeros((layers, layers))
        np.add.at(shares, (predicted - 1, stopped - 1), 1 / len(stopped))
        return Stops(shares=shares, accuracy=trace.accuracy_at(stopped))


def _scale_voltage(inputs: Mapping[str, Floats], layers: int) -> tuple[Floats, Floats]:
    """Return relative clock and voltage [V] of n designs by the predicted layer, (n, layers)."""
    layer_s, top = inputs["layer_time"][:, None], inputs["voltage"][:, None]
    low = np.minimum(inputs["lowest_voltage"], inputs["voltage"])[:, None]
    slowest, step = inputs["slowest"][:, None], inputs["voltage_step"][:, None]
    left_s = inputs["deadline"][:, None] - layer_s
    rest = np.arange(layers) * layer_s  # (n, l)
    needed = np.where(left_s > 0, rest / np.where(left_s > 0, left_s, 1.0), 1.0)
    range_v = np.where(top > low, top - low, 1.0)
    exact = low + np.clip((needed - slowest) / np.where(slowest < 1, 1 - slowest, 1.0), 0, 1) * (
        top - low
    )
    volts = np.minimum(low + np.ceil((exact - low) / step - 1e-9) * step, top)
    volts[:, 0] = top[:, 0]
    speed = np.where(top > low, slowest + (1 - slowest) * (volts - low) / range_v, 1.0)
    return speed, volts
