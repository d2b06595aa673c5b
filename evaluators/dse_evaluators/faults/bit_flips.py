"""Evaluator `faults.bit-flips`: bit flips in the stored weights of a real model, and protection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.separable import Separable
from dse.core.values import Floats, Value
from dse.errors import SpecError, nearest
from dse_evaluators.compression.layer_sums import parameters_of_layers
from dse_evaluators.compression.template import Template, members
from dse_evaluators.counts import check_count
from dse_evaluators.faults.criterion import PREDICTION, Criterion
from dse_evaluators.faults.flip_sizes import flip_sizes
from dse_evaluators.faults.layer_campaign import (
    FlipCampaign,
    LayerFaults,
    rank_layers,
    sum_layer_faults,
)
from dse_evaluators.faults.layer_protections import LayerProtections, overhead_of_layer
from dse_evaluators.faults.proportions import Proportion, wilson
from dse_evaluators.faults.protections import protection_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.own.drawn_examples import draw_examples
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.trained_models import trained_weights
from dse_evaluators.workloads.workload import Split, check_split

OVERHEAD: Mapping[str, Metric] = {
    "bits_overhead": Metric(name="bits_overhead", goal="minimize"),
    "time_overhead": Metric(name="time_overhead", goal="minimize"),
}
"""Costs of a protection."""

RATES: Mapping[str, Metric] = {
    "sdc_rate": Metric(name="sdc_rate", goal="minimize"),
    "sdc_low": Metric(name="sdc_low", goal="minimize"),
    "sdc_high": Metric(name="sdc_high", goal="minimize"),
}
"""Rate of silent data corruptions, with its 95 % interval."""

_CLASSES = frozenset({"accuracy", "top-5", "f1", "mismatch", "perplexity", "bits_per_character"})
_TOLERANCE = 0.01
_SEED = "seed"


@dataclass(kw_only=True)
class BitFlips:
    """Silent data corruptions by bit flips in the stored weights of a real model, and protection.

    Bits flip in the codes of each layer's number format, as they are stored. Names in braces are
    design parameters; a list parameter has one element per layer, in the order of the model.

    A flip is a *silent data corruption* if it changes the prediction of more than ``tolerance`` of
    the examples, or if it makes a quality metric worse by more than ``tolerance``, compared with
    the model in the same formats without faults. ``sdc_rate`` is the number of silent data
    corruptions for each flip that the unprotected model suffers: check bits suffer flips at the
    same rate, and a protection that stores more bits suffers more of them. Without a protection it
    is the share of flips that corrupt. ``sdc_low`` and ``sdc_high`` are the ends of its 95 %
    interval. The quality metrics of the model are means over the flips. ``bits_overhead`` is the
    number of additional bits over the number of stored bits; ``time_overhead`` is modelled: the
    operations that check each weight once, over a multiplication and an addition with each weight.

    Args:
        model: name of the model, or a model of yours: a path, ``{python: net.py:make}`` or, in
            Python, a ``torch.nn.Module``; see ``docs/how-to/own-model.md``.
        format: number format of the weights, such as ``fp32``, ``fp8_e4m3`` or ``int8:channel``.
        protection: protection of each layer: ``none``; ``clip`` (weights outside of the layer's
            range are set to its ends) or ``range-zero`` (weights outside of the range are read as
            zero); ``parity`` (a word with an odd number of flips is read as zero) or
            ``exponent-parity`` (a word with an odd number of flips in sign and exponent is read as
            zero); ``duplicate`` (a word whose two copies of sign and exponent differ is read as
            zero); ``ecc`` (one flip of a word is corrected, two are read as zero); ``tmr`` (each
            bit is the majority of three copies).
        layers: protections of layers that differ from ``protection``, by name pattern; the first
            match applies.
        where: name pattern of the layers whose bits flip.
        bits: bits that flip: ``all``, ``sign``, ``exponent``, ``mantissa``, or a position from 0,
            the lowest. Check bits flip only with ``all``.
        trials: number of single flips in each layer, with a pilot sample of a fifth of them, or
            number of fault patterns if there is a ``rate``.
        rate: probability that a bit flips; without it, each run has a single flip.
        criterion: ``prediction``, or the quality metric that decides what a corruption is; by
            default ``prediction`` for classifiers and language models, else the first metric.
        tolerance: share of the examples, or loss of the metric; by default 0 for ``prediction``,
            else 0.01.
        split: examples for the runs: ``search`` or ``test``.
        data: examples of a model of yours: a path, ``{python: data.py:make}`` or, in Python,
            arrays ``(inputs, targets)``.
        quality: quality metrics of a model of yours; see ``docs/how-to/own-model.md``.
        examples: maximal number of examples for the runs of a model of yours.

    Inputs:
        seed: seed of the flips; a study's ``replicates`` set it.

    Limits:
        Weights only: activations, biases, scales, zero points and the ends of ranges (counted in
        three copies) do not flip. An ONNX file runs from the faulty layer on; other models run as
        a whole for each flip. All protections of a layer share their runs.

    Error:
        The only error is that of sampling, and the interval states it. Flips are stratified by the
        change of the weight that is read; flips that change nothing are not run, and a pilot sample
        decides from which strata the other flips are drawn.

    Example:
        options: {model: digits-cnn, format: "{format}", protection: "{protection}", trials: 3}
        parameters: {format: [fp8_e4m3], protection: [none, parity, duplicate, tmr]}
        objectives: {sdc_rate: minimize, bits_overhead: minimize}

    Source:
        Li et al., Understanding Error Propagation in Deep Learning Neural Network Accelerators and
        Applications, 2017 (silent data corruption of a prediction); Chen et al., Ranger, 2021
        (range restriction); Cochran, Sampling Techniques, 1977 (stratified estimates).

    Raises:
        PluginError: the model or the split is unknown.
        SpecError: a format, a protection or bits do not exist or do not fit one another, a pattern
            matches no layer, or a number is out of range.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: object
    format: str = "fp32"
    protection: str = "none"
    layers: Mapping[str, str] = field(default_factory=dict)
    where: str = "*"
    bits: str = "all"
    trials: int = 100
    rate: float | None = None
    criterion: str | None = None
    tolerance: float | None = None
    split: Split = "search"
    data: object = None
    quality: object = None
    examples: int | None = None

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset({_SEED}), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)
    starts: tuple[str, ...] = field(init=False)
    notes: tuple[str, ...] = field(init=False)
    missing: str = field(init=False)
    parts: Mapping[str, Separable] = field(init=False, repr=False, compare=False)
    """Metrics that are sums over layers: overheads exactly, ``sdc_rate`` and quality about."""

    def __post_init__(self) -> None:
        check_split(self.split)
        check_count("trials", self.trials, least=1)
        if self.examples is not None:
            check_count("examples", self.examples, least=1)
        named = model_ref(self.model, self.data, self.quality, runs=True)
        self._model = draw_examples(named, self.examples)
        own = None if isinstance(self._model, str) else self._model
        self.starts = () if own is None else own.starts
        self.notes = () if own is None else own.notes
        self.missing = "" if own is None else own.missing
        self._chosen = LayerProtections(self._model, self.format, self.protection, self.layers)
        self._where, self._bits = Template.of(self.where), Template.of(self.bits)
        self.provides = {**RATES, **OVERHEAD, **model_of(self._model).metrics}
        self.version = f"2-{edition_of(self._model)}"
        self.reads = self._chosen.reads | {*self._where.names, *self._bits.names}
        self._check_numbers()
        self._rule = self._criterion_of()
        self.check_values({})
        self.parts = self._sums() if self._chosen.is_known else {}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        for template in (self._where, self._bits):
            for name in template.names:
                if members(name, tuple(values)):
                    raise SpecError(f"{name!r} is a list, but the layers share {template.text!r}")
        self._chosen.check(values, self._bits)
        if self._chosen.is_known:
            for where in self._where.fillings(values, 0):
                self._chosen.chosen_layers(where)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        for part in self._chosen.parts:
            part.check_lengths(tuple(batch.names))
        qualities = model_of(self._model).metrics
        return one_by_one(
            batch, self.provides, self._measure_design, uncertain=("sdc_rate", *qualities)
        )

    def rank_layers(self, design: Mapping[str, Value]) -> list[LayerFaults]:
        """Return the result of the single flips in each layer, the most vulnerable layer first.

        Args:
            design: values of the design parameters.

        Raises:
            SpecError: the evaluator has a rate, so that flips are not single.
        """
        if self.rate is not None:
            raise SpecError("layers are ranked by single flips", hint="leave out rate")
        return rank_layers(self._measure_layers(design))

    def trained_weights(self) -> Mapping[str, str]:
        """Return the hash of the model's weights, if this machine trains them."""
        return trained_weights(self._model)

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        overheads = self._overheads(design)  # first: it checks that formats have the protections
        if self.rate is None:
            sdc, quality = sum_layer_faults(self._measure_layers(design))
        else:
            sdc, quality = self._measure_patterns(design)
        names = model_of(self._model).metrics
        values = {
            "sdc_rate": sdc.value,
            "sdc_low": sdc.low,
            "sdc_high": sdc.high,
            **dict(zip(names, quality[0].tolist(), strict=True)),
            **overheads,
        }
        errors = {"sdc_rate": sdc.stderr, **dict(zip(names, quality[1].tolist(), strict=True))}
        return Found(values=values, errors=errors)

    def _measure_layers(self, design: Mapping[str, Value]) -> list[LayerFaults]:
        chosen = self._chosen.of_layers(design)
        campaign = self.campaign(design)
        return [
            campaign.measure_layer(name, protection_of(chosen[name][1]), self._seed(design))
            for name in self._chosen.chosen_layers(self._where.fill(design, 0))
        ]

    def _measure_patterns(self, design: Mapping[str, Value]) -> tuple[Proportion, Floats]:
        from dse_evaluators.faults.rate_campaign import run_patterns

        assert self.rate is not None
        chosen = self._chosen.of_layers(design)
        where = self._chosen.chosen_layers(self._where.fill(design, 0))
        campaign = self.campaign(design)
        outcomes = run_patterns(
            campaign.runner,
            {name: campaign.layers[name] for name in where},
            {name: protection_of(chosen[name][1]) for name in where},
            self._bits.fill(design, 0),
            self.rate,
            (self._seed(design), self.trials),
        )
        quality = np.array([one.quality for one in outcomes])  # (trials, q)
        errors = quality.std(axis=0) / np.sqrt(len(quality))
        sdc = wilson(sum(one.corrupt for one in outcomes), len(outcomes))
        return sdc, np.stack([quality.mean(axis=0), errors])

    def campaign(self, design: Mapping[str, Value]) -> FlipCampaign:
        """Return the campaign of a design's number formats, with the outcomes of earlier designs.

        Args:
            design: values of the design parameters.
        """
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.faults.campaigns import campaign_of

        formats = tuple((name, form) for name, (form, _) in self._chosen.of_layers(design).items())
        bits = self._bits.fill(design, 0)
        return campaign_of(self._model, formats, self.split, self._rule, (bits, self.trials))

    def _overheads(self, design: Mapping[str, Value]) -> dict[str, float]:
        costs = [
            overhead_of_layer(self._model, name, form, protection)
            for name, (form, protection) in self._chosen.of_layers(design).items()
        ]
        bits, stored, operations, needed = np.sum(costs, axis=0).tolist()
        return {"bits_overhead": bits / stored, "time_overhead": operations / needed}

    def _sums(self) -> dict[str, Separable]:
        """Return the declaration of each metric as a sum over the layers."""
        groups = parameters_of_layers(self._chosen.parts)
        sizes = Separable(groups=groups, features=partial(flip_sizes, self._chosen))
        plain = Separable(groups=groups, monotone=False)
        qualities = dict.fromkeys(model_of(self._model).metrics, sizes)
        return {"sdc_rate": sizes, **dict.fromkeys(OVERHEAD, plain), **qualities}

    def _seed(self, design: Mapping[str, Value]) -> int:
        return int(design.get(_SEED, 0))

    def _check_numbers(self) -> None:
        if self.rate is not None and not 0 < self.rate <= 1:
            raise SpecError(
                f"rate is {self.rate:g}",
                hint="the probability that a bit flips, above 0 and at most 1",
                part=["rate"],
            )
        if self.tolerance is not None and not 0 <= self.tolerance < np.inf:
            hint = "a share of the examples or a loss of the metric, from 0"
            raise SpecError(f"tolerance is {self.tolerance:g}", hint=hint, part=["tolerance"])

    def _criterion_of(self) -> Criterion:
        """Return the criterion by which a run counts as a silent data corruption."""
        metrics = model_of(self._model).metrics
        usual = PREDICTION if _CLASSES & metrics.keys() else next(iter(metrics))
        name = self.criterion or usual
        if name not in {PREDICTION, *metrics}:
            hint = nearest(name, (PREDICTION, *metrics))
            raise SpecError(f"there is no criterion {name!r}", hint=hint, part=["criterion"])
        default = 0.0 if name == PREDICTION else _TOLERANCE
        tolerance = default if self.tolerance is None else float(self.tolerance)
        if name == PREDICTION and tolerance >= 1:
            hint = "a share of the examples, below 1"
            raise SpecError(f"tolerance is {tolerance:g}", hint=hint, part=["tolerance"])
        sign = -1 if name != PREDICTION and metrics[name].goal == "maximize" else 1
        return Criterion(name=name, tolerance=tolerance, sign=sign)
