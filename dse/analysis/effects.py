"""What each parameter does to a metric: main effects and interactions of two, by least squares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from dse.analysis.levels import Factor, factors_of
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.values import Floats, Value
from dse.errors import StudyError, nearest

MOST_PAIRED = 24
"""Interactions are told between so many parameters at most: those of the largest effects."""

_GIST = 240
"""So many of the last characters of a reason are told."""

_LEAST = 1e-9
"""What is left of a column after others were taken out, as a share of it, that is nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One value of a parameter, ``None`` where it is absent; a group of values has its range.

    ``mean`` is the metric's mean over the trials that have it, adjusted for what the others have.
    """

    value: Value | None
    to: Value | None
    mean: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """What one parameter does on its own.

    ``share`` is the part of the metric's variance that goes with it and with no other parameter;
    ``None`` where it cannot be told from the others. ``span`` is from the lowest to the highest
    level's mean.
    """

    parameter: str
    share: float | None
    span: float
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """What two parameters do together beyond the sum of what each does; ``share`` as above."""

    parameters: tuple[str, str]
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """One metric over the trials of a study, largest effects first.

    ``additive`` is the share of the variance that all main effects explain together.
    """

    name: str
    unit: str
    trials: int
    mean: float
    deviation: float
    additive: float
    main: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]


def effects(problem: Problem, trials: Sequence[Trial], name: str) -> Effects:
    """Main effects and interactions of two parameters on a metric or an objective.

    Over a balanced full factorial these are the classical analysis of variance; where rules or a
    fraction have cut designs out, each share is what the term explains beyond all main effects of
    the others (sums of squares of type II).

    Source:
        Montgomery: Design and Analysis of Experiments, ch. 5 and 15; Yates: The Analysis of
        Multiple Classifications with Unequal Numbers in the Different Classes, JASA 1934.

    Raises:
        StudyError: there is no such metric, or fewer than two trials have it.
    """
    done = [trial for trial in trials if trial.state is State.DONE]
    values, unit = _told(problem, done, name)
    known = np.isfinite(values)
    if known.sum() < 2:
        raise StudyError(
            f"{known.sum()} trials have {name}: no effect can be estimated: {_lack(trials)}",
            hint="dse trials lists each with its reason",
        )
    kept = [trial for trial, ok in zip(done, known, strict=True) if ok]
    fit = _Fit(values[known], [one for one in factors_of(problem, kept) if len(one.levels) > 1])
    main = fit.main()
    return Effects(
        name=name,
        unit=unit,
        trials=len(kept),
        mean=float(fit.values.mean()),
        deviation=float(fit.values.std()),
        additive=fit.additive,
        main=tuple(main),
        interactions=tuple(fit.interactions([one.parameter for one in main[:MOST_PAIRED]])),
    )


def asked_effects(problem: Problem, trials: Sequence[Trial]) -> list[Effects]:
    """The effects on each objective, and on each metric that limits and compound ones read.

    What fewer than two trials tell is left out.

    Raises:
        StudyError: there is nothing else.
    """
    texts = [objective.text for objective in problem.objectives]
    done = [trial for trial in trials if trial.state is State.DONE]
    names = [*texts, *sorted(problem.asked - set(texts))]
    known = [name for name in names if np.isfinite(_told(problem, done, name)[0]).sum() > 1]
    if not known:
        raise StudyError(
            f"no effect can be estimated: {_lack(trials)}",
            hint="dse trials lists each with its reason",
        )
    return [effects(problem, done, name) for name in known]


def _lack(trials: Sequence[Trial]) -> str:
    """Why trials are too few, with the commonest reason."""
    faults = [trial.fault.reason for trial in trials if trial.fault is not None]
    count = f"{sum(trial.state is State.DONE for trial in trials)} of {len(trials)} finished trials"
    if not faults:
        return f"{count} have metrics, and two are needed"
    reason, same = Counter(faults).most_common(1)[0]
    gist = reason.strip()[-_GIST:]
    return f"{count} have metrics; {len(faults)} have none, {same} of them for: {gist}"


def _told(problem: Problem, trials: Sequence[Trial], name: str) -> tuple[Floats, str]:
    """The numbers of a metric or an objective, (n,), NaN where one is unknown, and their unit."""
    if name in problem.metrics:
        values = [trial.metrics.get(name, np.nan) for trial in trials]
        return np.array(values, dtype=float), problem.metrics[name].unit
    for objective in problem.objectives:
        if objective.text == name:
            return objective.values(problem.columns(trials), len(trials)), objective.unit
    known = [*problem.metrics, *(objective.text for objective in problem.objectives)]
    raise StudyError(f"there is no metric {name!r}", hint=nearest(name, known))


class _Fit:
    """Least squares of the values on all main effects, and on what comes on top of them."""

    def __init__(self, values: Floats, factors: Sequence[Factor]) -> None:
        self.values = values
        self._factors = {factor.name: factor for factor in factors}
        self._columns = {factor.name: factor.columns for factor in factors}
        self._centred = values - values.mean()
        self._total = float((self._centred**2).sum())
        self._basis = self._span([])

    @property
    def additive(self) -> float:
        """The share of the variance that the main effects explain together."""
        return self._share(self._basis) or 0.0

    def main(self) -> list[Effect]:
        """The main effects, the largest first."""
        found = [self._effect(factor) for factor in self._factors.values()]
        return sorted(found, key=lambda one: -(-1.0 if one.share is None else one.share))

    def interactions(self, names: Sequence[str]) -> list[Interaction]:
        """The interactions of two of these parameters, the largest first."""
        found = []
        for one, other in combinations(names, 2):
            left, right = self._columns[one], self._columns[other]
            products = (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)
            share = self._share(_beyond(products, self._basis))
            found.append(Interaction(parameters=(one, other), share=share))
        return sorted(found, key=lambda one: -(-1.0 if one.share is None else one.share))

    def _effect(self, factor: Factor) -> Effect:
        others = self._span([factor.name])
        own = _beyond(self._columns[factor.name], others)
        means = self._means(factor, adjusted=own.shape[1] == len(factor.levels) - 1)
        counts = np.bincount(factor.codes, minlength=len(factor.levels))
        rows = zip(factor.levels, means.tolist(), counts.tolist(), strict=True)
        return Effect(
            parameter=factor.name,
            share=self._share(own),
            span=float(np.ptp(means)),
            levels=tuple(
                Level(value=low, to=high, mean=mean, trials=count)
                for (low, high), mean, count in rows
            ),
        )

    def _means(self, factor: Factor, *, adjusted: bool) -> Floats:
        """The mean at each level: of the main-effects model, or plain where that has no answer."""
        if not adjusted:
            sums = np.bincount(factor.codes, weights=self.values, minlength=len(factor.levels))
            return np.asarray(sums / np.bincount(factor.codes, minlength=len(factor.levels)))
        names = list(self._columns)
        found = self._coefficients
        start = 1 + sum(self._columns[name].shape[1] for name in names[: names.index(factor.name)])
        own = found[start : start + len(factor.levels) - 1]
        return np.asarray(found[0] + np.append(own, -own.sum()))

    @cached_property
    def _coefficients(self) -> Floats:
        design = np.column_stack([np.ones(len(self.values)), *self._columns.values()])
        return np.asarray(np.linalg.lstsq(design, self.values, rcond=None)[0], dtype=np.float64)

    def _span(self, left_out: Sequence[str]) -> Floats:
        """An orthonormal basis of the main effects' columns, but for these, (n, rank)."""
        kept = [columns for name, columns in self._columns.items() if name not in left_out]
        columns = np.column_stack(kept) if kept else np.zeros((len(self.values), 0))
        return _beyond(columns, np.zeros((len(self.values), 0)))

    def _share(
        self,
        basis: Floats,  # (n, rank), orthonormal
    ) -> float | None:
        """How much of the variance lies along the basis; ``None`` if that is no direction."""
        if not basis.shape[1]:
            return None
        return float(((basis.T @ self._centred) ** 2).sum() / self._total) if self._total else 0.0


def _beyond(
    columns: Floats,  # (n, k)
    basis: Floats,  # (n, rank), orthonormal and centred
) -> Floats:
    """An orthonormal basis of what the columns are beyond a constant and the basis, (n, r)."""
    centred = columns - columns.mean(axis=0)
    rest = centred - basis @ (basis.T @ centred)
    rest -= basis @ (basis.T @ rest)
    if not rest.shape[1]:
        return rest
    left, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    return np.asarray(left[:, sizes > _LEAST * np.linalg.norm(columns)])
