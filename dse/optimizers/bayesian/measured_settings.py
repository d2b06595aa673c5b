"""Measured settings of designs: their parameters, their merging with free settings, and candidates.

A design's measured setting is its combination of values of the parameters that measurements read;
its free setting holds all others. All measured settings are candidates for measurement if they can
be listed, else a sample is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch, concatenate_batches
from dse.core.expressions.expression import Expression
from dse.core.objective import Limit
from dse.core.problem import Problem
from dse.core.space import DesignSpace
from dse.core.values import Floats, Ints, Mask
from dse.core.variation import cross_parents, mutate_designs
from dse.optimizers.support.level_coverage import LevelCoverage

LISTED = 4_096
"""Most measured settings that are all valued at each suggestion; of more, a sample is."""

DRAWN = 1_024
"""Measured settings that are drawn at random if there are too many to list."""

BRED = 512
"""Offspring of each kind that are added to them."""

_RARE = 256
"""Candidate settings with rare levels, at the full number of draws."""


@dataclass(frozen=True, kw_only=True)
class MeasuredSplit:
    """Split of a problem's objectives and limits into modelled and measured ones.

    Models compute the modelled (``known``) ones. The measured (``learnt``) ones depend on
    measurements, and surrogates predict them.
    """

    problem: Problem

    @cached_property
    def measured_parameters(self) -> frozenset[str]:
        """Names of the parameters that measurements read: the measured parameters.

        An objective or a limit that combines a measured metric with others is learnt as a single
        function, so all parameters that it depends on are included.
        """
        sources = self.problem.sources.values()
        reads = frozenset[str]().union(*(s.reads for s in sources if s.kind == "measured"))
        for expression in self._expressions:
            reads |= self.behind(expression) if self._learnt(expression) else frozenset()
        return self._whole(reads)

    @cached_property
    def free(self) -> frozenset[str]:
        """Names of the free parameters, which no measurement reads."""
        return frozenset(self.problem.space.by_name) - self.measured_parameters

    @cached_property
    def known(self) -> tuple[int, ...]:
        """Indices of the objectives that models compute without a measurement."""
        return self._places(learnt=False)

    @cached_property
    def learnt(self) -> tuple[int, ...]:
        """Indices of the objectives that need a measurement, and that a surrogate predicts."""
        return self._places(learnt=True)

    @cached_property
    def known_limits(self) -> tuple[Limit, ...]:
        """Limits on metrics that models compute without a measurement."""
        return self._limits(learnt=False)

    @cached_property
    def learnt_limits(self) -> tuple[Limit, ...]:
        """Limits on metrics that need a measurement, and that a surrogate predicts."""
        return self._limits(learnt=True)

    def behind(self, expression: Expression) -> frozenset[str]:
        """Return the parameters that an expression depends on, directly or through metrics."""
        found: frozenset[str] = frozenset()
        for name in expression.names:
            source = self.problem.sources.get(name)
            found |= source.reads if source is not None else frozenset({name})
        return found & frozenset(self.problem.space.by_name)

    @property
    def _expressions(self) -> tuple[Expression, ...]:
        objectives = tuple(o.expression for o in self.problem.objectives)
        return objectives + tuple(limit.slack for limit in self.problem.limits)

    def _learnt(self, expression: Expression) -> bool:
        return bool(expression.names & self.problem.measured)

    def _places(self, *, learnt: bool) -> tuple[int, ...]:
        objectives = enumerate(self.problem.objectives)
        return tuple(place for place, o in objectives if self._learnt(o.expression) == learnt)

    def _limits(self, *, learnt: bool) -> tuple[Limit, ...]:
        return tuple(x for x in self.problem.limits if self._learnt(x.slack) == learnt)

    def _whole(self, reads: frozenset[str]) -> frozenset[str]:
        """Extend the set of parameters by all members of each simplex that has a member in it.

        Members of a simplex sum to a constant, so none can vary alone.
        """
        legal = self.problem.space.legal
        for places in legal.simplexes:
            names = {legal.reals[place].name for place in places}
            reads |= names if names & reads else frozenset()
        return reads & frozenset(self.problem.space.by_name)


class MeasuredSettings:
    """Candidate settings of the measured parameters, which are those that measurements read.

    Each setting (combination of values) is represented by one design that has it.
    """

    def __init__(
        self, problem: Problem, split: MeasuredSplit, coverage: LevelCoverage | None = None
    ) -> None:
        self._problem = problem
        self._coverage = coverage
        self._names = sorted(split.measured_parameters)
        self._measured_parameters = split.measured_parameters
        self._list = self._list_designs()

    @property
    def all(self) -> Batch | None:
        """One design per setting of the measured parameters; ``None`` if too many to list."""
        return self._list

    def keys(self, batch: Batch) -> list[bytes]:
        """Return one key per design, equal where the measured parameters have equal values."""
        return keys(batch, self._names)

    def distinct(self, batch: Batch, taken: set[bytes]) -> Batch:
        """Return one design per setting of the measured parameters in the batch.

        Settings whose keys are in ``taken`` are left out.
        """
        found: dict[bytes, int] = {}
        for row, key in enumerate(self.keys(batch)):
            if key not in taken:
                found.setdefault(key, row)
        return batch.take(np.fromiter(found.values(), dtype=np.int64, count=len(found)))

    def pool(
        self,
        best: Batch | None,
        taken: set[bytes],
        rng: np.random.Generator,
        *,
        drawn: int = DRAWN,
        bred: int = BRED,
    ) -> Batch:
        """Return candidate settings of the measured parameters: all, or random draws and offspring.

        A setting is a combination of values of the parameters that measurements read. If there are
        too many settings to list, some are drawn at random, a share of them for each rare level (a
        parameter value that few designs have), and others are offspring of the best settings.

        Args:
            best: designs with the best settings; not read if all settings are listed.
            taken: keys of the settings to leave out.
            rng: generator of the draws.
            drawn: number of random draws; if below :data:`DRAWN`, settings are drawn even if all
                can be listed.
            bred: number of offspring of each of three kinds.
        """
        if self._list is not None:
            found_all = self.distinct(self._list, taken)
            if drawn >= DRAWN or len(found_all) <= drawn:
                return found_all
            return found_all.take(np.sort(rng.choice(len(found_all), size=drawn, replace=False)))
        space = self._problem.space
        found = [space.sample(drawn, rng)]
        if self._coverage is not None:
            found.append(self._coverage.sample_rare(min(_RARE, drawn // 4), rng))
        if best is not None and len(best):
            mothers, fathers = rng.integers(len(best), size=(2, bred))
            children = cross_parents(space, best.take(mothers), best.take(fathers), rng)
            found += [children, mutate_designs(space, children, rng)]
            found += [mutate_designs(space, best.take(np.arange(bred) % len(best)), rng)]
        return self.distinct(concatenate_batches([batch for batch in found if len(batch)]), taken)

    def around(
        self, best: Batch, width: float, each: int, taken: set[bytes], rng: np.random.Generator
    ) -> Batch:
        """Return settings of the measured parameters near the best designs, by random moves.

        A setting is a combination of values of the parameters that measurements read. A move is a
        mutation or a Gaussian step.

        Args:
            best: designs to start from.
            width: standard deviation of the Gaussian steps, as a fraction of a real parameter's
                range.
            each: number of moves of each kind from each design.
            taken: keys of the settings to leave out.
            rng: generator of the moves.
        """
        space = self._problem.space
        many = best.take(np.repeat(np.arange(len(best)), each))
        found = [mutate_designs(space, many, rng)]
        if space.legal.reals:
            found.append(self._shaken(many, width, rng))
        return self.distinct(
            concatenate_batches([batch for batch in found if len(batch)] or [best]), taken
        )

    def _shaken(self, batch: Batch, width: float, rng: np.random.Generator) -> Batch:
        legal = self._problem.space.legal
        shares: Floats = legal.shares(batch)
        moved = rng.random(shares.shape) < max(0.5, 1 / max(shares.shape[1], 1))
        shares = np.clip(shares + moved * width * rng.standard_normal(shares.shape), 0, 1)
        codes = [legal.codes(component, batch) for component in legal.components]
        return legal.assemble(codes, shares)

    def _list_designs(self) -> Batch | None:
        space = self._problem.space
        count = space.count()
        if count is not None and count <= LISTED:
            return (
                self.distinct(concatenate_batches(space.enumerate()), set())
                if count
                else space.batch([])
            )
        legal = space.legal
        if any(real.name in self._measured_parameters for real in legal.reals) or legal.mixed:
            return None
        choices: list[np.ndarray] = []
        total = 1
        for component in legal.components:
            own = [
                place
                for place, name in enumerate(component.names)
                if name in self._measured_parameters
            ]
            rows = component.rows
            if rows is None and own:
                return None
            if rows is None:
                rows = component.sample(1, self._problem.rng(0))
            firsts = np.unique(rows[:, own], axis=0, return_index=True)[1] if own else [0]
            choices.append(rows[np.sort(firsts)])
            total *= len(choices[-1])
            if total > LISTED:
                return None
        return self._product(choices, total)

    def _product(self, choices: Sequence[np.ndarray], total: int) -> Batch:
        places, codes = np.arange(total), []
        for rows in reversed(choices):
            codes.append(rows[places % len(rows)])
            places = places // len(rows)
        legal = self._problem.space.legal
        return legal.assemble(codes[::-1], np.full((total, len(legal.reals)), 0.5))


def merge_settings(
    space: DesignSpace,
    measured: Batch,  # n designs
    free: Batch,  # n designs
    measured_parameters: frozenset[str],
) -> tuple[Batch, Mask]:
    """Merge two batches of n designs: measured parameters from one, all others from the other.

    The parameters named in ``measured_parameters`` come from ``measured``.

    Returns:
        The n designs, and which of them are legal, (n,).
    """
    columns = {
        parameter.name: (measured if parameter.name in measured_parameters else free).columns[
            parameter.name
        ]
        for parameter in space.parameters
    }
    batch = Batch(columns, len(measured))
    return batch, _legal(space, batch, measured_parameters)


def pair_settings(
    space: DesignSpace, measured: Batch, free: Batch, measured_parameters: frozenset[str]
) -> tuple[Batch, Mask]:
    """Combine the measured parameters of each design with the free parameters of each other one.

    Free parameters are those that no measurement reads. The result is all pairs of designs, in
    which the free parameters vary fastest, and the mask of the legal ones.
    """
    first = np.repeat(np.arange(len(measured)), len(free))
    second = np.tile(np.arange(len(free)), len(measured))
    return merge_settings(space, measured.take(first), free.take(second), measured_parameters)


def keys(batch: Batch, names: Sequence[str]) -> list[bytes]:
    """Return one key per design, equal for designs with equal values of the named parameters."""
    if not names:
        return [b""] * len(batch)
    columns = [batch.columns[name] for name in names]
    table = np.column_stack(
        [
            np.nan_to_num(c.values.astype(float), nan=-1e300) if c.codes is None else c.codes
            for c in columns
        ]
    )
    return [row.tobytes() for row in np.ascontiguousarray(table, dtype=np.float64)]


def firsts(tags: Sequence[bytes]) -> Ints:
    """Return the index of the first occurrence of each distinct tag, in ascending order."""
    places = {tag: row for row, tag in reversed(list(enumerate(tags)))}
    return np.array(sorted(places.values()), dtype=np.int64)


def _legal(space: DesignSpace, batch: Batch, measured_parameters: frozenset[str]) -> Mask:
    """Return which merged designs are legal, (n,).

    Only rules that read parameters of both sources are checked.
    """
    legal = space.legal
    keep: Mask = np.ones(len(batch), dtype=bool)
    for component in legal.components:
        if _mixes_both(frozenset(component.names), measured_parameters):
            keep &= component.legal(legal.codes(component, batch))
    for real in legal.reals:
        rule = legal.conditions.get(real.name)
        if rule is not None and _mixes_both(rule.names | {real.name}, measured_parameters):
            active = rule.holds(batch.columns, len(batch), unknown=False)
            keep &= active == ~batch.absent(real.name)
    for rule in legal.mixed:
        if _mixes_both(rule.names, measured_parameters):
            keep &= rule.holds(batch.columns, len(batch), unknown=True)
    return keep


def _mixes_both(names: frozenset[str], measured_parameters: frozenset[str]) -> bool:
    return bool(names & measured_parameters) and bool(names - measured_parameters)
