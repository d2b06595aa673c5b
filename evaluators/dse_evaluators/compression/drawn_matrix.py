"""Evaluator ``compression.matrix``: compression of a matrix of random normal weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse.errors import SpecError
from dse_evaluators.compression.layer_fit import check_fits
from dse_evaluators.compression.layer_recipes import KEEP, LayerGroup, check_recipe
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.compression.template import Template
from dse_evaluators.counts import check_count
from dse_evaluators.formats.arrays import Single
from dse_evaluators.one_by_one import one_by_one

_METRICS = (
    Metric(name="bits_per_weight", goal="minimize"),
    Metric(name="payload_bits_per_weight", goal="minimize"),
    Metric(name="place_bits_per_weight", goal="minimize"),
    Metric(name="density"),
    Metric(name="kept_magnitude", goal="maximize"),
    Metric(name="wrong_signs", goal="minimize"),
    Metric(name="error", goal="minimize"),
)

_MOST_WEIGHTS = 1 << 26


@dataclass(kw_only=True)
class DrawnMatrix:
    """Bit counts and reconstruction errors of one compressed matrix of random normal weights.

    The evaluator is for studies of storage, since the bits depend on shape and pruning rate, not on
    training. ``bits_per_weight`` counts codes, scales and positions; ``payload_bits_per_weight``
    counts the codes only, and ``place_bits_per_weight`` the other bits. ``density`` is the fraction
    of the restored weights that are not zero. ``kept_magnitude`` is the sum of the original
    magnitudes of these nonzero weights, divided by the largest sum that equally many weights have.
    ``wrong_signs`` is the fraction of the nonzero weights with the wrong sign, and ``error`` the
    sum of squared errors over the sum of squared weights.

    Args:
        recipe: recipe as in ``compression.recipe``, with design parameters in braces.
        rows: number of rows (outputs of the layer).
        columns: number of columns (inputs of the layer).
        seed: seed of the random weights.

    Limits:
        1 to 10 s a design of 512 x 1152. The weights are random: results are valid for bits, not
        for accuracy.

    Error:
        Bits are counted on the bytes written and read back.

    Example:
        options: {recipe: "prune {density} > huffman kmeans:4", rows: 32, columns: 64}
        parameters: {density: [0.1, 0.3, 0.5]}

    Raises:
        PluginError: ``rows``, ``columns`` or ``seed`` is out of range.
        SpecError: the recipe is invalid, or the matrix has more than 2^26 weights.
    """

    recipe: str
    rows: int
    columns: int
    seed: int = 0
    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(init=False, default=frozenset())
    units: Mapping[str, str] = field(init=False, default_factory=dict)
    provides: Mapping[str, Metric] = field(init=False)
    kind: Kind = field(init=False, default="measured")
    version: str = field(init=False, default="1")

    def __post_init__(self) -> None:
        check_count("rows", self.rows, least=1)
        check_count("columns", self.columns, least=1)
        check_count("seed", self.seed, least=0)
        if self.rows * self.columns > _MOST_WEIGHTS:
            raise SpecError(
                f"a matrix of {self.rows} by {self.columns} cannot be drawn",
                hint=f"1 to {_MOST_WEIGHTS:,} weights",
            )
        self._template = Template.of(self.recipe)
        self.reads = frozenset(self._template.names)
        self.provides = {metric.name: metric for metric in _METRICS}

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Raise SpecError unless the recipe is valid for all values of its design parameters."""
        for place, text in enumerate(self._template.fillings(values, 0)):
            if place == 0:
                check_recipe(text, has_inputs=False)
            for step in _alone(text):
                check_recipe(step, has_inputs=False)
        part = LayerGroup(template=self._template, layers=("matrix",))
        check_fits(part, values, {"matrix": (self.rows, self.columns)})

    def evaluate(self, batch: Batch) -> Metrics:
        """Return bit counts and errors of the matrix under each of n designs, (n,) by name."""
        return one_by_one(batch, self.provides, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> dict[str, float]:
        text = self._template.fill(design, 0)
        recipe = "format fp32" if text == KEEP else text
        weight = _draw_weights(self.rows, self.columns, self.seed)
        record = compress_layer(recipe, weight)
        return {
            "bits_per_weight": record.cost.stored / weight.size,
            "payload_bits_per_weight": record.cost.payload / weight.size,
            "place_bits_per_weight": (record.cost.stored - record.cost.payload) / weight.size,
            **_faithful(weight, restore_tensor(record)),
        }


def _alone(text: str) -> list[str]:
    """Split a compression recipe into recipes of one operator each, which are valid alone."""
    *before, last = (step.strip() for step in text.split(">"))
    return [*(f"{step} > format fp32" for step in before), last]


def _faithful(weight: Single, given: Single) -> dict[str, float]:
    """Return density, kept magnitude, wrong signs and relative error of decoded weights."""
    stays = given != 0
    sizes = np.abs(weight.astype(np.float64))
    largest = np.sort(sizes, axis=None)[::-1][: stays.sum()].sum()
    wrong = np.sign(given[stays]) != np.sign(weight[stays])
    off = given.astype(np.float64) - weight
    return {
        "density": float(stays.mean()),
        "kept_magnitude": float(sizes[stays].sum() / largest) if len(wrong) else 0.0,
        "wrong_signs": float(wrong.mean()) if len(wrong) else 0.0,
        "error": float((off**2).sum() / (sizes**2).sum()),
    }


@lru_cache(maxsize=1)
def _draw_weights(rows: int, columns: int, seed: int) -> Single:
    weight = np.random.default_rng(seed).standard_normal((rows, columns), dtype=np.float32)
    weight.setflags(write=False)
    return weight
