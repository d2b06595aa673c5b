"""The evaluator ``kernels.group-convolution``: timing of a grouped convolution on this CPU."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.convolution_shape import ConvolutionShape
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading

_METRICS = (
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="rate", unit="MAC/s", goal="maximize"),
    Metric(name="macs", unit="MAC"),
    Metric(name="intensity", unit="MAC"),
)

_UNCERTAIN = ("latency", "rate")

_DEFAULTS: Mapping[str, int] = {"channels": 64, "side": 56, "window": 3}
_COUNT = NumberInput(1, 1 << 16, whole=True)
_INPUTS: Mapping[str, Reading] = {
    "group": _COUNT,
    **{name: _COUNT._replace(default=value) for name, value in _DEFAULTS.items()},
}


class GroupConvolution(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """CPU time of Torch's grouped convolution in fp32 on one thread, measured.

    ``rate`` is in multiply-accumulates per second, ``intensity`` in multiply-accumulates per
    element of inputs, outputs and weights. A design is infeasible if the group does not divide the
    channels.

    Torch has different kernels for different group sizes, so that the rate is not a smooth function
    of the group: groups of two are often slower than depthwise ones.

    Args:
        batch: images per call.
        warmup: calls before timing.
        repeats: number of timed rounds, each of at least 5 ms; the result is their median and its
            standard error.

    Inputs:
        group: number of channels that one filter reads; 1: depthwise.
        channels: number of channels, and of filters.
        side: side of the square image, in pixels.
        window: side of the filter, an odd number.

    Limits:
        A measurement takes 0.1 to 0.3 s for each layer; equal layers are timed once. Latency is not
        smooth in ``group``: groups of two take seven times as long as depthwise convolutions.

    Error:
        Times are CPU seconds of one thread, which other load affects little.

    Example:
        parameters: {group: [1, 4, 8], channels: [16, 32], side: [8]}

    Raises:
        PluginError: a count is invalid.
    """

    batch: int = 1
    warmup: int = 3
    repeats: int = 15

    def __post_init__(self) -> None:
        check_count("batch", self.batch, least=1)
        check_count("warmup", self.warmup, least=0)
        check_count("repeats", self.repeats, least=2)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Measure the CPU time of n designs' convolutions, one at a time; return metrics, (n,)."""
        return one_by_one(batch, self.provides, self._measure_design, uncertain=_UNCERTAIN)

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        # Deferred: Torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.kernels.torch_convolution import measured_s

        shape = _shape(design)
        if shape.uneven:
            raise InfeasibleError(shape.uneven)
        if shape.window % 2 == 0:
            raise EvaluationError(f"a window of {shape.window} has no middle")
        timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
        seconds, error_s = measured_s(shape, timing)
        macs = shape.macs * self.batch
        rate = macs / seconds
        return Found(
            values={
                "latency": seconds,
                "rate": rate,
                "macs": float(macs),
                "intensity": shape.macs / shape.words,
            },
            errors={"latency": error_s, "rate": rate * error_s / seconds},
        )


def _shape(design: Mapping[str, Value]) -> ConvolutionShape:
    sizes = {name: int(design.get(name, value)) for name, value in _DEFAULTS.items()}
    return ConvolutionShape(group=int(design["group"]), filters=sizes["channels"], **sizes)
