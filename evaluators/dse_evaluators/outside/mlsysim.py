"""The evaluator ``outside.mlsysim``: mlsysim 0.3.0's roofline of a model on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.outside.asking import evaluate_designs
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.outside.knobs import Knob, SimulatorInputs
from dse_evaluators.outside.service import TimeLimits
from dse_evaluators.outside.tool import Tool

_PRECISIONS = ("fp32", "tf32", "fp16", "bf16", "fp8", "int8", "int4")
_KNOBS = (
    Knob(name="device", text=True),
    Knob(name="precision", default="fp16", words=_PRECISIONS),
    Knob(name="batch", default=1),
    Knob(name="efficiency", default=0.5),
)
_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="kernels", unit="s", goal="minimize", part_of="latency"),
    Metric(name="overhead", unit="s", goal="minimize", part_of="latency"),
    Metric(name="compute", unit="s", goal="minimize"),
    Metric(name="memory", unit="s", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
    Metric(name="memory_size", unit="B", goal="minimize"),
    Metric(name="utilization", goal="maximize"),
    Metric(name="bottleneck", words=("compute", "memory")),
    Metric(name="extrapolated", words=("no", "yes")),
)


class MlSysim:
    """Latency and energy of one inference of a batch, by mlsysim in an environment of its own.

    The kernels take the longer of ``compute`` and ``memory``. A design takes a millisecond there
    and as long to ask for: *measured*, so that an optimizer does not call it a million times.
    ``efficiency`` is the share of the peak that is reached, which nothing tells: it sets the
    answer. Memory traffic is the weights, times 1 + 0.1 batch, whatever the model. It is
    ``extrapolated`` where the device's rate at the precision is unknown to mlsysim, which then
    takes that of fp16. A model that does not fit is infeasible here; mlsysim prices it at PCIe's
    speed.

    Args:
        model: a name of mlsysim's registry, such as ``Llama3_8B`` or ``ResNet50``.
        timeout: for each design.
        python: a Python that has mlsysim 0.3.0, in place of that of
            ``dse environments install mlsysim``.
        device: fixes the knob of this name: a name of mlsysim's registry or of our devices.
        precision: fixes the knob of this name; so do the following ones.
    """

    kind: Kind = "measured"
    version = f"1, mlsysim {ENVIRONMENTS['mlsysim'].version}"

    def __init__(
        self,
        *,
        model: str = "ResNet50",
        timeout: float | str = "1 min",
        python: str | None = None,
        device: str | None = None,
        precision: str | None = None,
        batch: int | None = None,
        efficiency: float | None = None,
    ) -> None:
        fixed = {"precision": precision, "batch": batch, "efficiency": efficiency}
        self._knobs = SimulatorInputs(_KNOBS, fixed | {"device": device})
        self.reads, self.optional = self._knobs.reads, self._knobs.optional
        self.units = self._knobs.units
        self.provides = {metric.name: metric for metric in _METRICS}
        limits = TimeLimits(design_s=seconds_of("timeout", timeout))
        self._tool = Tool("mlsysim", {"model": model}, limits, python)
        self.starts = self._tool.starts

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._knobs.check(values)

    def evaluate(self, batch: Batch) -> Metrics:
        """The metrics of n designs, one after the other."""
        return evaluate_designs(batch, self._tool.service(), tuple(self.provides), self._knobs.of)
