"""Evaluator `training.run`: a network that is trained by a recipe, and measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import InfeasibleError, SpecError, nearest
from dse.protocols import Evaluator
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.scaling.recipes.learning_rates import (
    FALLING,
    OPTIMIZERS,
    PRECISIONS,
    RULES,
    SCHEDULES,
    TrainingRecipe,
)
from dse_evaluators.workloads.on_test_split import OnTestSplit
from dse_evaluators.workloads.own.model_file import names_file
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.own.own_quality import qualities_of
from dse_evaluators.workloads.resampling import RESAMPLES
from dse_evaluators.workloads.workload import Split, check_split

SHIPPED = ("digits-mlp", "digits-cnn")
STARTS = ("given", "random")

_WORDS: Mapping[str, Sequence[str]] = {
    "optimizer": OPTIMIZERS,
    "schedule": SCHEDULES,
    "precision": PRECISIONS,
    "rule": RULES,
}
_INPUTS: Mapping[str, Reading] = {
    "optimizer": one_of(OPTIMIZERS, "adam"),
    "learning_rate": NumberInput(1e-9, 100),
    "schedule": one_of(SCHEDULES, "constant"),
    "final_rate": NumberInput(0, 1, default=0),
    "warmup": NumberInput(0, 1, default=0),
    "weight_decay": NumberInput(0, 10, default=0),
    "epochs": NumberInput(1, 100_000, default=10, whole=True),
    "batch": NumberInput(1, 1e9, default=32, whole=True),
    "batch_growth": NumberInput(1, 1024, default=1, whole=True),
    "interval": NumberInput(1, 100_000, default=1, whole=True),
    "rate_decay": NumberInput(1e-6, 1, default=1),
    "precision": one_of(PRECISIONS, "fp32"),
    "rule": one_of(RULES, "backprop"),
    "frozen": NumberInput(0, 10_000, default=0, whole=True),
    "data_share": NumberInput(1e-6, 1, default=1),
    "seed": NumberInput(0, 2**31 - 1, default=0, whole=True),
}
_COMMON = (
    Metric(name="updates", goal="minimize"),
    Metric(name="training_time", unit="s", goal="minimize"),
    Metric(name="training_loss", goal="minimize"),
    Metric(name="activation_memory", unit="B", goal="minimize"),
    Metric(name="energy", unit="J", goal="minimize"),
)
_NO_COUNTER = "no energy counter of this machine can be read (RAPL, NVML)"
_TARGET = (
    Metric(name="time_to_target", unit="s", goal="minimize"),
    Metric(name="updates_to_target", goal="minimize"),
)


class TrainingRun(DeclaredEvaluator, reads=_INPUTS, provides=_COMMON, version="1", kind="measured"):
    """Quality, time and updates of a network that a recipe trains, on examples held out of it.

    Networks of yours are trained on the split ``calibration`` of their data, and measured after
    each epoch on the split ``search``; the time of the measurements is not counted. Equal seeds
    give equal initial weights, orders of the examples and dropout, so that replicates of two
    designs are paired: ``replicates: {count: 5, seed_input: seed}``. Training that diverges, or
    does not reach the ``target``, makes a design infeasible. ``activation_memory`` is the most that
    an update keeps for its gradients at a time: activations and masks, without the parameters.
    ``energy`` is that of all processors and devices during the updates, by the counters of RAPL and
    NVML; it is undefined where none can be read.

    Args:
        model: ``digits-mlp``, ``digits-cnn``, or a network of yours: ``{python: net.py:make}`` or,
            in Python, a ``torch.nn.Module``.
        data: examples of a network of yours, as for ``compression.recipe``; ``calibration: 0.8,
            test: 0.1`` are shares of the splits.
        quality: quality metrics of a network of yours: ``accuracy``, ``top-5``, ``auc``, ``f1``,
            ``mse``, ``perplexity``, ``bits_per_character``, ``loss``, a function, or a list.
        target: value of the first quality metric to reach; it adds ``time_to_target`` and
            ``updates_to_target``.
        start: ``given``, the weights of the network of yours, or ``random``: each layer draws
            its weights anew, by the seed.
        freeze: patterns of the names of parameters that are not trained, such as ``encoder.*``.
        split: examples for the quality: ``search``, or ``test`` for the final evaluation.

    Inputs:
        optimizer: ``sgd``, ``momentum`` and ``nesterov`` (0.9), ``adam``, ``adamw``, ``nadam``,
            ``lion``.
        learning_rate: learning rate, before the schedule.
        schedule: ``constant``; ``linear``, ``cosine`` and, in the last fifth, ``wsd`` fall to
            ``final_rate``; ``inverse-sqrt`` of the update.
        final_rate: share of the learning rate that a falling schedule ends with.
        warmup: first share of the updates, in which the rate rises linearly.
        weight_decay: factor of the weights in the gradient; of ``adamw`` and ``lion``, decoupled.
        epochs: passes over the examples.
        batch: examples of an update in the first epochs.
        batch_growth: factor of ``batch`` after each interval.
        interval: epochs between two factors of ``batch`` and of the learning rate.
        rate_decay: factor of the learning rate after each interval.
        precision: ``bf16`` computes products in bfloat16, and keeps weights in single precision.
        rule: ``backprop``, or ``mono-forward``: each layer learns by a loss of its own, behind a
            projection to the outputs; for a ``Sequential`` with two hidden layers or more.
        frozen: number of first layers that are not trained.
        data_share: share of the training examples that is used, drawn by the seed.
        seed: seed of the initial weights, the orders and the dropout.

    Limits:
        One thread of the CPU. Each network of the digits takes 0.1 to 3 s for 10 epochs.

    Error:
        Quality and updates are exact, and equal for equal seeds. Times are of this machine: use
        ``exclusive: true``.

    Source:
        Devarakonda, Naumov, Garland, 2017 (AdaBatch: growing batches); Dahl et al., 2023
        (AlgoPerf: time to a target); Gong, Li, Abdulla, 2025 (Mono-Forward); those of the
        optimizers and schedules are in the code.

    Example:
        options: {model: digits-mlp, epochs: 3, target: 0.8}
        parameters: {optimizer: [momentum, adam], learning_rate: [0.001, 0.01], batch: [32]}

    Raises:
        PluginError: the model or the split is unknown.
        SpecError: an option is invalid, or has no effect.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: object = "digits-mlp"
    data: object = None
    quality: object = None
    target: float | None = None
    start: str = "given"
    freeze: Sequence[str] = ()
    split: Split = "search"
    optimizer: str | None = None
    learning_rate: float | None = None
    schedule: str | None = None
    final_rate: float | None = None
    warmup: float | None = None
    weight_decay: float | None = None
    epochs: int | None = None
    batch: int | None = None
    batch_growth: int | None = None
    interval: int | None = None
    rate_decay: float | None = None
    precision: str | None = None
    rule: str | None = None
    frozen: int | None = None
    data_share: float | None = None
    seed: int | None = None

    def __post_init__(self) -> None:
        check_split(self.split)
        self._own = self._own_model()
        own = self._own
        self.starts: tuple[str, ...] = () if own is None else own.starts
        self.missing = "" if own is None else own.missing
        self._qualities = self._quality_metrics()
        target = () if self.target is None else _TARGET
        more = {one.name: one for one in (*_COMMON, *target)}
        self.provides: Mapping[str, Metric] = {**self._qualities, **more}
        self._check_options()
        super().__post_init__()
        if own is not None:
            self.version = f"1-{own.edition}"

    def _own_model(self) -> OwnModel | None:
        """Return the model of the user; ``None`` for a shipped one.

        Raises:
            SpecError: the model cannot be trained here.
        """
        name = self.model if isinstance(self.model, str) else ""
        if name in SHIPPED:
            for option in ("data", "quality"):
                if getattr(self, option) is not None:
                    hint = "leave it out; a network of your own is {python: net.py:make}"
                    raise SpecError(f"{name} has its own {option}", hint=hint, part=[option])
            return None
        found = model_ref(self.model, self.data, self.quality, runs=True)
        if not isinstance(found, OwnModel) or (name and names_file(name)):
            raise SpecError(
                f"{name} cannot be trained",
                hint=f"{' or '.join(SHIPPED)}, or a network of yours: {{python: net.py:make}}",
                part=["model"],
            )
        return found

    def _quality_metrics(self) -> Mapping[str, Metric]:
        if self._own is None:
            return {one.metric.name: one.metric for one in qualities_of(["accuracy", "loss"])}
        for one in self._own.qualities:
            if one.outputs == "probabilities":
                raise SpecError(
                    "outputs that are trained are logits, not probabilities",
                    hint="leave out outputs, and the softmax or sigmoid at the end of the network",
                    part=["quality"],
                )
            if one.needs == "outputs":
                raise SpecError(
                    f"{one.metric.name} compares with outputs before training",
                    hint="quality: accuracy, or mse for targets that are numbers",
                    part=["quality"],
                )
        return self._own.metrics

    def _check_options(self) -> None:
        """Raise SpecError for an invalid option, or one without effect."""
        if self.start not in STARTS:
            hint = nearest(self.start, STARTS)
            raise SpecError(f"there is no start {self.start!r}", hint=hint, part=["start"])
        if self._own is None and self.start != STARTS[0]:
            problem = f"start has no effect: the weights of {self.model} are always drawn"
            raise SpecError(problem, hint="leave it out", part=["start"])
        if isinstance(self.freeze, str) or not all(isinstance(one, str) for one in self.freeze):
            hint = "as in freeze: [encoder.*]"
            raise SpecError("freeze is a list of patterns", hint=hint, part=["freeze"])
        if self.interval is not None and (self.batch_growth, self.rate_decay) == (1, 1):
            problem = "interval has no effect: neither batch_growth nor rate_decay is above 1"
            raise SpecError(problem, hint="leave it out", part=["interval"])
        if self.final_rate is not None and self.schedule not in (None, *FALLING):
            problem = f"final_rate has no effect: the schedule {self.schedule} does not fall to it"
            raise SpecError(problem, hint=f"schedule: {', '.join(FALLING)}", part=["final_rate"])

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is trained separately."""
        found = one_by_one(batch, self.provides, self._measure_design)
        absent = np.flatnonzero(np.isnan(found.columns["energy"])).tolist()
        reasons = {row: _NO_COUNTER for row in absent if row not in found.failures}
        return replace(found, undefined={"energy": reasons} if reasons else {})

    def recipe(self, design: Mapping[str, Value]) -> TrainingRecipe:
        """Return the settings of a design, with the options and defaults of the others."""
        (row,) = self._readings.rows(Batch.of([design]))
        settings: dict[str, Any] = {
            name: int(value) if getattr(_INPUTS[name], "whole", False) else value
            for name, value in row.items()
        }
        words = {name: of[int(row[name])] for name, of in _WORDS.items()}
        return TrainingRecipe(**{**settings, **words})

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return OnTestSplit(
            evaluator=held_out,
            measure=held_out._measure_resampled,  # noqa: SLF001 - of this class
            resampled=sorted(self._qualities),
            count=RESAMPLES,
        )

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        found, _ = self._train(design)
        return found.values

    def _measure_resampled(self, design: Mapping[str, Value]) -> tuple[Found, Mapping[str, Floats]]:
        from dse_evaluators.workloads.resampling import resample_quality

        found, (task, outputs) = self._train(design)
        return found, resample_quality(task, outputs, outputs, self.split)

    def _train(self, design: Mapping[str, Value]) -> tuple[Found, Any]:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.scaling.recipes import training_loop, training_task

        own = self._own
        draws = self.start == "random"
        source = (
            training_task.shipped_task(str(self.model))
            if own is None
            else training_task.own_task(own, draws=draws)
        )
        made = training_loop.train(
            source,
            self.recipe(design),
            split=self.split,
            freeze=self.freeze,
            reached=None if self.target is None else self._has_reached,
        )
        values = {
            **made.quality,
            "updates": float(made.updates),
            "training_time": made.seconds,
            "training_loss": made.loss,
            "activation_memory": float(made.activation_bytes),
        }
        if made.energy_j is not None:
            values["energy"] = made.energy_j
        if self.target is not None:
            values |= self._target_values(made.reached, made.quality)
        return Found(values=values), (source.task, made.outputs)

    def _has_reached(self, quality: Mapping[str, float]) -> bool:
        (name, metric), target = self._first, float(self.target or 0)
        better = metric.goal == "maximize"
        return quality[name] >= target if better else quality[name] <= target

    def _target_values(
        self, reached: tuple[int, float] | None, quality: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the updates and the time to the target.

        Raises:
            InfeasibleError: the target was not reached.
        """
        if reached is None:
            name = self._first[0]
            raise InfeasibleError(
                f"{name} does not reach {self.target}: it is {quality[name]:.4g} at the end"
            )
        return {"updates_to_target": float(reached[0]), "time_to_target": reached[1]}

    @property
    def _first(self) -> tuple[str, Metric]:
        """Name and metric of the quality that the target is of."""
        return next(iter(self._qualities.items()))
