"""The evaluator ``outside.zigzag``: the best loop orders that ZigZag 3.9.1 finds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats
from dse.errors import SpecError
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.outside.asking import evaluate_designs
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.outside.external_inputs import Knob, SimulatorInputs
from dse_evaluators.outside.layer_shapes import shapes
from dse_evaluators.outside.service import TimeLimits
from dse_evaluators.outside.tool import Tool
from dse_evaluators.readings import word
from dse_evaluators.workloads.own.own_workload import known_layers

_J_PER_PJ = 1e-12
_GOALS = ("latency", "energy", "EDP")
# Defaults are those of ZigZag's own ``tpu_like``: 2 MiB for inputs and outputs, 128 B of weights in
# each of 32 x 32 processing elements, 64 bits per cycle from DRAM.
_KNOBS = (
    Knob(name="rows"),
    Knob(name="cols"),
    Knob(name="ifmap_sram", unit="B", default=1048576.0),
    Knob(name="filter_sram", unit="B", default=131072.0),
    Knob(name="ofmap_sram", unit="B", default=1048576.0),
    Knob(name="clock", unit="Hz", default=700e6),
    Knob(name="dram_bandwidth", unit="B/s", default=5.6e9),
)
_CYCLES = ("compute_cycles", "stall_cycles", "transfer_cycles")
_ENERGIES = ("mac_energy", "memory_energy")
_SIMULATED = (*_CYCLES, *_ENERGIES, "macs")
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="cycles", goal="minimize"),
    *(Metric(name=name, goal="minimize", part_of="cycles") for name in _CYCLES),
    Metric(name="utilization", goal="maximize"),
    Metric(name="energy", unit="J", goal="minimize"),
    *(Metric(name=name, unit="J", goal="minimize", part_of="energy") for name in _ENERGIES),
    Metric(name="bottleneck", words=("compute", "memory")),
)


class ZigZag:
    """Cycles and energy of a workload on a tensor processor, under the best loop orders found.

    ZigZag searches loop orders for every layer, in its own environment, which takes seconds per
    layer. Its kind is therefore *measured*, though it is deterministic, so that optimizers avoid
    millions of calls. The accelerator is ZigZag's weight-stationary ``tpu_like``. Inputs and
    outputs share one buffer, of the sum of both sizes; ``filter_sram`` is divided among the
    processing elements, at least one byte each, and is filled from DRAM. The energy per access does
    not depend on the sizes. Words have 8 bits, sums 16.

    Args:
        workload: a name in ``workloads.catalogue``, or a file of yours (``docs/workloads.md``).
        optimize: the objective of the search: ``latency``, ``energy`` or ``EDP``.
        loop_factors: number of loop factors to order in the search; more take longer.
        timeout: time limit of each design: seconds, or a text such as ``5 min``.
        python: a Python that has zigzag-dse 3.9.1, instead of the environment that
            ``dse environments install zigzag`` creates.
        rows: rows of the array. If given, this input is fixed and not read from the design; so for
            the following options: buffer sizes are in bytes, the clock in Hz, the DRAM bandwidth in
            bytes per second.

    Limits:
        0.3 to 3 s a layer. Needs ``dse environments install zigzag``. Fails on layers that the
        array computes in one step.

    Error:
        Against ``accelerators.systolic`` on 20 random networks, with buffers as in ``tpu_like``:
        latency Spearman 0.97, 19 % off; energy 0.96, 3.7 times as high; after calibration 13 % and
        22 %. With random buffers Spearman is 0.87 and 0.67 (19 points). On one network, whose
        energy hardly varies: 0.88 and 0.13 (19 % and 1.5 % off). Details: ``docs/outside.md``.

    Source:
        Mei et al., 2021: ZigZag 3.9.1 itself, on its ``tpu_like``.

    Example:
        options: {workload: movielens-dlrm}
        parameters: {rows: [8, 16], cols: [8, 16], ifmap_sram: [4096, 65536]}

    Raises:
        SpecError: the workload is unknown, or an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    kind: Kind = "measured"
    version = f"1, zigzag {ENVIRONMENTS['zigzag'].version}"

    def __init__(  # noqa: PLR0913 - each is a word of the YAML
        self,
        *,
        workload: object = "digits-cnn",
        optimize: str = "latency",
        loop_factors: int = 4,
        timeout: float | str = "30 min",
        python: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        ifmap_sram: float | str | None = None,
        filter_sram: float | str | None = None,
        ofmap_sram: float | str | None = None,
        clock: float | str | None = None,
        dram_bandwidth: float | str | None = None,
    ) -> None:
        word(*_GOALS)("optimize", optimize)
        if loop_factors < 1:
            raise SpecError(f"loop_factors is {loop_factors}", hint="a whole number from 1")
        fixed = {
            "rows": rows,
            "cols": cols,
            "ifmap_sram": ifmap_sram,
            "filter_sram": filter_sram,
            "ofmap_sram": ofmap_sram,
            "clock": clock,
            "dram_bandwidth": dram_bandwidth,
        }
        self._knobs = SimulatorInputs(_KNOBS, fixed)
        self.reads, self.optional = self._knobs.reads, self._knobs.optional
        self.units = self._knobs.units
        self.provides = {metric.name: metric for metric in _METRICS}
        options = {
            "layers": shapes(known_layers(self, workload)),
            "opt": optimize,
            "lpf_limit": loop_factors,
        }
        limits = TimeLimits(design_s=seconds_of("timeout", timeout))
        self._tool = Tool("zigzag", options, limits, python)
        self.starts = self._tool.starts

    def evaluate(self, batch: Batch) -> Metrics:
        """Return cycles and energy of n designs, (n,) by name, evaluated one at a time."""
        simulated = evaluate_designs(batch, self._tool.service(), _SIMULATED, self._knobs.of)
        knobs = [self._knobs.of(batch.row(row)) for row in range(len(batch))]
        clock, rows, cols = (
            np.array([float(one[name]) for one in knobs]) for name in ("clock", "rows", "cols")
        )
        columns = {name: simulated.columns[name] for name in _CYCLES}
        cycles = _total(columns, _CYCLES)
        columns |= {name: simulated.columns[name] * _J_PER_PJ for name in _ENERGIES}
        columns["cycles"] = cycles
        columns["latency"] = cycles / clock
        columns["utilization"] = simulated.columns["macs"] / (cycles * rows * cols)
        columns["energy"] = _total(columns, _ENERGIES)
        waits = columns["stall_cycles"] + columns["transfer_cycles"]
        columns["bottleneck"] = (waits > columns["compute_cycles"]).astype(np.float64)
        return Metrics(columns=columns, failures=simulated.failures)


def _total(columns: Mapping[str, Floats], parts: Sequence[str]) -> Floats:
    first, *others = (columns[part] for part in parts)
    total = first.copy()
    for part in others:
        total += part
    return total
