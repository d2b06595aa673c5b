"""Use of a library of studies by the grey-box search: its first designs, and events on weights."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.design import Design
from dse.core.pareto import hypervolume, nondominated
from dse.core.problem import Problem
from dse.core.trial import Event
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.library_prior import LibraryMean, MemberWeights
from dse.optimizers.bayesian.measured_parts import MeasuredParts
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.bayesian.model_fitting import ModelFitter
from dse.optimizers.bayesian.posterior import beyond


class LibrarySearch:
    """Part of the grey-box search that uses a library; without a library it does nothing.

    Args:
        problem: problem to optimise; members of libraries are among its ``priors``.
        roles: its split into measured and modelled metrics.
        parts: its measured parts.
    """

    def __init__(self, problem: Problem, roles: MeasuredSplit, parts: MeasuredParts) -> None:
        self._problem = problem
        self._roles = roles
        self._parts = parts
        self.usable = any(prior.library for prior in problem.priors)
        self._designs: list[Design] | None = None
        self._events: list[Event] = []
        self._finished_count = 0

    def designs(self, fitter: ModelFitter, count: int) -> list[Design]:
        """Return the first designs that the members suggest; they do not depend on trials.

        Args:
            fitter: fitter of the members' models.
            count: most designs to return; the same at each call.
        """
        if self._designs is None:
            objectives = [self._problem.objectives[place] for place in self._roles.learnt]
            known = [fitter.library_of(one.expression, one.sign) for one in objectives]
            libraries = [one for one in known if one is not None]
            self._designs = self._choose(libraries, count) if libraries else []
        return self._designs

    def _choose(self, libraries: Sequence[LibraryMean], count: int) -> list[Design]:
        space = self._problem.space
        pool = self._parts.pool(space.batch([]), set(), self._problem.rng(0, 4))
        return [pool.design(row) for row in choose_from_library(pool, libraries, count)]

    def report(self, weights: Mapping[str, MemberWeights], finished: int) -> None:
        """Note an event with the members' weights when the trials reach 8, 16, 32 and so on.

        A resumed study does not repeat the event of the trials that it begins with.

        Args:
            weights: the weights for each objective and limit, by its text.
            finished: number of finished trials that the weights are based on.
        """
        before, self._finished_count = self._finished_count, max(finished, self._finished_count)
        passed = (
            finished.bit_length() > before.bit_length()
            if before
            else finished & (finished - 1) == 0
        )
        if weights and passed:
            self._events += [
                Event(kind="library", text=f"{name}: {one.text}", told=finished)
                for name, one in weights.items()
            ]

    def events(self) -> list[Event]:
        """Return the events since the last call."""
        drained, self._events = self._events, []
        return drained


def choose_from_library(batch: Batch, libraries: Sequence[LibraryMean], count: int) -> list[int]:
    """Return designs of the predicted front, given by index, one per step of a greedy choice.

    A prediction is the mean of the members of a library, which all have equal weight. Each step
    takes the design that adds the most to the hypervolume of the predicted losses.

    Args:
        batch: n candidates.
        libraries: the models of m learnt objectives.
        count: most designs to return; the predicted front may have fewer.
    """
    if not len(batch) or not libraries:
        return []
    means = np.column_stack([library.members(batch).mean(axis=1) for library in libraries])
    front = np.flatnonzero(nondominated(means))
    reference = beyond(means[front], means)
    found: list[int] = []
    while len(found) < min(count, len(front)):
        found.append(_choose_next(means, front, found, reference))
    return found


def alternate(library: Sequence[Design], even: Sequence[Design], begun: int) -> Iterator[Design]:
    """Iterate over designs of a library and space-filling ones in turn.

    Args:
        library: designs that a library suggests; if there are none, only the others follow.
        even: space-filling designs.
        begun: number of designs before; the library's turn is at every even number.
    """
    first, second = iter(library), iter(even)
    if begun % 2:
        yield from itertools.islice(second, 1)
    for design in first:
        yield design
        yield from itertools.islice(second, 1)
    yield from second


def _choose_next(means: Floats, front: Ints, found: list[int], reference: Floats) -> int:
    left = [int(row) for row in front if int(row) not in found]
    worth = [hypervolume(means[[*found, row]], reference) for row in left]
    return left[int(np.argmax(worth))]
