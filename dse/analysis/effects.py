"""Main effects and pairwise interactions of parameters on a metric, by least squares."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from dse.analysis.sums_of_squares import CountedFit, Factor, SumOfSquares, factors_of
from dse.core.problem import Problem
from dse.core.trial import State, Trial
from dse.core.trials import Trials
from dse.core.values import Floats, Value
from dse.errors import StudyError, nearest

MOST_PAIRED = 24
"""Largest number of parameters whose interactions are estimated: those of largest effect."""

_GIST = 240
"""Number of characters, from the end, to which the reason of a failure is shortened."""

MOST_PAIRED_LEVELS = 64
"""A parameter with more levels is in no interaction: too few trials would be in each cell."""

MOST_COLUMNS = 1_000
"""Largest number of columns of the fit; parameters with the most levels are left out first."""

MOST_ROWS = 250_000
MOST_COUNTED = 2_000_000_000
"""Largest number of levels counted, over all rows and terms, which takes some 20 s."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """Level of a factor (parameter): a value, a range of values, or inactivity.

    A range is from ``value`` to ``to``; ``None`` stands for inactivity. ``mean`` is the mean of the
    metric at the level, adjusted for the other parameters; ``trials`` is the number of trials at
    the level.
    """

    value: Value | None
    to: Value | None
    mean: float
    trials: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """Main effect of one parameter on a metric.

    ``share`` is the share of the metric's variance that this parameter explains beyond the main
    effects of all other parameters; ``None`` if it is confounded with them. ``span`` is the
    difference between the highest and the lowest level mean.
    """

    parameter: str
    share: float | None
    span: float
    levels: tuple[Level, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interaction:
    """Interaction of two parameters in their effect on one metric.

    ``share`` is the fraction of the metric's variance that it explains beyond main effects.
    """

    parameters: tuple[str, str]
    share: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Effects:
    """Effects of all parameters on one metric, largest first.

    ``additive`` is the share of the variance that all main effects explain together. ``of`` is the
    number of trials that have the metric, and ``trials`` the number of these used in the fit; if it
    is smaller, the trials used are a sample drawn with ``seed``. ``left_out`` are parameters with
    too many levels for the fit, ``unpaired`` parameters with too many levels for interactions.
    """

    name: str
    unit: str
    trials: int
    of: int
    seed: int | None
    left_out: tuple[str, ...]
    unpaired: tuple[str, ...]
    mean: float
    deviation: float
    additive: float
    main: tuple[Effect, ...]
    interactions: tuple[Interaction, ...]


def estimate_effects(
    problem: Problem,
    trials: Sequence[Trial],
    names: Sequence[str] = (),
    *,
    rows: int | None = None,
    on_progress: Callable[[int, int], None] = lambda *_: None,
) -> list[Effects]:
    """Estimate main effects and two-factor interactions on metrics and objectives.

    On a balanced full factorial this is the classical analysis of variance. On incomplete designs
    (constraints, fractions) each share is the variance explained beyond the main effects of all
    other parameters (type II sums of squares). If there are more trials than can be fitted in some
    ten seconds, a uniform sample is drawn with the study's seed.

    Args:
        problem: the study's problem.
        trials: its finished trials.
        names: metrics or objectives; by default, each objective, and each metric that limits and
            compound objectives read, if at least two trials have a value.
        rows: largest number of trials to use; by default from :data:`MOST_ROWS` and
            :data:`MOST_COUNTED`.
        on_progress: called with the number of terms estimated so far, and their total.

    Source:
        Montgomery: Design and Analysis of Experiments, ch. 5 and 15; Yates: The Analysis of
        Multiple Classifications with Unequal Numbers in the Different Classes, JASA 1934.

    Raises:
        StudyError: there is no such metric, or fewer than two trials have it.
    """
    held = Trials.of(trials)
    done = held.take(held.are(State.DONE))
    values = _values_by_name(problem, done, names or _asked_names(problem))
    known = {name: np.isfinite(column) for name, (column, _) in values.items()}
    if not names:
        values = {name: measured for name, measured in values.items() if known[name].sum() > 1}
    scarce = next((name for name in values if known[name].sum() < 2), None)
    if scarce is not None or not values:
        few = "" if scarce is None else f"{known[scarce].sum()} trials have {scarce}: "
        raise StudyError(
            f"{few}no effect can be estimated: {_lack(held)}",
            hint="`dse trials` lists each trial with its reason",
        )
    fits = _fits(problem, done, values, rows or _most_rows(problem))
    return _estimate_effects(list(values), fits, on_progress)


def _asked_names(problem: Problem) -> list[str]:
    texts = [objective.text for objective in problem.objectives]
    return [*texts, *sorted(problem.asked - set(texts))]


def _values_by_name(
    problem: Problem, trials: Trials, names: Sequence[str]
) -> dict[str, tuple[Floats, str]]:
    return {name: _read_values(problem, trials, name) for name in dict.fromkeys(names)}


def _most_rows(problem: Problem) -> int:
    """Return the largest number of trials to fit; more would take too long."""
    size = len(problem.space.parameters)
    paired = min(size, MOST_PAIRED)
    counted = size * (size + paired * (paired - 1) // 2)
    return min(MOST_ROWS, MOST_COUNTED // max(counted, 1))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fit:
    """Input of one regression: metrics known for the same n trials, and their factor levels."""

    names: Sequence[str]
    units: Sequence[str]
    values: Floats  # (n, m)
    factors: Sequence[Factor]
    left_out: tuple[str, ...]
    of: int
    seed: int


def _fits(
    problem: Problem, trials: Trials, values: Mapping[str, tuple[Floats, str]], most: int
) -> list[_Fit]:
    """Return the inputs of the regressions, one for all metrics that the same trials have."""
    alike: dict[bytes, list[str]] = {}
    for name, (column, _) in values.items():
        alike.setdefault(np.isfinite(column).tobytes(), []).append(name)
    fits = []
    for names in alike.values():
        rows = np.flatnonzero(np.isfinite(values[names[0]][0]))
        count = len(rows)
        if count > most:
            rows = np.sort(problem.rng(count).choice(rows, most, replace=False))
        factors = [one for one in factors_of(problem, trials.take(rows)) if len(one.levels) > 1]
        kept, left_out = _with_few_levels(factors)
        fits.append(
            _Fit(
                names=names,
                units=[values[name][1] for name in names],
                values=np.column_stack([values[name][0][rows] for name in names]),
                factors=kept,
                left_out=left_out,
                of=count,
                seed=problem.seed,
            )
        )
    return fits


def _with_few_levels(factors: Sequence[Factor]) -> tuple[list[Factor], tuple[str, ...]]:
    """Return the factors to fit, those with few levels first, and the names of the others.

    The design matrix may have at most :data:`MOST_COLUMNS` columns in total.
    """
    order = sorted(range(len(factors)), key=lambda place: len(factors[place].levels))
    columns = np.cumsum([len(factors[place].levels) - 1 for place in order])
    kept = {place for place, end in zip(order, columns, strict=True) if end <= MOST_COLUMNS}
    left_out = tuple(one.name for place, one in enumerate(factors) if place not in kept)
    return [one for place, one in enumerate(factors) if place in kept], left_out


def _estimate_effects(
    names: Sequence[str], fits: Sequence[_Fit], on_progress: Callable[[int, int], None]
) -> list[Effects]:
    count = _Count(on_progress)
    for fit in fits:
        paired = min(len(fit.factors), MOST_PAIRED)
        count.total += len(fit.factors) + paired * (paired - 1) // 2
    found = {one.name: one for fit in fits for one in _effects_of(fit, count)}
    return [found[name] for name in names]


class _Count:
    """Progress counter: effects and interactions estimated so far, and their total number."""

    def __init__(self, on_progress: Callable[[int, int], None]) -> None:
        self.total = 0
        self._done = 0
        self._tell = on_progress

    def one(self) -> None:
        self._done += 1
        self.total = max(self.total, self._done)
        self._tell(self._done, self.total)


def _effects_of(fit: _Fit, count: _Count) -> Iterator[Effects]:
    """Yield the effects of all factors on each metric of a regression.

    The counts of levels are computed once for all metrics.
    """
    counted = CountedFit(fit.values, fit.factors)
    main_effects = []
    for place in range(len(fit.factors)):
        main_effects.append(counted.main(place))
        count.one()
    terms: dict[tuple[int, int], SumOfSquares] = {}
    for column, name in enumerate(fit.names):
        total = float(counted.total[column])
        shares = [_share(one.own, column, total) for one in main_effects]
        order = sorted(range(len(main_effects)), key=lambda place: -_rank(shares[place]))
        few = [one for one in order if len(fit.factors[one].levels) <= MOST_PAIRED_LEVELS]
        pairs = []
        for one, other in combinations(few[:MOST_PAIRED], 2):
            term = terms.get((min(one, other), max(one, other)))
            if term is None:
                term = counted.interaction(min(one, other), max(one, other))
                terms[min(one, other), max(one, other)] = term
                count.one()
            names = (fit.factors[one].name, fit.factors[other].name)
            pairs.append(Interaction(parameters=names, share=_share(term, column, total)))
        values = fit.values[:, column]
        yield Effects(
            name=name,
            unit=fit.units[column],
            trials=len(values),
            of=fit.of,
            seed=fit.seed if len(values) < fit.of else None,
            left_out=fit.left_out,
            unpaired=tuple(fit.factors[one].name for one in sorted(set(order) - set(few))),
            mean=float(values.mean()),
            deviation=float(values.std()),
            additive=_share(counted.additive, column, total) or 0.0,
            main=tuple(
                _effect(fit.factors[one], shares[one], main_effects[one].means[:, column])
                for one in order
            ),
            interactions=tuple(sorted(pairs, key=lambda pair: -_rank(pair.share))),
        )


def _effect(factor: Factor, share: float | None, means: Floats) -> Effect:
    counts = np.bincount(factor.codes, minlength=len(factor.levels)).tolist()
    rows = zip(factor.levels, means.tolist(), counts, strict=True)
    return Effect(
        parameter=factor.name,
        share=share,
        span=float(np.ptp(means)),
        levels=tuple(
            Level(value=low, to=high, mean=mean, trials=count) for (low, high), mean, count in rows
        ),
    )


def _share(explained: SumOfSquares, column: int, total: float) -> float | None:
    """Return the share of variance that a model term explains; ``None`` if it is not estimable."""
    if not explained.rank:
        return None
    return float(explained.squares[column]) / total if total else 0.0


def _rank(share: float | None) -> float:
    return -1.0 if share is None else share


def _lack(trials: Trials) -> str:
    """Return as text how many trials lack the metrics, and the most frequent reason for it."""
    failures = [failure.reason for failure in trials.failures if failure is not None]
    count = f"{trials.are(State.DONE).sum()} of {len(trials)} finished trials"
    if not failures:
        return f"{count} have metrics, and two are needed"
    reason, same = Counter(failures).most_common(1)[0]
    gist = reason.strip()[-_GIST:]
    return f"{count} have metrics; {len(failures)} have none, {same} of them for: {gist}"


def _read_values(problem: Problem, trials: Trials, name: str) -> tuple[Floats, str]:
    """Return the values of a metric or an objective, (n,), and their unit.

    Values that are unknown are NaN.
    """
    if name in problem.metrics:
        unknown = np.full(len(trials), np.nan)
        return trials.metrics.get(name, unknown), problem.metrics[name].unit
    for objective in problem.objectives:
        if objective.text == name:
            return objective.values(problem.columns(trials), len(trials)), objective.unit
    known = [*problem.metrics, *(objective.text for objective in problem.objectives)]
    raise StudyError(f"there is no metric {name!r}", hint=nearest(name, known))
