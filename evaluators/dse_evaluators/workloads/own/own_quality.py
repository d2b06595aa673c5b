"""Quality metrics of the user's models, by name or as a function of the user."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.metric import Goal, Metric
from dse.errors import EvaluationError, SpecError, nearest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import judging
from dse_evaluators.workloads.own.own_function import OwnFunction, call_own
from dse_evaluators.workloads.own.own_identity import object_edition

Targets = NDArray[Any]
Score = Callable[[Single, Single, Targets], float]
"""Function of outputs (n, k), outputs of the uncompressed model (n, k), and targets (n,)."""

_OF_LABELS: Mapping[str, tuple[Goal, Score]] = {
    "accuracy": ("maximize", lambda ours, _, labels: judging.accuracy(ours, labels)),
    "loss": ("minimize", lambda ours, _, labels: judging.cross_entropy_nat(ours, labels)),
    "auc": ("maximize", lambda ours, _, labels: judging.auc(_scores(ours), labels)),
    "f1": ("maximize", lambda ours, _, labels: mean_f1(ours, labels)),
    "perplexity": (
        "minimize",
        lambda ours, _, labels: math.exp(min(judging.cross_entropy_nat(ours, labels), 700.0)),
    ),
    "bits_per_character": (
        "minimize",
        lambda ours, _, labels: judging.bits_per_character(ours, labels),
    ),
    "mismatch_on_correct": (
        "minimize",
        lambda ours, whole, labels: judging.mismatches(ours, whole, labels)["mismatch_on_correct"],
    ),
}
"""Metrics of logits of classes and labels; a single output is the logit of class 1."""

_OF_VALUES: Mapping[str, tuple[Goal, Score]] = {
    "mse": ("minimize", lambda ours, _, wanted: _mean_square(ours, wanted)),
    "spearman": ("maximize", lambda ours, _, wanted: judging.spearman(_column(ours), wanted)),
}
_OF_OUTPUTS: Mapping[str, tuple[Goal, Score]] = {
    "cosine": ("maximize", lambda ours, whole, _: judging.cosine(ours, whole)),
    "divergence": ("minimize", lambda ours, whole, _: judging.divergence_nat(ours, whole)),
    "mismatch": (
        "minimize",
        lambda ours, whole, _: float((ours.argmax(axis=1) != whole.argmax(axis=1)).mean()),
    ),
}
_OF_CLASSES = (*_OF_LABELS, "divergence", "mismatch")
"""Metrics of a classifier, whose outputs are logits or probabilities of classes."""

_SCALED = ("loss", "perplexity", "bits_per_character", "divergence")
"""Metrics that differ for logits and for probabilities, also if the order of classes does not."""

_OUTPUTS = ("logits", "probabilities")
_TOP = re.compile(r"top[-_](\d{1,4})")

_TABLES = {"labels": _OF_LABELS, "values": _OF_VALUES, "outputs": _OF_OUTPUTS}

KNOWN = (*_OF_LABELS, *_OF_VALUES, *_OF_OUTPUTS, "top-5")
"""Names of the quality metrics; ``top-K`` exists for any K."""

_STATED = "as in {metrics: [accuracy, loss], outputs: probabilities}"

DEFAULT = "cosine"
"""Quality metric of a model for which none is named: it needs no targets."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """Quality metric of a user's model; ``edition`` identifies a function of the user.

    ``needs`` is what the metric compares outputs with: ``labels``, ``values`` or ``outputs`` of
    the uncompressed model; it is empty for a function ``(outputs, targets)`` of the user.
    ``outputs`` is what the study states of the model's outputs: ``logits``, ``probabilities``, or
    nothing.
    """

    metric: Metric
    needs: str = ""
    edition: str = ""
    outputs: str = ""
    function: Any = field(default=None, compare=False, repr=False)

    @property
    def starts(self) -> tuple[str, ...]:
        """Description of the function of the user's file; empty for other metrics."""
        return (self.function.text,) if isinstance(self.function, OwnFunction) else ()

    def score(self, outputs: Single, reference: Single, targets: Targets) -> float:
        """Return the value of the quality metric.

        Args:
            outputs: outputs of the compressed model, (n, k).
            reference: outputs of the uncompressed model, (n, k).
            targets: classes or values of the examples, (n,); zeros if the data has none.

        Raises:
            EvaluationError: the user's function fails, or does not return a finite number.
        """
        name = self.metric.name
        if self.function is None:
            if name in _OF_CLASSES or _TOP.fullmatch(name):
                outputs, reference = _classes(outputs), _classes(reference)
            return _score_of(name)(outputs, reference, targets)
        text = f"the function {self.metric.name!r}"
        call = self.function.load() if isinstance(self.function, OwnFunction) else self.function
        return _finite(text, call_own(call, text, outputs, targets))


def qualities_of(value: object) -> tuple[Quality, ...]:
    """Return the quality metrics that an option names, one or a list of them.

    Args:
        value: a name, a function as ``{python: FILE.py:function, goal: maximize}``, a list, or
            these with what the outputs are: ``{metrics: loss, outputs: probabilities}``.

    Raises:
        SpecError: a metric is unknown or occurs twice, or a function is invalid.
    """
    if value is None:
        value = DEFAULT
    if isinstance(value, Mapping) and ("metrics" in value or "outputs" in value):
        return _state_outputs(value)
    listed = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    found = tuple(_quality_of(one) for one in listed)
    names = [one.metric.name for one in found]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None or not names:
        problem = f"{twice!r} is named twice" if twice else "quality names no metric"
        raise SpecError(problem, hint=f"one of {', '.join(KNOWN)}", part=["quality"])
    return found


