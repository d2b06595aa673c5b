"""Classes of problems with their difficulty for each model, and policies evaluated on them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Mask
from dse.errors import SpecError, nearest
from dse.protocols import HeldOutError
from dse_evaluators.reading_table import Readings
from dse_evaluators.reasoning.answer_methods import (
    METHODS,
    AnswerPolicy,
    answer_problems,
    shift_success,
)
from dse_evaluators.reasoning.difficulty import DifficultyFit, fit_difficulty
from dse_evaluators.reasoning.pass_counts import PassCurve, is_number

MOST_ANSWERS = 10**9
"""Largest number of answers at which saturation is looked for."""

_KNOBS: Mapping[str, str] = {
    "method": "method",
    "true_positive": "true_positive_rate",
    "false_positive": "false_positive_rate",
    "distractors": "distractors",
    "gain": "revision_gain",
    "loss": "revision_loss",
    "shared": "shared",
}
"""Inputs of a policy by field of :class:`AnswerPolicy`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClass:
    """A class of problems and a model: a fit for each length of an answer, by rising length."""

    tokens: Floats
    fits: tuple[DifficultyFit, ...]
    curves: tuple[PassCurve, ...]

    @property
    def most(self) -> int:
        """Largest number of answers k in the file."""
        return max(max(one.solved) for one in self.curves)


