"""The evaluator ``outside.mlsysim``: mlsysim 0.3.0's roofline of a model on one device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.generic.options import seconds_of
from dse_evaluators.outside.asking import evaluate_designs
from dse_evaluators.outside.environments import ENVIRONMENTS
from dse_evaluators.outside.external_inputs import Knob, SimulatorInputs
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
    """Latency and energy of inference on one batch, by mlsysim in its own environment.

    Kernels take the longer of ``compute`` and ``memory``. A design takes about a millisecond, and
    as much for communication, so the kind is *measured*: optimizers then avoid millions of calls.
    ``efficiency`` is the assumed share of peak throughput that is reached; results depend directly
    on it. Memory traffic is the weights times 1 + 0.1 batch for every model. A result is
    ``extrapolated`` if mlsysim has no rate of the device for the precision; it then uses that of
    fp16. A model that does not fit in memory is infeasible here; mlsysim itself would charge PCIe
    transfers.

    Args:
        model: a name in mlsysim's registry, such as ``Llama3_8B`` or ``ResNet50``.
        timeout: time limit of each design: seconds, or a text such as ``5 min``.
        python: a Python that has mlsysim 0.3.0, instead of the environment that
            ``dse environments install mlsysim`` creates.
        device: a name in mlsysim's registry or of this project's devices. If given, this input is
            fixed and not read from the design.
        precision: fixes the input of this name; so do the following options.

    Limits:
        A millisecond a design after a start of 4 s. Needs ``dse environments install mlsysim``.

    Error:
        15 to 30 % by its own README; it depends on ``efficiency``. Against ``accelerators.gpu`` on
        20 random networks, devices and batches: Spearman 0.98 for latency, 0.96 for energy
        (``benchmarks/outside_models.py``).

    Source:
        mlsysim 0.3.0; Williams et al., 2009 (roofline).

    Example:
        options: {model: Llama3_8B}
        parameters: {device: [v100-sxm2, mi300x], batch: [1, 8], precision: [fp16]}
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
        """Return latency and energy of n designs, (n,) by name, evaluated one at a time."""
        return evaluate_designs(batch, self._tool.service(), tuple(self.provides), self._knobs.of)