def needs_logits(quality: Quality, columns: int) -> bool:
    """Return whether a metric has other values for probabilities than for logits.

    Args:
        quality: the metric.
        columns: number of outputs of an example.
    """
    name = quality.metric.name
    if quality.outputs or quality.function is not None:
        return False
    return name in _SCALED or (columns == 1 and name in _OF_CLASSES and name != "auc")


def _state_outputs(value: Mapping[str, object]) -> tuple[Quality, ...]:
    """Return the metrics of a mapping that states whether outputs are probabilities."""
    odd = next((key for key in value if key not in ("metrics", "outputs")), None)
    outputs = str(value.get("outputs"))
    if odd is not None or "metrics" not in value:
        problem = f"quality has no key {odd!r}" if odd else "quality names no metrics"
        raise SpecError(problem, hint=_STATED, part=["quality"])
    if outputs not in _OUTPUTS:
        hint = nearest(outputs, _OUTPUTS) if "outputs" in value else _STATED
        raise SpecError(f"outputs cannot be {outputs!r}", hint=hint, part=["quality"])
    found = qualities_of(value["metrics"])
    if outputs == "logits":
        return tuple(replace(one, outputs=outputs) for one in found)
    for one in found:
        name = one.metric.name
        if one.needs and name not in _OF_CLASSES and not _TOP.fullmatch(name):
            raise SpecError(
                f"{name} does not apply to probabilities of classes",
                hint=f"leave out outputs, or one of {', '.join(_OF_CLASSES)}",
                part=["quality"],
            )
    return tuple(
        replace(one, outputs=outputs, edition=f"{one.edition} of {outputs}") for one in found
    )


def mean_f1(
    logits: Single,  # (n, classes)
    labels: Targets,  # (n,)
) -> float:
    """Return the mean over classes of the F1 score, the harmonic mean of precision and recall.

    A class that neither occurs nor is predicted is left out.

    Source:
        van Rijsbergen: Information Retrieval, 1979, chapter 7 (F measure).
    """
    guesses = logits.argmax(axis=1)
    classes = np.union1d(guesses, labels)
    hits = [int(((guesses == one) & (labels == one)).sum()) for one in classes]
    sizes = [int((guesses == one).sum() + (labels == one).sum()) for one in classes]
    return float(np.mean([2 * hit / size for hit, size in zip(hits, sizes, strict=True)]))


def _quality_of(value: object) -> Quality:
    if callable(value):
        return _function_quality({"python": value})
    if isinstance(value, Mapping):
        return _function_quality(value)
    name = str(value)
    top = _TOP.fullmatch(name)
    if top is not None and int(top[1]) > 0:
        metric = Metric(name=f"top_{int(top[1])}", goal="maximize")
        return Quality(metric=metric, needs="labels")
    for needs, table in _TABLES.items():
        if name in table:
            return Quality(metric=Metric(name=name, goal=table[name][0]), needs=needs)
    hint = nearest(name, KNOWN)
    raise SpecError(f"there is no quality metric {value!r}", hint=hint, part=["quality"])


def _score_of(name: str) -> Score:
    """Return the function that computes the metric of this name."""
    top = _TOP.fullmatch(name)
    if top is not None:
        return partial(_top_score, int(top[1]))
    return next(table[name][1] for table in _TABLES.values() if name in table)


def _function_quality(value: Mapping[str, object]) -> Quality:
    """Return the metric that a function ``(outputs, targets)`` of the user computes."""
    odd = next((key for key in value if key not in ("python", "goal")), None)
    goal = value.get("goal", "maximize")
    if odd is not None or "python" not in value or goal not in ("maximize", "minimize"):
        raise SpecError(
            f"a quality metric cannot be {dict(value)!r}",
            hint="as in {python: score.py:error_rate, goal: minimize}",
            part=["quality"],
        )
    direction: Goal = "minimize" if goal == "minimize" else "maximize"
    function = value["python"]
    if isinstance(function, str) and function.startswith("given:"):
        metric = Metric(name=function.rpartition(":")[2], goal=direction)
        return Quality(metric=metric, edition=function)
    if not callable(function):
        try:
            own = OwnFunction.of(function)
        except SpecError as error:
            raise SpecError(error.problem, hint=error.hint, part=["quality"]) from error
        metric = Metric(name=own.name, goal=direction)
        return Quality(metric=metric, edition=own.edition, function=own)
    name = str(getattr(function, "__name__", type(function).__name__)).strip("<>")
    metric = Metric(name=name, goal=direction)
    return Quality(metric=metric, edition=object_edition(function), function=function)


def _finite(text: str, answer: object) -> float:
    try:
        number = float(answer)  # type: ignore[arg-type]  # the user's function may return anything
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise EvaluationError(f"{text} returns {answer!r}, which is no finite number")
    return number


def _top_score(count: int, outputs: Single, _: Single, labels: Targets) -> float:
    """Return the fraction of labels that are among the ``count`` largest outputs."""
    own = np.take_along_axis(outputs, labels[:, None], axis=1)
    return float(((outputs > own).sum(axis=1) < count).mean())


def _classes(outputs: Single) -> Single:
    """Return logits of classes, (n, classes); a single output is the log odds of class 1."""
    return np.hstack([np.zeros_like(outputs), outputs]) if outputs.shape[1] == 1 else outputs


def _scores(outputs: Single) -> Single:
    """Return one score per example: the log odds of class 1 against class 0."""
    return outputs[:, 1] - outputs[:, 0]


def _column(outputs: Single) -> Single:
    return outputs[:, 0]


def _mean_square(outputs: Single, wanted: Targets) -> float:
    apart = outputs.astype(np.float64) - wanted.reshape(outputs.shape)
    return float((apart**2).mean())
