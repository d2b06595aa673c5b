"""The evaluator `compression.post-training`: a real network compressed and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse_evaluators.compression.knobs import KNOBS, check_knob, recipe_of
from dse_evaluators.compression.timing import Timing
from dse_evaluators.counts import check_count
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings

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
    """Prunes and quantises a trained network, and runs it on images that it never saw.

    A knob that is an option here is fixed; the others are read from the design, where it has
    them. ``loss`` is the cross-entropy and ``divergence`` the Kullback-Leibler divergence from
    the uncompressed network, both in nats per image.

    Args:
        model: the network.
        weight_format: what weights are rounded to, a name of ``FORMATS``.
        granularity: ``tensor`` or ``channel``: what shares a scale.
        activation_format: what each layer's inputs are rounded to.
        sparsity: share of zeros among the weights.
        filter_keep: share of filters that stay.
        bias_correction: whether biases make up for shifted means.
        repeats: how many rounds of forward passes are timed, each of 5 ms or more.
        warmup: how many passes are made before.
        batch: images per timed pass.

    Raises:
        PluginError: no such model, or a count that is none.
        SpecError: a knob cannot be set to its value.
    """

    model: str = "digits-cnn"
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
    version: str = field(default="1", init=False)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise PluginError(f"there is no model {self.model!r}", hint=nearest(self.model, MODELS))
        check_count("repeats", self.repeats, least=2)
        check_count("warmup", self.warmup, least=0)
        check_count("batch", self.batch, least=1)
        for name, value in self._fixed.items():
            check_knob(name, value)
        self.optional = frozenset(KNOBS) - self._fixed.keys()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(KNOBS, check_knob))

    def evaluate(self, batch: Batch) -> Metrics:
        """One network after the other: a row's outcome does not depend on the batch."""
        return one_by_one(batch, METRICS, self._measure_design, uncertain=("latency",))

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        # Torch takes seconds to import, and who only checks a study needs none of it.
        from dse_evaluators.compression import runner

        knobs = {name: design[name] for name in self.optional if name in design}
        timing = Timing(warmup=self.warmup, repeats=self.repeats, batch=self.batch)
        reading = runner.measure_recipe(self.model, recipe_of({**knobs, **self._fixed}), timing)
        return Found(values=reading.metrics, errors={"latency": reading.latency_error_s})

    @property
    def _fixed(self) -> dict[str, Value]:
        values = {name: getattr(self, name) for name in KNOBS}
        return {name: value for name, value in values.items() if value is not None}
