"""Classes of problems with their difficulty for each model, and policies evaluated on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Mask
from dse.protocols import HeldOutError
from dse_evaluators.reading_table import Readings
from dse_evaluators.reasoning.answer_methods import (
    METHODS,
    AnswerPolicy,
    answer_problems,
    shift_success,
)
from dse_evaluators.reasoning.difficulty import DifficultyFit
from dse_evaluators.reasoning.pass_counts import PassCurve

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

_SHARES = ("accuracy", "coverage", "answers", "written")
"""Fields of :class:`AnswerShares`."""

_SOURCES = frozenset({"model", "temperature", "tokens"})
"""Inputs by which the rows of a file are chosen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredClass:
    """Fits of pass@k for one class of problems, model and temperature, by answer length."""

    tokens: Floats
    fits: tuple[DifficultyFit, ...]
    curves: tuple[PassCurve, ...]

    @property
    def most(self) -> int:
        """Largest number of answers k for which the file of pass@k has a value."""
        return max(max(one.solved) for one in self.curves)


@dataclass(slots=True, kw_only=True)
class ClassPolicies:
    """Means over problem classes of n policies' results; every field is (n,)."""

    accuracy: Floats
    coverage: Floats
    answers: Floats
    written: Floats
    several: Floats
    """Share of the queries that are given more than one answer."""
    extrapolated: Mask
    outside: Mask
    """Whether an answer is shorter or longer than any in the file."""
    unmeasured: Mask
    """Whether the file has no rows of the model at the temperature."""
    is_verified: Mask
    is_sequential: Mask


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemClasses:
    """Classes of problems with their shares of the queries, for each of some models.

    ``inputs`` are the inputs that set the number of answers to queries of one class, by class.
    ``temperatures`` are those of the file if a model has several, and else empty: then a model is
    sampled at its one temperature. ``measured`` has the place of a model and of a temperature.
    """

    shares: Mapping[str, float]
    models: Mapping[str, int]
    temperatures: Sequence[float]
    measured: Mapping[tuple[str, int, int], MeasuredClass]
    inputs: Mapping[str, str]
    has_lengths: bool
    source: str

    @property
    def notes(self) -> Sequence[str]:
        """Errors of the pass@k fits at the k that were held out."""
        errors = [error for _, fit in self._named_fits for error in fit.errors.values()]
        fits = len(self._named_fits)
        first = (
            f"difficulty: {fits} fits of {len(self.shares)} classes and {len(self.models)} models"
        )
        if self.temperatures:
            first += f" at {len(self.temperatures)} temperatures"
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
                        name=f"pass@k of {curve.name}",
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
        zeros = {name: np.zeros(size) for name in (*_SHARES, "several")}
        method = readings.column("method", batch)
        stops, revises = (METHODS.index(one) for one in ("stop-when-verified", "revision"))
        votes = METHODS.index("vote")
        found = ClassPolicies(
            **zeros,
            extrapolated=np.zeros(size, dtype=bool),
            outside=np.zeros(size, dtype=bool),
            unmeasured=np.zeros(size, dtype=bool),
            is_verified=~np.isin(method, (votes, revises)),
            is_sequential=np.isin(method, (stops, revises)),
        )
        for group, share in self.shares.items():
            own = {self.inputs[group], "samples", *_SOURCES, *_KNOBS.values()}
            among = batch.distinct(own & batch.names)
            few = batch if among.place is None else batch.take(among.rows)
            part = self._evaluate_class(group, few, readings, log_odds[among.rows])
            for name in zeros:
                total = getattr(found, name)
                total += share * among.spread(getattr(part, name))
            for name in ("extrapolated", "outside", "unmeasured"):
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
        among = batch.distinct(_SOURCES & batch.names)
        few = batch if among.place is None else batch.take(among.rows)
        models, tokens = (readings.column(one, few) for one in ("model", "tokens"))
        source = np.stack([models, self._read_temperature(few, readings)])
        keys, place = np.unique(
            np.stack([*source, tokens, log_odds[among.rows]]), axis=1, return_inverse=True
        )
        found = [
            self._saturate((int(model), int(temperature)), length, shift, least_gain)
            for model, temperature, length, shift in keys.T.tolist()
        ]
        return among.spread(np.array(found)[place.ravel()])

    def _read_temperature(self, batch: Batch, readings: Readings) -> Floats:
        """Return the place of each design's temperature, (n,); 0 where a model has one."""
        return readings.column("temperature", batch) if self.temperatures else np.zeros(len(batch))

    def _saturate(
        self, source: tuple[int, int], tokens: float, log_odds: float, least_gain: float
    ) -> float:
        """Return the number of answers at which a model saturates, by bisection.

        It is 0 where the model was not measured at the temperature.
        """
        success, weight = [], []
        for group, share in self.shares.items():
            if (group, *source) not in self.measured:
                return 0.0
            measured = self.measured[group, *source]
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
        zeros = {name: np.zeros(size) for name in _SHARES}
        most, outside = np.ones(size), np.zeros(size, dtype=bool)
        unmeasured = np.ones(size, dtype=bool)
        temperatures = self._read_temperature(batch, readings)
        for (one, model, temperature), measured in self.measured.items():
            rows = np.flatnonzero((models == model) & (temperatures == temperature))
            if one != group or not rows.size:
                continue
            unmeasured[rows] = False
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
            several=(policy.answers > 1).astype(np.float64),
            extrapolated=policy.answers > most,
            outside=outside,
            unmeasured=unmeasured,
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
