"""Comparison of studies of the same problem, or groups of them, at a common budget."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isclose

import numpy as np

from dse.analysis.comparability import Unlike, check_alike
from dse.analysis.conclusions import Conclusion, claims
from dse.analysis.references import INDICATORS, Indicator, ReferenceSet
from dse.analysis.run_groups import RunGroup
from dse.analysis.runs import Currency, FrontHistory, Run, currencies
from dse.analysis.significance import LEVEL, quartiles
from dse.core.expressions.operators import AGREEMENT
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.values import Floats
from dse.errors import StudyError

SHARES = (0.9, 0.95, 0.99)
"""Shares of the best final hypervolume for which the budget to reach them is reported."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonOptions:
    """Settings of a comparison of studies.

    ``over`` is the currency of the budget (measurements, trials, seconds or cost); by default
    measurements, or trials if nothing was measured. ``at`` is the budget; by default the smallest
    total that any study spent. ``joint_nadir`` replaces the hypervolume's reference point of the
    studies by the worst value of each objective on any final front plus a tenth of its range; it is
    implied for sweeps that state no reference point. ``may_differ`` lists the aspects of the
    problem that are not compared.
    """

    over: Currency | None = None
    at: float | None = None
    joint_nadir: bool = False
    may_differ: Collection[Unlike] = ()
    indicators: Sequence[Indicator] = INDICATORS


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Budget that one study spent, and the quality of the front that it reached.

    ``totals`` is the amount spent by currency (measurements, trials, seconds, cost). ``values`` are
    the indicators of its front at the budget of the comparison, ``final`` those of its final front;
    a distance indicator is infinite if the front is empty. ``share`` is the fraction of the points
    of the joint front of all studies that this study found; a point found by several studies counts
    for each of them. ``to`` is the amount spent, by currency, until the hypervolume reached each of
    the fractions :data:`SHARES` of the best final hypervolume; ``None`` if it never did.
    """

    name: str
    seed: int
    trials: int
    totals: Mapping[Currency, float]
    front: int
    share: float
    values: Mapping[Indicator, float]
    final: Mapping[Indicator, float]
    to: Mapping[Currency, tuple[float | None, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupResult:
    """Results of the studies of one group, usually one optimizer with several seeds."""

    name: str
    results: tuple[Result, ...]

    def quartiles(self, indicator: Indicator) -> tuple[float, float, float]:
        """Return the indicator's quartiles over the group's studies, at the comparison's budget."""
        low, middle, high = quartiles(np.array([one.values[indicator] for one in self.results]))
        return float(low), float(middle), float(high)

    def to(self, currency: Currency, place: int) -> tuple[float | None, int]:
        """Return the median amount spent to reach a hypervolume, and how many studies reached it.

        The median is ``None`` if half of the studies or more never reached it.

        Args:
            currency: the unit of the amount.
            place: index of the hypervolume in :data:`SHARES`, as a fraction of the best final
                hypervolume.
        """
        spent = [one.to[currency][place] for one in self.results]
        reached = sum(one is not None for one in spent)
        middle = quartiles(np.array([np.inf if one is None else one for one in spent]))[1]
        return (float(middle) if np.isfinite(middle) else None), reached


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonResult:
    """Result of a comparison of groups of studies, with one reference point at one budget.

    ``courses`` holds, by group and then by study, the history of each study's front.
    """

    objectives: tuple[Objective, ...]
    reference_point: tuple[float, ...]
    reference_from: str
    currencies: tuple[Currency, ...]
    over: Currency
    at: float
    at_given: bool
    groups: tuple[GroupResult, ...]
    claims: tuple[Conclusion, ...]
    yardstick: ReferenceSet = field(repr=False)
    courses: tuple[tuple[FrontHistory, ...], ...] = field(repr=False)


