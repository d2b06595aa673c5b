"""Quality metrics of a model's outputs, against labels and against the uncompressed model."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

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
"""Quality metrics of all workloads, by name."""

Table = NDArray[np.floating]
Labels = NDArray[np.integer]


def accuracy(
    logits: Table,  # (n, classes)
    labels: Labels,  # (n,)
) -> float:
    """Return the fraction of examples whose largest logit is that of the label."""
    return float((logits.argmax(axis=1) == labels).mean())


def cross_entropy_nat(
    logits: Table,  # (n, classes)
    labels: Labels,  # (n,)
) -> float:
    """Return the mean cross-entropy of the labels in nats, computed in double precision."""
    surprise = -_log_shares(logits)[np.arange(len(labels)), labels]
    return float(surprise.mean())


def bits_per_character(
    logits: Table,  # (n, characters)
    labels: Labels,  # (n,), the actual next characters
) -> float:
    """Return the mean cross-entropy of a character-level language model in bits."""
    return cross_entropy_nat(logits, labels) / math.log(2)


def divergence_nat(
    logits: Table,  # (n, classes)
    reference: Table,  # (n, classes)
) -> float:
    """Return the mean Kullback-Leibler divergence from the reference, KL(reference || model).

    Source:
        Kullback, Leibler: On Information and Sufficiency, 1951, eq. 2.4.
    """
    ours, whole = _log_shares(logits), _log_shares(reference)
    return float((np.exp(whole) * (whole - ours)).sum(axis=1).mean())


def cosine(
    outputs: Table,  # (n, k)
    reference: Table,  # (n, k)
) -> float:
    """Return the mean cosine similarity of outputs and references; 0 for a zero vector."""
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
    """Return Spearman's rank correlation of the scores and the true values.

    Equal values have their mean rank; the result is 0 if the scores or the true values are
    constant.
    """
    ranks = np.stack([_rank(scores), _rank(truths)])
    ranks -= ranks.mean(axis=1, keepdims=True)
    lengths = np.linalg.norm(ranks, axis=1)
    return float(ranks[0] @ ranks[1] / lengths.prod()) if lengths.all() else 0.0


def auc(
    scores: Table,  # (n,)
    labels: Labels,  # (n,), 0 or 1; both occur
) -> float:
    """Return the area under the ROC curve of the scores; ties count half.

    Source:
        Hanley, McNeil: The Meaning and Use of the Area under a ROC Curve, 1982, eq. 1.
    """
    positive = labels == 1
    ones = int(positive.sum())
    wins = _rank(scores)[positive].sum() - ones * (ones + 1) / 2
    return float(wins / (ones * (len(labels) - ones)))


def _rank(values: Table) -> Floats:
    """Return the ranks of values from 1; equal values have their mean rank."""
    from scipy.stats import rankdata  # slow (0.5 s): dse check imports this module

    ranks: Floats = rankdata(values)
    return ranks


def mismatches(
    logits: Table,  # (n, classes)
    reference: Table,  # (n, classes)
    labels: Labels,  # (n,)
    tail: Sequence[int] = (),
) -> dict[str, float]:
    """Return fractions of examples for which model and reference predict different classes.

    ``mismatch`` and ``mismatch_on_correct`` are fractions of all examples; the second counts only
    mismatches on which the reference is right. ``tail_gap`` is the mismatch rate on the (rare)
    classes in ``tail`` minus that on the other classes; it is left out if ``tail`` is empty.

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
    """Return accuracy, loss, divergence and mismatches of a classifier by name, no tail gap."""
    return {
        "accuracy": accuracy(logits, labels),
        "loss": cross_entropy_nat(logits, labels),
        "divergence": divergence_nat(logits, reference),
        **mismatches(logits, reference, labels),
    }


CLASSIFIER = ("accuracy", "loss", "divergence", "mismatch", "mismatch_on_correct")
"""Names of the metrics that :func:`measure_classifier` returns."""


def _log_shares(logits: Table) -> Floats:
    """Return the log probability of each class (log softmax), in double precision."""
    from scipy.special import log_softmax  # slow (0.3 s): dse check imports this module

    return np.asarray(log_softmax(logits.astype(np.float64), axis=1))
