"""Quality of a model's outputs: against the truth, and against the uncompressed model's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax
from scipy.stats import rankdata

from dse.core.metric import Metric
from dse.core.values import Floats

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="accuracy", goal="maximize"),
        Metric(name="loss", goal="minimize"),
        Metric(name="bits_per_character", goal="minimize"),
        Metric(name="divergence", goal="minimize"),
        Metric(name="cosine", goal="maximize"),
        Metric(name="spearman", goal="maximize"),
        Metric(name="auc", goal="maximize"),
        Metric(name="mismatch", goal="minimize"),
        Metric(name="mismatch_on_correct", goal="minimize"),
        Metric(name="tail_gap", goal="minimize"),
    )
}
"""What the quality of a workload may be called, whatever the workload."""

Table = NDArray[np.floating]
Labels = NDArray[np.integer]


def accuracy(
    logits: Table,  # (n, classes)
    labels: Labels,  # (n,)
) -> float:
    """The share of examples whose largest logit is the label's."""
    return float((logits.argmax(axis=1) == labels).mean())


def cross_entropy_nat(
    logits: Table,  # (n, classes)
    labels: Labels,  # (n,)
) -> float:
    """The mean surprise at the labels, in double precision."""
    surprise = -_log_shares(logits)[np.arange(len(labels)), labels]
    return float(surprise.mean())


def bits_per_character(
    logits: Table,  # (n, characters)
    labels: Labels,  # (n,), the characters that came
) -> float:
    """The cross-entropy of a language model of characters, to base 2."""
    return cross_entropy_nat(logits, labels) / math.log(2)


def divergence_nat(
    logits: Table,  # (n, classes)
    reference: Table,  # (n, classes)
) -> float:
    """The mean Kullback-Leibler divergence of the outputs from the reference's.

    Source:
        Kullback, Leibler: On Information and Sufficiency, 1951, eq. 2.4.
    """
    ours, whole = _log_shares(logits), _log_shares(reference)
    return float((np.exp(whole) * (whole - ours)).sum(axis=1).mean())


def cosine(
    outputs: Table,  # (n, k)
    reference: Table,  # (n, k)
) -> float:
    """The mean cosine of the angle between an output and its reference; 0 for a zero vector."""
    ours, whole = outputs.astype(np.float64), reference.astype(np.float64)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(whole, axis=1)
    products = (ours * whole).sum(axis=1)
    return float(
        np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 0).mean()
    )


def spearman(
    scores: Table,  # (n,)
    truths: Table,  # (n,)
) -> float:
    """The correlation of the ranks, equals at their mean rank; 0 where one is constant."""
    ranks = np.stack([rankdata(scores), rankdata(truths)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1)
    return float(ranks[0] @ ranks[1] / lengths.prod()) if lengths.all() else 0.0


def auc(
    scores: Table,  # (n,)
    labels: Labels,  # (n,), 0 or 1; both occur
) -> float:
    """Return the share of pairs in which label 1 scores above label 0; equals count half.

    Source:
        Hanley, McNeil: The Meaning and Use of the Area under a ROC Curve, 1982, eq. 1.
    """
    positive = labels == 1
    ones = int(positive.sum())
    wins = rankdata(scores)[positive].sum() - ones * (ones + 1) / 2
    return float(wins / (ones * (len(labels) - ones)))


def mismatches(
    logits: Table,  # (n, classes)
    reference: Table,  # (n, classes)
    labels: Labels,  # (n,)
    tail: Sequence[int] = (),
) -> dict[str, float]:
    """Return how often the model and the reference predict different classes.

    The metrics are over all examples, over all with the reference right, and the gap of the tail.

    The first two are shares of all examples. ``tail_gap`` is by how much more often they differ on
    the classes in ``tail`` than on the others; it is left out where there is no tail.

    Source:
        Hooker et al., What Do Compressed Deep Neural Networks Forget?, 2019, section 2 (exemplars
        that compression changes).
    """
    named = reference.argmax(axis=1)
    differs = logits.argmax(axis=1) != named
    found = {
        "mismatch": float(differs.mean()),
        "mismatch_on_correct": float((differs & (named == labels)).mean()),
    }
    if tail:
        rare = np.isin(labels, tail)
        found["tail_gap"] = float(differs[rare].mean() - differs[~rare].mean())
    return found


def measure_classifier(
    logits: Table,  # (n, classes)
    reference: Table,  # (n, classes)
    labels: Labels,  # (n,)
) -> dict[str, float]:
    """Return the metrics of a classifier without a tail: those of :data:`CLASSIFIER`."""
    return {
        "accuracy": accuracy(logits, labels),
        "loss": cross_entropy_nat(logits, labels),
        "divergence": divergence_nat(logits, reference),
        **mismatches(logits, reference, labels),
    }


CLASSIFIER = ("accuracy", "loss", "divergence", "mismatch", "mismatch_on_correct")
"""What :func:`measure_classifier` tells."""


def _log_shares(logits: Table) -> Floats:
    """The logarithms of what each class is given of 1."""
    return np.asarray(log_softmax(logits.astype(np.float64), axis=1))