def compare(groups: Sequence[RunGroup], asked: ComparisonOptions | None = None) -> ComparisonResult:
    """Compare groups of studies of the same problem.

    Args:
        groups: at least one group.
        asked: settings of the comparison; by default those of :class:`ComparisonOptions`.

    Raises:
        StudyError: the problems differ; there is no common reference point, and the joint nadir is
            not enabled or does not exist; or the studies did not spend the requested currency.
    """
    asked = asked or ComparisonOptions()
    runs = [run for group in groups for run in group.runs]
    if not runs:
        raise StudyError("there is no study to compare", hint="name at least one")
    swept = all(run.swept and run.problem.fixed_reference is None for run in runs)
    asked = replace(asked, joint_nadir=asked.joint_nadir or swept)
    check_alike(runs, references=not asked.joint_nadir, may_differ=asked.may_differ)
    courses = [tuple(FrontHistory.of(run) for run in group.runs) for group in groups]
    fronts = [course.final for of_group in courses for course in of_group]
    problem = runs[0].problem
    point = _nadir(fronts) if asked.joint_nadir else _read_reference_point(problem)
    known = currencies(runs)
    yardstick = ReferenceSet.of(fronts, point, problem.on_scales)
    scale = _Scale(
        yardstick=yardstick,
        best=max(yardstick.value("hypervolume", front) for front in fronts),
        currencies=known,
        over=_over(asked, known),
        at=0.0,
    )
    scale = replace(scale, at=_least(runs, scale.over) if asked.at is None else asked.at)
    results = [tuple(map(scale.result, group)) for group in courses]
    return ComparisonResult(
        objectives=problem.objectives,
        reference_point=tuple(
            o.sign * loss for o, loss in zip(problem.objectives, point.tolist(), strict=True)
        ),
        reference_from="the joint nadir" if asked.joint_nadir else "the studies",
        currencies=known,
        over=scale.over,
        at=scale.at,
        at_given=asked.at is not None,
        groups=tuple(
            GroupResult(name=group.name, results=found)
            for group, found in zip(groups, results, strict=True)
        ),
        claims=claims(groups, [_values(found) for found in results], asked.indicators),
        yardstick=yardstick,
        courses=tuple(courses),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """Reference set, budget and its currency, common to all studies, and best final hypervolume."""

    yardstick: ReferenceSet
    best: float
    currencies: tuple[Currency, ...]
    over: Currency
    at: float

    def result(self, course: FrontHistory) -> Result:
        """Return the result of one study: its spending and the indicators of its front.

        The indicators are those at the common budget and those of the final front.
        """
        run, final = course.run, course.final
        then = int(course.arrived(self.over, np.array([self.at]))[0])
        indicators = self.yardstick.values(course, np.array([then, len(course.rows)]))
        return Result(
            name=run.name,
            seed=run.problem.seed,
            trials=len(run.measured),
            totals={currency: run.total(currency) for currency in ("trials", *self.currencies)},
            front=len(final),
            share=_compute_front_share(self.yardstick.joint, final),
            values={indicator: float(pair[0]) for indicator, pair in indicators.items()},
            final={indicator: float(pair[1]) for indicator, pair in indicators.items()},
            to=self._to(course),
        )

    def _to(self, course: FrontHistory) -> dict[Currency, tuple[float | None, ...]]:
        levels = [share * self.best for share in SHARES]
        needed = [self.yardstick.needed(course, one) if one > 0 else None for one in levels]
        rows = [None if count is None else int(course.rows[count - 1]) for count in needed]
        spent = {currency: course.run.spent(currency) for currency in self.currencies}
        return {
            currency: tuple(None if row is None else float(each[row]) for row in rows)
            for currency, each in spent.items()
        }


def _values(results: Sequence[Result]) -> dict[Indicator, Floats]:
    return {name: np.array([one.values[name] for one in results]) for name in INDICATORS}


def _over(asked: ComparisonOptions, known: Sequence[Currency]) -> Currency:
    if asked.over is None:
        return known[0]
    if asked.over in (*known, "trials"):
        return asked.over
    hints = {
        "cost": "every study needs a price, 'budget: {price: 4 $/h}'",
        "measurements": "no study measured anything: compare over trials or seconds",
    }
    raise StudyError(f"the studies cannot be compared over {asked.over}", hint=hints[asked.over])


def _least(runs: Sequence[Run], over: Currency) -> float:
    """Return the smallest non-zero total that any study spent in the currency ``over``."""
    return min((total for run in runs if (total := run.total(over)) > 0), default=0.0)


def _read_reference_point(problem: Problem) -> Floats:
    if problem.fixed_reference is None:
        raise StudyError(
            "the studies state no reference point that they have in common",
            hint="put 'reference:' in the studies, or take the worst of all (--joint-reference)",
        )
    return np.array([o.sign for o in problem.objectives]) * np.array(problem.fixed_reference)


def _nadir(fronts: Sequence[Floats]) -> Floats:
    every = np.vstack(fronts)  # (n, m), minimised
    if not len(every):
        raise StudyError("no study has a design within all limits, so there is no joint nadir")
    worst, span = every.max(axis=0), np.ptp(every, axis=0)
    return np.asarray(
        worst + np.where(span > 0, 0.1 * span, 0.1 * np.maximum(np.abs(worst), 1e-12))
    )


def _compute_front_share(joint: Floats, losses: Floats) -> float:
    """Return the fraction of the points of the joint front that the study's front contains."""
    if not len(joint):
        return 0.0
    own = {tuple(row) for row in losses.tolist()}
    return sum(tuple(row) in own for row in joint.tolist()) / len(joint)


def shortfalls(comparison: ComparisonResult, share: float) -> list[str]:
    """Return a sentence for each group with far less hypervolume than the first group.

    Medians are compared, and only significant differences count. If the number of seeds is too
    small for any difference to be significant, as for single studies, the medians alone decide.

    Args:
        comparison: a comparison that includes hypervolume; the first group is the baseline.
        share: allowed deficit, as a share of the baseline's hypervolume.
    """
    first, *others = comparison.groups
    wanted = first.quartiles("hypervolume")[1]
    claims = {
        claim.second: claim
        for claim in comparison.claims
        if claim.first == first.name and claim.indicator == "hypervolume"
    }
    sentences = []
    for group in others:
        found = group.quartiles("hypervolume")[1]
        least = (1 - share) * wanted
        short = found < least and not isclose(found, least, rel_tol=AGREEMENT)
        if short and _counts(claims[group.name], len(comparison.claims)):
            missing = 1 - found / wanted
            sentences.append(
                f"{group.name} falls short of {first.name}: {missing:.1%} less hypervolume, "
                f"where {share:.1%} is allowed"
            )
    return sentences


def _counts(claim: Conclusion, family: int) -> bool:
    """Return whether a difference is significant, or too few runs make significance impossible."""
    return claim.better == claim.first or claim.least * family > LEVEL