@dataclass(slots=True, kw_only=True)
class ClassPolicies:
    """Means of n policies over the classes; every field is (n,)."""

    accuracy: Floats
    coverage: Floats
    answers: Floats
    written: Floats
    extrapolated: Mask
    outside: Mask
    """Whether an answer is shorter or longer than any in the file."""
    is_verified: Mask
    is_sequential: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemClasses:
    """Classes of problems with their shares of the queries, for each of some models.

    ``inputs`` are the inputs that set the number of answers to queries of one class, by class.
    """

    shares: Mapping[str, float]
    models: Mapping[str, int]
    measured: Mapping[tuple[str, str], MeasuredClass]
    inputs: Mapping[str, str]
    has_lengths: bool
    source: str

    @property
    def notes(self) -> Sequence[str]:
        """The error of the fits at the k that were held out."""
        errors = [error for _, fit in self._named_fits for error in fit.errors.values()]
        fits = len(self._named_fits)
        first = (
            f"difficulty: {fits} fits of {len(self.shares)} classes and {len(self.models)} models"
        )
        if not errors:
            return (f"{first}; no k was held out, so that their error is unknown",)
        worst = max(errors, key=abs)
        mean = float(np.mean(np.abs(errors)))
        return (
            f"{first}; at {len(errors)} k that were held out, pass@k is off by {100 * mean:.1f} "
            f"points on the mean and {100 * worst:+.1f} at most",
        )

    @property
    def held_out_errors(self) -> Sequence[HeldOutError]:
        """Relative errors of pass@k at the k that were held out, by class and model."""
        found = []
        for curve, fit in self._named_fits:
            off = [abs(error) / curve.solved[count] for count, error in fit.errors.items()]
            if off:
                found.append(
                    HeldOutError(
                        name=f"pass@k of {curve.group}, {curve.model}",
                        fitted=len(fit.fitted),
                        held_out=len(off),
                        mean=float(np.mean(off)),
                        largest=max(off),
                        source=self.source,
                    )
                )
        return found

    @property
    def _named_fits(self) -> list[tuple[PassCurve, DifficultyFit]]:
        some = self.measured.values()
        return [pair for one in some for pair in zip(one.curves, one.fits, strict=True)]

    @property
    def lengths_measured(self) -> str:
        """Reason why a design with answers of an unmeasured length is infeasible."""
        lengths = [one.tokens for one in self.measured.values()]
        low, high = max(one[0] for one in lengths), min(one[-1] for one in lengths)
        return f"answers of all classes were measured at {low:g} to {high:g} tokens"

    def evaluate(self, batch: Batch, readings: Readings, log_odds: Floats) -> ClassPolicies:
        """Return solved shares and numbers of answers of n policies, as means over the classes.

        Args:
            batch: the policies.
            readings: the evaluator's inputs.
            log_odds: addition to the log odds of success by the length of an answer, (n,).
        """
        size = len(batch)
        zeros = {name: np.zeros(size) for name in ("accuracy", "coverage", "answers", "written")}
        method = readings.column("method", batch)
        stops, revises = (METHODS.index(one) for one in ("stop-when-verified", "revision"))
        votes = METHODS.index("vote")
        found = ClassPolicies(
            **zeros,
            extrapolated=np.zeros(size, dtype=bool),
            outside=np.zeros(size, dtype=bool),
            is_verified=~np.isin(method, (votes, revises)),
            is_sequential=np.isin(method, (stops, revises)),
        )
        for group, share in self.shares.items():
            own = {self.inputs[group], "samples", "model", "tokens", *_KNOBS.values()}
            among = batch.distinct(own & batch.names)
            few = batch if among.place is None else batch.take(among.rows)
            part = self._evaluate_class(group, few, readings, log_odds[among.rows])
            for name in zeros:
                total = getattr(found, name)
                total += share * among.spread(getattr(part, name))
            for name in ("extrapolated", "outside"):
                setattr(found, name, getattr(found, name) | among.spread(getattr(part, name)))
        return found

    def find_saturation(
        self, batch: Batch, readings: Readings, log_odds: Floats, least_gain: float
    ) -> Floats:
        """Return the least number of answers after which one more adds too little coverage, (n,).

        The gain of one more than N answers is the mean of p (1 - p)^N over all problems.

        Source:
            Wang et al.: Scaling over Scaling (TTSPM), 2025: for equal problems N is
            ln(least_gain / p) / ln(1 - p), rounded up.
        """
        among = batch.distinct({"model", "tokens"} & batch.names)
        few = batch if among.place is None else batch.take(among.rows)
        models, tokens = (readings.column(one, few) for one in ("model", "tokens"))
        keys, place = np.unique(
            np.stack([models, tokens, log_odds[among.rows]]), axis=1, return_inverse=True
        )
        found = [
            self._saturate(model, length, shift, least_gain)
            for model, length, shift in keys.T.tolist()
        ]
        return among.spread(np.array(found)[place.ravel()])

    def _saturate(self, model: float, tokens: float, log_odds: float, least_gain: float) -> float:
        """Return the number of answers at which a model saturates, by bisection."""
        name = list(self.models)[int(model)]
        success, weight = [], []
        for group, share in self.shares.items():
            measured = self.measured[group, name]
            for at, part in _neighbours(measured.tokens, np.array([tokens])):
                difficulty = measured.fits[at].difficulty
                success.append(shift_success(difficulty.success, np.array([log_odds]))[0])
                weight.append(difficulty.weight * share * part[0])
        p, w = np.concatenate(success), np.concatenate(weight)
        low, high = 0, MOST_ANSWERS
        while low < high:
            middle = (low + high) // 2
            gain = float(w @ (p * np.exp(middle * np.log1p(-p))))
            low, high = (low, middle) if gain <= least_gain else (middle + 1, high)
        return float(low)

    def _evaluate_class(
        self, group: str, batch: Batch, readings: Readings, log_odds: Floats
    ) -> ClassPolicies:
        size = len(batch)
        models, tokens = readings.column("model", batch), readings.column("tokens", batch)
        asked = readings.column(self.inputs[group], batch)
        policy = AnswerPolicy(
            answers=np.where(asked > 0, asked, readings.column("samples", batch)),
            log_odds=log_odds,
            **{field: readings.column(name, batch) for field, name in _KNOBS.items()},
        )
        zeros = {name: np.zeros(size) for name in ("accuracy", "coverage", "answers", "written")}
        most, outside = np.ones(size), np.zeros(size, dtype=bool)
        for name, code in self.models.items():
            rows = np.flatnonzero(models == code)
            if not rows.size:
                continue
            measured = self.measured[group, name]
            most[rows] = measured.most
            for at, weight in _neighbours(measured.tokens, tokens[rows]):
                own = np.flatnonzero(weight)
                some = answer_problems(measured.fits[at].difficulty, policy.take(rows[own]))
                for field, total in zeros.items():
                    total[rows[own]] += weight[own] * getattr(some, field)
            if self.has_lengths:
                lengths = measured.tokens
                outside[rows] = (tokens[rows] < lengths[0]) | (tokens[rows] > lengths[-1])
        nothing = np.zeros(size, dtype=bool)
        return ClassPolicies(
            **zeros,
            extrapolated=policy.answers > most,
            outside=outside,
            is_verified=nothing,
            is_sequential=nothing,
        )


