"""Decision of the grey-box search whether a library of studies agrees with what is measured."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence

import numpy as np

from dse.core.expressions.expression import Expression
from dse.core.problem import Problem
from dse.core.trial import Event, State, Trial
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.library_prior import LibraryMean, MemberWeights
from dse.optimizers.bayesian.measured_settings import MeasuredSplit

FEWEST = 4
"""Measured designs below which a library is not used: fewer cannot show an agreement."""
_CHANCE = 0.05
"""Greatest probability that an unrelated library agrees as well, at which a library is used.

It is divided by the number of tests so far, as each of them may be passed by chance.
"""
_LEAST_CHANCE = 0.001
"""Least such bound; fewer permutations than :data:`_ORDERS` plus one cannot show less."""
_ALONE, _TURNS = 12, 4
"""Measured designs after which only half of the designs are chosen with the library, and the length
of the cycle in which those without it come first."""
_ORDERS = 999
"""Random permutations of the measured designs, where there are more than these in all."""
_MOST = 64
"""Most measured designs that are compared; of more, an even sample."""

Ranking = tuple[Floats, Floats]
"""Losses of the measured designs, (n,), and the members' predictions of them, (n, k)."""


class LibraryAgreement:
    """Decision of the grey-box optimizer whether to use the results of earlier studies.

    A library is a set of earlier studies, its members. The first designs are chosen without it.
    From :data:`FEWEST` measured designs on, the library is used while its members rank the measured
    designs better than chance explains. The decision is a function of the finished trials alone,
    and is made anew after each of them. A problem without a library needs no such object.

    Args:
        problem: problem to optimise; members of libraries are among its ``priors``.
        split: its split into measured and modelled metrics.
    """

    def __init__(self, problem: Problem, split: MeasuredSplit) -> None:
        self._problem = problem
        self._split = split
        self._libraries: dict[str, LibraryMean | None] = {}
        self._chances: dict[int, float] = {}
        self._events: list[Event] = []
        self._reported = 0

    @staticmethod
    def of(problem: Problem, split: MeasuredSplit) -> LibraryAgreement | None:
        """Return the decision for a problem; ``None`` if its priors include no library."""
        has_library = any(prior.library for prior in problem.priors)
        return LibraryAgreement(problem, split) if has_library else None

    def mean_of(self, expression: Expression, sign: float) -> LibraryMean | None:
        """Return models of a formula from earlier studies; ``None`` if no study has its metrics.

        Args:
            expression: the formula of an objective or a limit.
            sign: factor that turns the formula's values into losses: 1 or -1.
        """
        name = repr(expression.node)
        if name not in self._libraries:
            names = self._split.behind(expression)
            self._libraries[name] = LibraryMean.of(self._problem, expression, sign, names)
        return self._libraries[name]

    def is_used(self, trials: Sequence[Trial]) -> bool:
        """Return whether the earlier studies are used to choose the next design.

        They are used if they agree with the measurements. After the first :data:`_ALONE` measured
        designs, two of every four designs are nevertheless chosen without it, because a model that
        trusts wrong studies would detect the error late.

        Args:
            trials: the first n trials of the study that finished, for any n.
        """
        count = len(_done(trials))
        in_turn = count < _ALONE or count % _TURNS >= _TURNS // 2
        return in_turn and self.agrees(trials)

    def agrees(self, trials: Sequence[Trial]) -> bool:
        """Return whether earlier studies rank the measured designs correctly, beyond chance.

        Args:
            trials: the first n trials of the study that finished, for any n.
        """
        done = _done(trials)
        tests = max(1, len(done) - FEWEST + 1)
        return self._chance(done) <= max(_CHANCE / tests, _LEAST_CHANCE)

    def report(self, weights: Mapping[str, MemberWeights], finished: Sequence[Trial]) -> None:
        """Record the weights of earlier studies after 8, 16, 32 ... trials, and when use changes.

        A resumed study does not repeat the event about the weights at which it resumes.

        Args:
            weights: the weights for each objective and limit, by its text.
            finished: the finished trials that the weights are based on.
        """
        count, before = len(finished), self._reported
        if count <= before:
            return
        self._reported = count
        for last in range(before + 1, count + 1):
            self._report_change(finished[:last])
        passed = count.bit_length() > before.bit_length() if before else count & (count - 1) == 0
        if passed:
            self._events += [
                Event(kind="library", text=f"{name}: {one.text}", told=count)
                for name, one in weights.items()
            ]

    def events(self) -> list[Event]:
        """Return the events that were recorded since the last call."""
        drained, self._events = self._events, []
        return drained

    def _report_change(self, finished: Sequence[Trial]) -> None:
        agrees = self.agrees(finished)
        if agrees == self.agrees(finished[:-1]):
            return
        count, chance = len(finished), self._chance(_done(finished))
        state = "used" if agrees else "no longer used"
        text = (
            f"{state} after {count} trials: an unrelated library ranks their designs as well with "
            f"a probability of {100 * chance:.1f} %"
        )
        self._events.append(Event(kind="library", text=text, told=count))

    def _chance(self, done: Sequence[Trial]) -> float:
        """Return the probability that an unrelated library agrees as well with these trials."""
        count = len(done)
        if count < FEWEST:
            return 1.0
        if count not in self._chances:
            rng = self._problem.rng(count, 5)
            self._chances[count] = chance_of_agreement(self._rankings(done), rng)
        return self._chances[count]

    def _rankings(self, done: Sequence[Trial]) -> list[Ranking]:
        """Return the losses and the predictions of each learnt objective and limit.

        The predictions have one column for each study of the library; the column is 0 if the study
        lacks the metrics.
        """
        problem, size = self._problem, len(done)
        columns = problem.columns(done)
        losses = problem.losses(columns, size)
        chosen = [problem.objectives[place] for place in self._split.learnt]
        quantities = [
            (one.expression, 1.0 if one.goal == "minimize" else -1.0, losses[:, place])
            for place, one in zip(self._split.learnt, chosen, strict=True)
        ]
        quantities += [
            (one.slack, -1.0, -one.slacks(columns, size)) for one in self._split.learnt_limits
        ]
        studies = [prior.study for prior in problem.priors if prior.library]
        batch = problem.space.batch([trial.design for trial in done])
        found = []
        for expression, sign, values in quantities:
            library, predicted = self.mean_of(expression, sign), np.zeros((size, len(studies)))
            if library is not None:
                places = [studies.index(study) for study in library.studies]
                predicted[:, places] = library.members(batch)
            found.append((values, predicted))
        return found


