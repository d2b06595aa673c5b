"""Quality metrics on bootstrap resamples of a split, for their standard errors."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import DseError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.judging import Labels, Table
from dse_evaluators.workloads.workload import Split

RESAMPLES = 200
"""Number of resamples: a standard error is then known to 5 % of itself."""

_SEED = 0
_MOST_SINGLE = 2_000
"""Largest number of examples that are measured one by one, which is faster for means."""

_EQUAL = 1e-6
Measure = Callable[[Ints], Mapping[str, float]]
"""Function from places of examples, with repetitions, to quality metrics."""


class HasQuality(Protocol):
    """Workload with quality metrics that can be computed on some of its examples."""

    def count_examples(self, split: Split) -> int:
        """Return the number of examples of a split."""
        ...

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        """Return the quality metrics of outputs, on all examples or on the chosen ones."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledOutputs:
    """Labels of a split's examples, and a function that compares outputs with them.

    Args:
        labels: label of each row of outputs, (n,).
        score: function of outputs, reference and labels; it returns the quality metrics.
        each: number of consecutive rows that belong to one example.
    """

    labels: Labels
    score: Callable[[Table, Table, Labels], Mapping[str, float]]
    each: int = 1

    def count_examples(self, split: Split) -> int:  # noqa: ARG002 - the labels are of one split
        """Return the number of examples."""
        return len(self.labels) // self.each

    def quality(
        self, outputs: Single, reference: Single, split: Split, chosen: Ints | None = None
    ) -> Mapping[str, float]:
        """Return the quality metrics of outputs, on all examples or on the chosen ones."""
        rows = expand_examples(chosen, len(self.labels), self.count_examples(split))
        return self.score(outputs[rows], reference[rows], self.labels[rows])


def resample_quality(
    workload: HasQuality,
    outputs: Single,  # (n, k)
    reference: Single,  # (n, k)
    split: Split,
) -> dict[str, Floats]:
    """Return each quality metric on resamples of a split's examples, (RESAMPLES,) by name.

    The resamples are the same in each call, so that differences of two models are paired. A metric
    is left out if it is undefined on a resample, such as the area under the ROC curve where one
    class does not occur.

    Args:
        workload: the examples and their quality metrics.
        outputs: outputs of the compressed model on the split.
        reference: outputs of the uncompressed model on the split.
        split: the split.

    Source:
        Efron: Bootstrap Methods: Another Look at the Jackknife, 1979, section 2.
    """
    count = workload.count_examples(split)
    draws = np.random.default_rng(_SEED).integers(0, count, (RESAMPLES, count))

    def measure(chosen: Ints) -> Mapping[str, float]:
        return workload.quality(outputs, reference, split, chosen)

    plain = measure(np.arange(count))
    means = _resample_means(measure, plain, draws) if count <= _MOST_SINGLE else {}
    if plain.keys() <= means.keys():
        return means
    return {**_measure_each(measure, draws), **means}


def _resample_means(
    measure: Measure,
    plain: Mapping[str, float],
    draws: Ints,  # (b, n)
) -> dict[str, Floats]:
    """Return the resamples, (b,), of those metrics that are means over the examples.

    Each example is measured once; a metric is a mean if the mean over the examples is its value.
    """
    single = _measure_each(measure, np.arange(draws.shape[1])[:, None])
    return {
        name: values[draws].mean(axis=1)
        for name, values in single.items()
        if math.isclose(values.mean(), plain[name], rel_tol=_EQUAL, abs_tol=_EQUAL)
    }


def _measure_each(
    measure: Measure,
    draws: Ints,  # (b, c)
) -> dict[str, Floats]:
    """Return each metric on b sets of examples, (b,); metrics that are undefined are left out."""
    found: list[Mapping[str, float]] = []
    for chosen in draws:
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # a mean over none of a class
                found.append(measure(chosen))
        except (ArithmeticError, ValueError, DseError):
            return {}
    columns = {name: np.array([one[name] for one in found]) for name in found[0]}
    return {name: values for name, values in columns.items() if np.isfinite(values).all()}


def expand_examples(
    chosen: Ints | None,  # (c,)
    rows: int,
    examples: int,
) -> Ints | slice:
    """Return the rows of outputs that belong to chosen examples, or a slice of all rows.

    Each example has the same number of consecutive rows, such as the positions of a sequence.

    Args:
        chosen: places of examples, with repetitions; ``None`` for all.
        rows: number of rows of all examples.
        examples: number of all examples.
    """
    if chosen is None:
        return slice(None)
    each = rows // examples
    return (chosen[:, None] * each + np.arange(each)).reshape(-1)