def _neighbours(lengths: Floats, tokens: Floats) -> list[tuple[int, Floats]]:
    """Return the measured lengths and their weights, (n,), in results between two lengths.

    Results are interpolated by the logarithm of the length.
    """
    if len(lengths) == 1:
        return [(0, np.ones(len(tokens)))]
    places = np.interp(np.log(tokens), np.log(lengths), np.arange(len(lengths), dtype=np.float64))
    pairs = [(at, np.clip(1.0 - np.abs(places - at), 0.0, 1.0)) for at in range(len(lengths))]
    return [(at, weight) for at, weight in pairs if weight.any()]


def gather_classes(
    curves: Sequence[PassCurve],
    asked: Mapping[str, float] | None,
    distribution: str,
    path: Path,
) -> ProblemClasses:
    """Fit the difficulty of each class for each model of a file of pass@k.

    Args:
        curves: the rows of the file.
        asked: shares of the classes among the queries; ``None``: all classes, by their problems.
        distribution: as for :func:`~.difficulty.fit_difficulty`.
        path: the file, for messages.

    Raises:
        SpecError: a class is unknown, a model lacks one, or a fit fails.
    """
    groups = list(dict.fromkeys(one.group for one in curves))
    shares = _find_shares(curves, groups, asked, path)
    chosen = [one for one in curves if one.group in shares]
    models = {name: at for at, name in enumerate(dict.fromkeys(one.model for one in chosen))}
    lengths = {one.tokens > 0 for one in chosen}
    measured = {}
    for group in shares:
        for name in models:
            own = [one for one in chosen if (one.group, one.model) == (group, name)]
            if not own:
                here = ", ".join(sorted({one.group for one in chosen if one.model == name}))
                problem = f"{path} has no rows of class {group} for {name}, and of {here}"
                hint = "add them, or state the classes of the queries: classes: {CLASS: 1}"
                raise SpecError(problem, hint=hint, part=["classes"])
            own.sort(key=lambda one: one.tokens)
            measured[group, name] = MeasuredClass(
                tokens=np.array([one.tokens for one in own]),
                fits=tuple(fit_difficulty(one, distribution) for one in own),
                curves=tuple(own),
            )
    return ProblemClasses(
        shares=shares,
        models=models,
        measured=measured,
        inputs=_name_inputs(list(shares), path),
        has_lengths=lengths == {True},
        source=path.name,
    )


def _find_shares(
    curves: Sequence[PassCurve],
    groups: Sequence[str],
    asked: Mapping[str, float] | None,
    path: Path,
) -> dict[str, float]:
    if asked is None:
        known = {group: next(o.problems for o in curves if o.group == group) for group in groups}
        asked = known if all(known.values()) else dict.fromkeys(groups, 1.0)
    for group, share in asked.items():
        if group not in groups:
            problem = f"classes names {group!r}, which is no class of {path}"
            raise SpecError(problem, hint=nearest(group, groups), part=["classes"])
        if not is_number(share) or not share > 0:
            problem = f"the share of class {group} is {share!r}"
            raise SpecError(problem, hint="a positive number", part=["classes"])
    total = sum(asked.values())
    if not total:
        raise SpecError("classes is empty", hint=f"classes: {{{groups[0]}: 1}}", part=["classes"])
    return {group: share / total for group, share in asked.items()}


def _name_inputs(groups: Sequence[str], path: Path) -> dict[str, str]:
    """Return the input that sets the number of answers of each class."""
    named: dict[str, str] = {}
    for group in groups:
        name = "samples_" + re.sub(r"\W+", "_", group.lower())
        for other, taken in named.items():
            if taken == name:
                problem = f"{path} has classes {other!r} and {group!r}, both with the input {name}"
                raise SpecError(problem, hint="rename one", part=["file"])
        named[group] = name
    return named