def chance_of_agreement(rankings: Sequence[Ranking], rng: np.random.Generator) -> float:
    """Return the probability that unrelated studies rank the measured designs as well.

    The studies are the members of a library. The agreement of a member is its Kendall rank
    correlation, summed over the quantities; the test statistic is the largest agreement of any
    member. Its distribution for unrelated members is estimated by permuting the measured designs,
    which allows for the number of members and for correlated quantities. With up to six designs all
    permutations are used, else a random sample.

    Args:
        rankings: the losses and predictions of each quantity, at the same n designs.
        rng: generator of the permutations.

    Source:
        Good: Permutation, Parametric and Bootstrap Tests of Hypotheses, 3rd ed. 2005, ch. 3 and 5
        (permutation tests, also of the largest of several statistics).
    """
    size = len(rankings[0][0]) if rankings else 0
    some = np.unique(np.linspace(0, size - 1, min(size, _MOST)).round().astype(int))
    orders = _permutations(len(some), rng)
    total = np.zeros((len(orders), rankings[0][1].shape[1] if rankings else 0))
    for values, predicted in rankings:
        own = np.nan_to_num(_signs(values[some]))
        pairs = float(np.abs(own).sum())
        if pairs:
            theirs = np.array([_signs(column) for column in predicted[some].T])  # (k, n, n)
            permuted = own[orders[:, :, None], orders[:, None, :]]  # (b, n, n)
            shape = (len(orders), -1)
            total += permuted.reshape(shape) @ theirs.reshape(len(theirs), -1).T / pairs
    best = total.max(axis=1, initial=-np.inf)
    if not np.isfinite(best[:1]).all() or best[0] <= 0:
        return 1.0
    return float((best >= best[0] - 1e-9).mean())


def _done(trials: Sequence[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.state is State.DONE]


def _permutations(size: int, rng: np.random.Generator) -> Ints:
    """Return permutations of n designs, (b, n); the first permutation is the identity."""
    if math.factorial(min(size, _MOST)) <= _ORDERS:
        return np.array(list(itertools.permutations(range(size))))
    drawn = rng.permuted(np.tile(np.arange(size), (_ORDERS, 1)), axis=1)
    return np.vstack([np.arange(size), drawn])


def _signs(values: Floats) -> Floats:
    """Return the sign of the difference of each pair of values, (n, n)."""
    return np.sign(values[:, None] - values[None, :])
