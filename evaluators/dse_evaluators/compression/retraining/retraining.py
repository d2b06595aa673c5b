"""Evaluator `compression.retraining`: a real network, compressed, retrained and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.retraining.retrained_networks import MODELS, Circumstances
from dse_evaluators.compression.retraining.retraining_knobs import (
    KNOBS,
    Knobs,
    check_knob,
    knobs_of,
    read_by,
)
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings
from dse_evaluators.workloads.judging import CLASSIFIER
from dse_evaluators.workloads.judging import METRICS as QUALITY
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

METRICS: Mapping[str, Metric] = {
    **{name: QUALITY[name] for name in CLASSIFIER},
    **{
        metric.name: metric
        for metric in (
            Metric(name="tail_mismatch", goal="minimize"),
            Metric(name="head_mismatch", goal="minimize"),
            QUALITY["tail_gap"],
            Metric(name="size", unit="B", goal="minimize"),
            Metric(name="inference_flops", unit="flop", goal="minimize"),
            Metric(name="training_flops", unit="flop", goal="minimize"),
        )
    },
}

QUALITIES = tuple(sorted(METRICS.keys() - {"size", "inference_flops", "training_flops"}))
"""Metrics that depend on the split."""


@dataclass(kw_only=True)
class Retraining:
    """Compression and retraining of a trained network, measured on held-out images.

    Settings in ``knobs`` are fixed; the others are read from the design, or keep their defaults. A
    mismatch is the fraction of images that the compressed and the uncompressed network classify
    differently; ``tail_mismatch`` is that of the last five classes, ``head_mismatch`` that of the
    others. ``size`` is that of the stored network; ``inference_flops`` are operations per image if
    zeros are skipped, and ``training_flops`` those of the retraining, including zeros.

    Args:
        model: name of the network.
        split: images for the metrics: ``search`` or ``test``.
        tail_keep: fraction of the training images of the last five classes that is used, 0.05 to 1.
        noise: standard deviation of normal noise on all pixels, where white is 1; 0 to 2.
        knobs: values of knobs that are not read from the design; :class:`Knobs` describes them.

    Limits:
        1 to 8 s a design; trained networks are cached.

    Error:
        The size is that of bytes read back and run, FLOPs are counted. Accuracy has steps of 0.44 %
        (225 digits).

    Source:
        Joseph et al., 2020 (Condensa); Hinton et al., 2015; Lym et al., 2019 (PruneTrain); Zhu and
        Gupta, 2017 (gradual); Lee et al., 2019 (distortion); Jeon et al., 2023 (diagonals).

    Example:
        options: {model: digits-mlp}
        parameters: {method: [magnitude, masked], density: [0.1, 0.3], epochs: [5]}

    Raises:
        PluginError: the model or split is unknown, or ``tail_keep`` or ``noise`` is out of range.
        SpecError: a knob is unknown or has an invalid value.
    """

    model: str = "digits-cnn"
    split: Split = "search"
    tail_keep: float = 1.0
    noise: float = 0.0
    knobs: Mapping[str, Value] = field(default_factory=dict)

    reads: frozenset[str] = field(default=frozenset(), init=False)
    optional: frozenset[str] = field(init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(default="1", init=False)

    def __post_init__(self) -> None:
        if self.model not in MODELS:
            raise PluginError(f"there is no model {self.model!r}", hint=nearest(self.model, MODELS))
        check_split(self.split)
        _check_between("tail_keep", self.tail_keep, 0.05, 1.0)
        _check_between("noise", self.noise, 0.0, 2.0)
        for name, value in self.knobs.items():
            check_knob(name, value)
        self.optional = read_by(self.knobs.get("method")) - self.knobs.keys()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, dict.fromkeys(KNOBS, check_knob))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, METRICS, self._measure_design)

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=QUALITIES,
            count=RESAMPLES,
        )

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression.retraining import retraining_runner

        return retraining_runner.measure_network(*self._settings(design), self.split)

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression.retraining import retraining_runner

        settings = self._settings(design)
        values = retraining_runner.measure_network(*settings, self.split)
        return Found(values=values), retraining_runner.resample_network(*settings, self.split)

    def _settings(self, design: Mapping[str, Value]) -> tuple[Circumstances, Knobs]:
        read = {name: design[name] for name in self.optional if name in design}
        circumstances = Circumstances(
            model=self.model, tail_keep=float(self.tail_keep), noise=float(self.noise)
        )
        return circumstances, knobs_of(read, self.knobs)


def _check_between(name: str, value: object, low: float, high: float) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= float(str(value)) <= high:
        raise PluginError(f"{name} cannot be {value!r}", hint=f"a number from {low} to {high}")
