"""Evaluator ``reasoning.tree``: a tree search of answers, pruned by an integer program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Ints, Value
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading
from dse_evaluators.reasoning.leaf_selection import select_leaves

_METRICS = (
    Metric(name="cache_nodes", goal="minimize"),
    Metric(name="cache_ratio", goal="maximize"),
    Metric(name="solved", goal="maximize"),
    Metric(name="classes", goal="maximize"),
)
_INPUTS: Mapping[str, Reading] = {
    "width": NumberInput(2, 128, whole=True),
    "cost_weight": NumberInput(0, 100, default=1.0),
    "diversity_weight": NumberInput(0, 100, default=1.0),
    "temperature": NumberInput(1e-3, 100, default=0.2),
}

_KINDS = 4
"""Semantically different ways in which a step can go on."""
_STEP, _NOISE = 0.7, 0.7
"""Standard deviations of a step's quality and of the reward's error: assumed."""
_HARD, _SPREAD = 3.5, 1.5
"""Mean and standard deviation of the quality that a problem demands of a right answer: assumed."""


class TreePruning(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """KV cache and solved problems of a tree search whose leaves an integer program selects.

    Each step, a reward model scores the leaves, an integer program selects some of them, and the
    width is allotted to those by their scores. Leaves share the nodes of their paths, and so their
    KV cache. The program weighs the scores against the nodes that must be held and for different
    semantic classes. ``cache_nodes`` is the mean number of nodes in the cache, ``cache_ratio`` that
    without pruning over it. ``solved`` is the share of the problems whose best-scored answer is
    right, ``classes`` the mean number of semantic classes among the answers.

    Args:
        problems: drawn problems.
        depth: steps of an answer.
        seed: seed of the drawn problems; all designs see the same ones.

    Inputs:
        width: leaves after each step.
        cost_weight: weight of the nodes that are held; 0 with ``diversity_weight`` 0: no pruning.
        diversity_weight: weight of the semantic classes among the selected leaves.
        temperature: of the softmax of scores, by which the width is allotted.

    Limits:
        Problems are drawn, not real ones: the quality of a step is a random walk, its reward is the
        quality with an error, and each of its children goes on in one of four ways. So it
        shows the direction of the weights' effects, and not the accuracy of a language model.

    Error:
        Selections equal those of an enumeration of all subsets. The 1.8 times smaller cache in
        print is not reproduced: the weights at which it is reached depend on the drawn problems.

    Example:
        options: {problems: 3, depth: 3}
        parameters: {width: [8], cost_weight: [0, 1, 2], diversity_weight: [0, 1]}

    Raises:
        SpecError: an option is no whole number above 0.

    Source:
        Hooper et al.: ETS: Efficient Tree Search for Inference-Time Scaling, 2025; Wu et al.:
        Inference Scaling Laws (REBASE), 2024, for the allotment by scores.
    """

    problems: int = 20
    depth: int = 5
    seed: int = 0
    width: int | None = None
    cost_weight: float | None = None
    diversity_weight: float | None = None
    temperature: float | None = None

    def __post_init__(self) -> None:
        check_count("problems", self.problems, least=1)
        check_count("depth", self.depth, least=1)
        check_count("seed", self.seed, least=0)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Search the drawn problems with n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, self.provides, self._measure, uncertain=())

    @cached_property
    def _unpruned(self) -> dict[tuple[int, float], float]:
        """Nodes in the cache without pruning, by width and temperature, as far as computed."""
        return {}

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen = {**self._readings.defaults, **design, **self._readings.settled}
        width, cost, diversity, temperature = (float(chosen[name]) for name in _INPUTS)
        found = self._search(int(width), cost, diversity, temperature)
        key = int(width), temperature
        if key not in self._unpruned:
            self._unpruned[key] = self._search(*key[:1], 0.0, 0.0, temperature)["cache_nodes"]
        return Found(
            values={**found, "cache_ratio": self._unpruned[key] / found["cache_nodes"]}, errors={}
        )

    def _search(
        self, width: int, cost: float, diversity: float, temperature: float
    ) -> dict[str, float]:
        """Return the means over the problems."""
        runs = []
        for problem in range(self.problems):
            rng = np.random.default_rng([self.seed, problem])
            runs.append(_search_one(rng, self.depth, width, (cost, diversity, temperature)))
        names = ("cache_nodes", "solved", "classes")
        return dict(zip(names, np.mean(runs, axis=0).tolist(), strict=True))


@dataclass(slots=True)
class _Leaves:
    """Leaves of a tree: nodes of their paths, (n, depth), qualities, scores and classes, (n,)."""

    paths: Ints
    quality: Floats
    score: Floats
    kind: Ints

    def take(self, rows: Ints) -> _Leaves:
        return _Leaves(self.paths[rows], self.quality[rows], self.score[rows], self.kind[rows])


def _search_one(
    rng: np.random.Generator, depth: int, width: int, weights: Sequence[float]
) -> tuple[float, float, float]:
    """Return the mean nodes in the cache, whether the best answer is right, and the classes."""
    cost, diversity, temperature = weights
    nothing = np.zeros(1)
    leaves = _Leaves(np.zeros((1, 1), dtype=np.int64), nothing, nothing, nothing.astype(np.int64))
    nodes, held, demand = 1, [], rng.normal(_HARD, _SPREAD)
    for _ in range(depth):
        children = allot_width(leaves.score, width, temperature)
        parents = np.repeat(np.arange(len(children)), children)
        own = leaves.take(parents)
        names = np.arange(nodes, nodes + len(parents))
        nodes += len(parents)
        quality = own.quality + rng.normal(0.0, _STEP, len(parents))
        score = quality + rng.normal(0.0, _NOISE, len(parents))
        kind = own.kind * _KINDS + rng.integers(_KINDS, size=len(parents))
        leaves = _Leaves(np.column_stack([own.paths, names]), quality, score, kind)
        if cost or diversity:
            share = allot_width(score, width, temperature) / width
            kept = select_leaves(leaves.paths, leaves.kind, share, cost, diversity)
            leaves = leaves.take(np.flatnonzero(kept))
        held.append(len(np.unique(leaves.paths)))
    best = int(np.argmax(leaves.score))
    right = float(leaves.quality[best] > demand)
    return float(np.mean(held)), right, float(len(np.unique(leaves.kind)))


def allot_width(score: Floats, width: int, temperature: float) -> Ints:
    """Allot the search width to leaves by the softmax of their scores; return children, (n,).

    The sum over leaves is the width.

    Source:
        Wu et al.: Inference Scaling Laws (REBASE), 2024: the best leaf first, each rounded up.
    """
    share = np.exp((score - score.max()) / temperature)
    left_share, left = float(share.sum()), width
    found = np.zeros(len(score), dtype=np.int64)
    for leaf in np.argsort(-score, kind="stable").tolist():
        found[leaf] = min(int(np.ceil(left * share[leaf] / max(left_share, 1e-300))), left)
        left_share, left = left_share - float(share[leaf]), left - int(found[leaf])
    return found
