"""Evaluator `compression.post-training`: a real network, pruned and quantized after training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.compression_knobs import KNOBS, check_knob, recipe_of
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.trained_models import trained_weights
from dse_evaluators.workloads.workload import Split, check_split

MODELS = ("digits-cnn",)

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="accuracy", goal="maximize"),
        Metric(name="loss", goal="minimize"),
        Metric(name="divergence", goal="minimize"),
        Metric(name="size", unit="B", goal="minimize"),
        Metric(name="latency", unit="s", goal="minimize"),
    )
}


@dataclass(kw_only=True)
class PostTraining:
    """Post-training pruning and quantization of a network, measured on held-out images.

    Settings given as options are fixed; the others are read from the design, or keep their
    defaults. ``loss`` is the cross-entropy and ``divergence`` the Kullback-Leibler divergence from
    the uncompressed network, both in nats per image.

    Args:
        model: name of the network.
        split: images for the metrics: ``search``, or ``test`` for the final evaluation.
        weight_format: number format of the weights, a name in ``FORMATS``.
        granularity: weights that share a scale: ``tensor`` or ``channel``.
        activation_format: number format of each layer's inputs.
        sparsity: fraction of zeros among the weights.
        filter_keep: fraction of the filters that is kept.
        bias_correction: whether biases are corrected for shifted mean outputs.
        repeats: number of timed rounds of forward passes, each of 5 ms or more.
        warmup: number of untimed passes before the timed rounds.
        batch: images per timed pass.

    Limits:
        0.2 to 0.7 s a design; the network is trained once, in 5 to 10 s. Small differences of
        accuracy are noise; a study measures its front again on the split ``test``, with standard
        errors. Latency is that of torch's fp32 kernels: only ``filter_keep`` makes the network
        faster, and latencies shift with the load of the machine.

    Error:
        The size is that of bytes written and read back. Accuracy is exact on the 225 digits of
        a split, in steps of 0.44 %; until version 1 it was measured on both splits together.

    Source:
        He et al., 2017 (refit by least squares); Li et al., 2017 (filters); Han et al., 2015
        (magnitudes); Finkelstein and Nagel, 2019 (bias correction).

    Example:
        options: {model: digits-cnn}
        parameters: {weight_format: [int8, fp8_e4m3], sparsity: [0.0, 0.5], filter_keep: [1.0, 0.5]}

    Raises:
        PluginError: the model or the split is unknown, or a count is out of range.
        SpecError: a knob has an invalid value.
    """

    model: str = "digits-cnn"
    split: Split = "search"
    weight_format: str | None = None
    granularity: str | None = None
    activation_format: str | None = None
    sparsity: float | None = None
    filter_keep: float | None = None
    bias_correction: bool | None = None
    repeats: int = 20
    warmup: int = 5
    batch: int = 1

    reads: frozenset[str] = field(default=frozenset(), init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(default="2", init=False)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise PluginError(f"there is no model {self.model!r}", hint=nearest(self.model, MODELS))
        check_split(self.split)
        check_count("repeats", self.repeats, least=2)
        check_count("warmup", self.warmup, least=0)
        check_count("batch", self.batch, least=1)
        for name, value in self._fixed.items():
            check_knob(name, value)
        self.optional = frozenset(KNOBS) - self._fixed.keys()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(KNOBS, check_knob))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, METRICS, self._measure_design, uncertain=("latency",))

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=("accuracy", "loss", "divergence"),
            count=RESAMPLES,
            uncertain=("latency",),
        )

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the model's weights, if this machine trains them."""
        return trained_weights(self.model)

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        return self._measure(design)[0]

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        return self._measure(design, resampled=True)

    def _measure(
        self, design: Mapping[str, Value], *, resampled: bool = False
    ) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression import runner

        knobs = {name: design[name] for name in self.optional if name in design}
        timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
        recipe = recipe_of({**knobs, **self._fixed})
        reading = runner.measure_recipe(self.model, recipe, timing, self.split, resampled=resampled)
        errors = {"latency": reading.latency_error_s}
        return Found(values=reading.metrics, errors=errors), reading.resamples

    @property
    def _fixed(self) -> dict[str, Value]:
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value is not None}
