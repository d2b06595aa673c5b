"""The evaluator ``outside.scalesim``: the cycle-accurate simulator SCALE-Sim 3.0.0 itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.outside.asking import evaluate_designs
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.outside.external_inputs import Knob, SimulatorInputs
from dse_evaluators.outside.layer_shapes import shapes
from dse_evaluators.outside.service import TimeLimits
from dse_evaluators.outside.tool import Tool
from dse_evaluators.workloads.own.own_workload import known_layers

_KIB = 1024.0
_SRAMS = ("ifmap_sram", "filter_sram", "ofmap_sram")
_KNOBS = (
    Knob(name="rows"),
    Knob(name="cols"),
    Knob(name="dataflow", default="ws", words=("os", "ws", "is")),
    *(Knob(name=name, unit="B", default=65536.0) for name in _SRAMS),
    Knob(name="clock", unit="Hz", default=700e6),
)

_WORDS = ("sram_ifmap_reads", "sram_filter_reads", "sram_ofmap_writes")
_BYTES = ("dram_ifmap_reads", "dram_filter_reads", "dram_ofmap_writes")
_SHARES = ("utilization", "mapping_efficiency", "compute_utilization")
_SIMULATED = ("cycles", "stall_cycles", *_WORDS, *_BYTES, *_SHARES)

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="cycles", goal="minimize"),
    Metric(name="stall_cycles", goal="minimize"),
    *(Metric(name=name, goal="maximize") for name in _SHARES),
    Metric(name="sram_accesses", goal="minimize"),
    *(Metric(name=name, goal="minimize", part_of="sram_accesses") for name in _WORDS),
    Metric(name="dram_traffic", unit="B", goal="minimize"),
    *(Metric(name=name, unit="B", goal="minimize", part_of="dram_traffic") for name in _BYTES),
)


class ScaleSim:
    """Cycles and traffic of a workload, by SCALE-Sim in its own environment.

    The simulator generates the addresses of every cycle, which takes seconds for a small network
    and minutes for ResNet-50. Its kind is therefore *measured*, though it is deterministic, so that
    optimizers avoid millions of calls. ``accelerators.systolic`` with ``mode: scalesim`` gives the
    same cycles immediately.

    Words are one byte. Memory never stalls the array: the simulator computes the bandwidth that it
    needs. Each group of a convolution and each head of attention is a separate layer. Shares are
    weighted by cycles.

    Args:
        workload: a name in ``workloads.catalogue``, or a file of yours (``docs/workloads.md``).
        timeout: time limit of each design: seconds, or a text such as ``5 min``.
        python: a Python that has scalesim 3.0.0 and numpy < 2.4, instead of the environment that
            ``dse environments install scalesim`` creates.
        rows: rows of the array. If given, this input is fixed and not read from the design; so for
            the following options: buffer sizes are in bytes (whole KiB), the clock in Hz.

    Limits:
        0.1 to 10 s a small network. Needs ``dse environments install scalesim``.

    Error:
        The reference for ``accelerators.systolic``: ``mode: scalesim`` has the same cycles, SRAM
        and DRAM counts on 2,100 of 2,100 random cases (``benchmarks/scalesim_exact.py``), ``mode:
        full`` without stalls the same cycles.

    Source:
        Samajdar et al., 2020: SCALE-Sim 3.0.0 itself.

    Example:
        options: {workload: movielens-dlrm}
        parameters: {rows: [8, 32], cols: [16], dataflow: [os, ws]}

    Raises:
        SpecError: the workload is unknown, or an option has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("workload",)

    kind: Kind = "measured"
    version = f"1, scalesim {ENVIRONMENTS['scalesim'].version}"

    def __init__(  # noqa: PLR0913 - each is a word of the YAML
        self,
        *,
        workload: object = "digits-cnn",
        timeout: float | str = "30 min",
        python: str | None = None,
        rows: int | None = None,
        cols: int | None = None,
        dataflow: str | None = None,
        ifmap_sram: float | str | None = None,
        filter_sram: float | str | None = None,
        ofmap_sram: float | str | None = None,
        clock: float | str | None = None,
    ) -> None:
        fixed = {
            "rows": rows,
            "cols": cols,
            "dataflow": dataflow,
            "ifmap_sram": ifmap_sram,
            "filter_sram": filter_sram,
            "ofmap_sram": ofmap_sram,
            "clock": clock,
        }
        self._knobs = SimulatorInputs(_KNOBS, fixed)
        self.reads, self.optional = self._knobs.reads, self._knobs.optional
        self.units = self._knobs.units
        self.provides = {metric.name: metric for metric in _METRICS}
        options = {"layers": shapes(known_layers(self, workload))}
        limits = TimeLimits(design_s=seconds_of("timeout", timeout))
        self._tool = Tool("scalesim", options, limits, python)
        self.starts = self._tool.starts

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._knobs.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return cycles and traffic of n designs, (n,) by name, evaluated one at a time."""
        simulated = evaluate_designs(batch, self._tool.service(), _SIMULATED, self._shown)
        columns = dict(simulated.columns)
        clock = [self._knobs.of(batch.row(row))["clock"] for row in range(len(batch))]
        columns["latency"] = columns["cycles"] / np.array(clock, dtype=np.float64)
        for total, parts in (("sram_accesses", _WORDS), ("dram_traffic", _BYTES)):
            columns[total] = sum((columns[part] for part in parts), np.zeros(len(batch)))
        return Metrics(columns=columns, failures=simulated.failures)

    def _shown(self, design: Mapping[str, Value]) -> Mapping[str, Any]:
        knobs = self._knobs.of(design)
        for name in _SRAMS:
            if float(knobs[name]) % _KIB or float(knobs[name]) <= 0.0:
                raise InfeasibleError(f"{name} is {knobs[name]} B: SCALE-Sim has whole KiB only")
        return knobs
