"""Evaluator `compression.crossbar`: a network on crossbars with noisy cells and converters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatchcase
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse_evaluators.compression.quantization_aware.training_check import check_trainable
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.trained_models import trained_weights
from dse_evaluators.workloads.workload import Split, check_split

_INPUTS: Mapping[str, Reading] = {
    "levels": NumberInput(0, 65536, default=0, whole=True),
    "noise": NumberInput(0, 1),
    "adc_bits": NumberInput(1, 16, whole=True),
    "rows": NumberInput(1, 65536, default=128, whole=True),
    "steps": NumberInput(0, 1e6, default=0, whole=True),
    "training_noise": NumberInput(0, 1, default=0),
    "training_bits": NumberInput(0, 16, default=0, whole=True),
    "seed": NumberInput(0, 2**31 - 1, default=0, whole=True),
}

_COUNTS: Mapping[str, Metric] = {
    "conversions": Metric(name="conversions", goal="minimize"),
    "conversion_steps": Metric(name="conversion_steps", goal="minimize"),
}


class Crossbar(DeclaredEvaluator, reads=_INPUTS, provides=(), version="", kind="measured"):
    """Quality of a network whose layers run on in-memory crossbars, and its conversions.

    A weight is the difference of two conductances, which have ``levels`` and normal ``noise``. The
    sum of a crossbar's column is converted with ``adc_bits``; a layer with more inputs than
    ``rows`` has several crossbars, whose sums are added after conversion. Quality is the mean over
    crossbars with other noise. ``steps`` of training adapt the network to its levels and
    converters, and to ``training_noise``: noise in the forward pass, which the gradient passes
    through unchanged. ``conversion_steps`` is the number of conversions of an example times the
    levels of a converter: times a converter's figure of merit in joules a step, it is their energy.

    Args:
        model: name of the model, or a model of yours: ``{python: net.py:make}``, a folder or, in
            Python, a ``torch.nn.Module``; see ``docs/how-to/own-model.md``.
        analog: name pattern of the layers on crossbars; the others are exact.
        draws: number of sets of crossbars, each with other noise.
        rate: learning rate of the first step of training; it falls to zero along half a cosine.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.
        data: examples of a model of yours; training uses those of the split ``calibration``.
        quality: quality metrics of a model of yours; see ``docs/how-to/own-model.md``.

    Inputs:
        levels: distinct values of a weight, evenly spaced; 0 for any value, and not 1.
        noise: standard deviation of a stored weight, relative to the layer's largest one.
        adc_bits: bits of a converter.
        rows: rows of a crossbar.
        steps: updates of training, of 32 examples each.
        training_noise: noise in training; without ``steps`` it would have no effect.
        training_bits: bits of the converters in training; 0 for those of ``adc_bits``. Where the
            network compares a sum with zero, fine ones keep its gradient.
        seed: seed of the noise; a study's ``replicates`` set it.

    Limits:
        Inputs are exact, as from ideal digital-to-analog converters. No wire resistance, drift or
        noise of reading. The range of a converter is that of the layer's sums for the batch.
        Layers that PyTorch computes in a fused call, such as ``nn.LSTM``, are refused.

    Error:
        Measured on the examples of the split; the standard error is that over the ``draws``. No
        crossbar was measured: noise is normal and independent.

    Example:
        options: {model: digits-cnn, analog: "fc*", draws: 2}
        parameters: {noise: [0.0, 0.1], adc_bits: [3, 6], levels: [8]}
        objectives: {accuracy: maximize, conversion_steps: minimize}

    Source:
        Ma, Brooks, Wei: A binary-activation, multi-level weight RNN and training algorithm for
        ADC-/DAC-free and noise-resilient processing-in-memory inference with eNVM, 2019; Joshi et
        al.: Accurate deep neural network inference using computational phase-change memory, 2020
        (noise and clipping in training); Walden: Analog-to-digital converter survey and analysis,
        1999 (the energy of a conversion is proportional to 2^bits).

    Raises:
        PluginError: the model or the split is unknown.
        SpecError: PyTorch does not train the model, a pattern matches no layer, or a number is out
            of range.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: object
    analog: str = "*"
    draws: int = 8
    rate: float = 1e-3
    split: Split = "search"
    data: object = None
    quality: object = None
    levels: int | None = None
    noise: float | None = None
    adc_bits: int | None = None
    rows: int | None = None
    steps: int | None = None
    training_noise: float | None = None
    training_bits: int | None = None

    starts: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)

    def __post_init__(self) -> None:
        check_split(self.split)
        check_count("draws", self.draws, least=1)
        if not 0 < self.rate < 1:
            raise SpecError(f"rate is {self.rate:g}", hint="above 0, below 1", part=["rate"])
        self._model = model_ref(self.model, self.data, self.quality, runs=True)
        check_trainable(self._model, "compression.crossbar")
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.missing = "" if own is None else own.missing
        if own is None or own.is_known:
            self._find_layers()
        self.provides = {**model_of(self._model).metrics, **_COUNTS}
        self.version = f"1-{edition_of(self._model)}"
        super().__post_init__()
        _check_levels((self.levels,))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        given = {**{name: (one,) for name, one in self.readings.settled.items()}, **values}
        _check_levels(given.get("levels", ()))
        trains = any(given.get("steps", (0,)))
        for name in ("training_noise", "training_bits"):
            if any(given.get(name, (0,))) and not trains:
                raise SpecError(f"{name} has no effect without training", hint="steps: 500")

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        uncertain = self.provides.keys() - _COUNTS.keys()
        rows = iter(self._readings.rows(batch))
        return one_by_one(
            batch, self.provides, lambda _: self._measure(next(rows)), uncertain=uncertain
        )

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the model's weights, if this machine trains them."""
        return trained_weights(self._model)

    def _find_layers(self) -> tuple[str, ...]:
        """Return the names of the layers on crossbars; raise SpecError if there are none."""
        layers = model_of(self._model).layers
        found = tuple(name for name in layers if fnmatchcase(name, self.analog))
        if not found:
            hint = nearest(self.analog, layers)
            raise SpecError(f"no layer matches {self.analog!r}", hint=hint, part=["analog"])
        return found

    def _measure(self, given: Mapping[str, float]) -> Found:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression.crossbar.conductances import Cells
        from dse_evaluators.compression.crossbar.crossbar_runner import (
            Crossbars,
            measure_on_crossbars,
        )
        from dse_evaluators.compression.operators.training_words import WeightTraining

        crossbars = Crossbars(
            layers=self._find_layers(),
            cells=Cells(levels=int(given["levels"]), noise=given["noise"]),
            adc_bits=int(given["adc_bits"]),
            rows=int(given["rows"]),
            training=WeightTraining(steps=int(given["steps"]), rate=self.rate),
            training_noise=given["training_noise"],
            training_bits=int(given["training_bits"] or given["adc_bits"]),
        )
        draws = int(given["seed"]) * self.draws + np.arange(self.draws)
        return measure_on_crossbars(self._model, crossbars, self.split, draws)


def _check_levels(levels: Sequence[Value | None]) -> None:
    if 1 in levels:
        raise SpecError("a weight of one level is constant", hint="levels: 2, or 0 for any value")
