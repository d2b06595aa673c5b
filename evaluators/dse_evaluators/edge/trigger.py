"""Evaluator ``edge.trigger``: stages that filter events before they are stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from dse.core.metric import Metric
from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import Flag, NumberInput, Reading, Readings

_STAGE: Mapping[str, NumberInput] = {
    "true_rate": NumberInput(0, 1),
    "false_rate": NumberInput(0, 1),
    "energy": NumberInput(0, 1e9, "J"),
    "bit_energy": NumberInput(0, 1, "J"),
}
"""Figures of a stage, each of which is an input where the stage does not state it."""

_INPUTS: Mapping[str, Reading] = {
    "rate": NumberInput(1e-6, 1e15, "Hz"),
    "relevant": NumberInput(1e-12, 1),
    "event_bits": NumberInput(0, 1e15),
}

_METRICS = (
    Metric(name="power", unit="W", goal="minimize"),
    Metric(name="compute_power", unit="W", goal="minimize", part_of="power"),
    Metric(name="link_power", unit="W", goal="minimize", part_of="power"),
    Metric(name="kept_rate", unit="Hz"),
    Metric(name="recall", goal="maximize"),
    Metric(name="precision", goal="maximize"),
    Metric(name="f1", goal="maximize"),
    Metric(name="relevant_per_kilojoule", goal="maximize"),
)

_EXAMPLE = "{front: {true_rate: 0.99, false_rate: 0.1, energy: 1 nJ, bit_energy: 10 pJ}}"


class Trigger(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Power and quality of a chain of filters that select the events of a detector.

    An event reaches a stage over a link, whose energy is ``bit_energy`` for each bit; the stage
    spends ``energy`` on it, and passes relevant events with probability ``true_rate`` and other
    events with probability ``false_rate``. A stage that is off passes all events at no cost, and
    its link leads on to the next stage.

    Args:
        stages: the stages in order by name, each with the figures that are the same for all
            designs. A figure that a stage does not state is an input, ``NAME_FIGURE``.

    Inputs:
        rate: events a second.
        relevant: share of the events that are relevant.
        event_bits: bits of an event.

    Limits:
        Stages decide independently of one another, given whether an event is relevant. Queues,
        dead time, buffers and idle power are not modelled.

    Error:
        Not validated: no measurement of a trigger was available.

    Source:
        Message rates on a chain of classifiers, by expectation: rate, precision and recall follow
        from true and false positive rates. Figures of the stages are the user's.

    Example:
        options:
          stages:
            front: {true_rate: 0.99, energy: 1 nJ, bit_energy: 1 pJ}
            farm: {true_rate: 0.95, false_rate: 0.01, energy: 10 mJ, bit_energy: 10 pJ}
          rate: 40 MHz
          relevant: 0.001
          event_bits: 8000000.0
        parameters: {front_on: [true, false], front_false_rate: [0.01, 0.1]}

    Raises:
        SpecError: there is no stage, or a figure is unknown or no amount.
    """

    stages: Mapping[str, Mapping[str, float | str]]
    rate: float | str | None = None
    relevant: float | None = None
    event_bits: float | None = None

    def __post_init__(self) -> None:
        if not self.stages:
            raise SpecError("stages is empty", hint=f"stages: {_EXAMPLE}", part=["stages"])
        table = {**_INPUTS, **dict(self._inputs_of_stages())}
        stated = {
            f"{stage}_{name}": _figure(stage, name, value)
            for stage, figures in self.stages.items()
            for name, value in figures.items()
        }
        self.declare(Readings.of(table, self).fixed(stated))

    def compute(self, inputs: Mapping[str, Floats], /) -> Mapping[str, Floats]:
        """Return the metrics of n designs, each (n,)."""
        good = inputs["rate"] * inputs["relevant"]
        bad = inputs["rate"] - good
        all_good, compute_w, link_w = good, np.zeros_like(good), np.zeros_like(good)
        for stage in self.stages:
            runs = inputs[f"{stage}_on"] > 0
            reached = np.where(runs, good + bad, 0.0)
            compute_w = compute_w + reached * inputs[f"{stage}_energy"]
            link_w = link_w + reached * inputs["event_bits"] * inputs[f"{stage}_bit_energy"]
            good = np.where(runs, good * inputs[f"{stage}_true_rate"], good)
            bad = np.where(runs, bad * inputs[f"{stage}_false_rate"], bad)
        kept = good + bad
        recall = good / all_good
        precision = np.where(kept > 0, good / np.where(kept > 0, kept, 1.0), 0.0)
        both = precision + recall
        power_w = compute_w + link_w
        return {
            "power": power_w,
            "compute_power": compute_w,
            "link_power": link_w,
            "kept_rate": kept,
            "recall": recall,
            "precision": precision,
            "f1": np.where(both > 0, 2 * precision * recall / np.where(both > 0, both, 1.0), 0.0),
            "relevant_per_kilojoule": 1e3 * good / np.maximum(power_w, np.finfo(float).eps),
        }

    def _inputs_of_stages(self) -> Iterator[tuple[str, Reading]]:
        for stage in self.stages:
            yield f"{stage}_on", Flag(default=True)
            yield from ((f"{stage}_{name}", one) for name, one in _STAGE.items())


def _figure(stage: str, name: str, value: float | str) -> float:
    if name not in _STAGE:
        hint = nearest(name, _STAGE)
        raise SpecError(f"the stage {stage!r} has no {name!r}", hint=hint, part=["stages", stage])
    try:
        return amount(f"{stage}: {name}", value, _STAGE[name].unit)
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=["stages", stage]) from error
