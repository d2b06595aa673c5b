"""Separable metrics of a problem: inputs of their surrogates, first designs, fronts of belief."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.separable import Separable
from dse.core.values import Floats, Ints
from dse.optimizers.bayesian.conditional_fronts import ConditionalFronts
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.bayesian.shared_parts import merge_parts
from dse.optimizers.separable.front_of_sums import front_of_sums
from dse.optimizers.separable.part_space import (
    NotSeparableError,
    PartSpace,
    features_of,
    known_columns,
    part_space,
)
from dse.optimizers.separable.sum_model import SumInputs

_CONTEXTS = 16
"""Most combinations of free parameters for which fronts of the belief are searched."""
_CANDIDATES = 512
"""Most members of one front of the belief that become candidates."""
_CHECKED = 64
"""Random designs on which modelled losses are compared with sums over the parts."""
_EQUAL = 1e-6
_PROBES = 24
"""Most probes, but for the first design."""
_DOUBT, _KNOWN = 0.1, 0.1
"""Assumed relative error of a sum, and the share of variance below which a probe is known."""


@dataclass(frozen=True, kw_only=True)
class SeparableModel:
    """Separable learnt objectives of a problem, with the parts that they share.

    Attributes:
        space: the parts and their rows.
        inputs: for the index of each separable objective, the inputs of its surrogate.
    """

    space: PartSpace
    inputs: Mapping[int, SumInputs]
    _contexts: dict[str, list[_Context]] = field(default_factory=dict, repr=False)

    @staticmethod
    def of(problem: Problem, roles: MeasuredSplit) -> SeparableModel | str:
        """Return the model of the declared metrics, or the reason why there is none.

        The reason is empty if no measured objective is declared separable.
        """
        declared = {
            place: separable
            for place in roles.learnt
            if (separable := _declared(problem, problem.objectives[place])) is not None
        }
        if not declared:
            return ""
        groups = [group for one in declared.values() for group in one.groups]
        try:
            space = part_space(problem, roles, groups)
        except NotSeparableError as reason:
            return str(reason)
        inputs = {}
        for place, separable in declared.items():
            places, tables = features_of(space, separable)
            inputs[place] = SumInputs(
                space=space,
                places=np.array([int(one[0]) for one in places], dtype=np.int64),
                tables=tuple(tables),
                monotone=separable.monotone,
            )
        return SeparableModel(space=space, inputs=inputs)

    @cached_property
    def probes(self) -> Batch:
        """First designs: all features at their least, all at their largest, then one at a time.

        Several neighbouring parts take their largest feature together if there are more than
        ``_PROBES`` parts. The first two designs are usually the ends of the front.
        """
        own = next(iter(self.inputs.values()))
        low = self.space.rows_of(self.space.base)[0]
        high = low.copy()
        for place, table in zip(own.places.tolist(), own.tables, strict=True):
            low[place], high[place] = int(np.argmin(table)), int(np.argmax(table))
        places = np.unique(own.places)
        ends = low.copy()
        ends[places] = high[places]
        rows = [low, ends]
        for together in np.array_split(places, min(len(places), _PROBES)):
            one = low.copy()
            one[together] = high[together]
            rows.append(one)
        return self.space.designs(np.vstack(rows))

    def open_probes(self, attempted: Batch) -> Batch:
        """Return the probes from which sensitivities can be learnt that are not known yet.

        Those are left out whose value follows from the designs measured already, up to
        ``_KNOWN`` of its prior variance, if the sensitivities are independent.

        Args:
            attempted: designs that were or are being measured.
        """
        own = next(iter(self.inputs.values()))

        largest = np.array([float(table.max()) or 1.0 for table in own.tables])

        def regressors(batch: Batch) -> Floats:
            features = own.features(self.space.rows_of(batch)) / largest
            return np.column_stack([np.ones(len(batch)), features])

        seen, wanted = regressors(attempted), regressors(self.probes)
        inner = np.eye(wanted.shape[1]) + seen.T @ seen / _DOUBT**2
        left = np.einsum("ij,ij->i", wanted, np.linalg.solve(inner, wanted.T).T)
        unknown = left > _KNOWN * (wanted**2).sum(axis=1)
        unknown[:2] |= len(attempted) < len(wanted)
        return self.probes.take(np.flatnonzero(unknown))

    def candidates(
        self, effects: Mapping[int, Sequence[Floats]], stairs: ConditionalFronts
    ) -> Batch:
        """Return designs on the front of the belief, with the free parameters of the base.

        Args:
            effects: for each separable objective, the believed summand of each row of each part.
            stairs: conditional fronts, for good values of the free parameters.
        """
        found: list[Ints] = []
        for context in self._list_contexts(stairs):
            tables = [
                np.column_stack([known, *(own[place] for own in effects.values())])
                for place, known in enumerate(context.tables)
            ]
            front = front_of_sums(tables).thinned(_CANDIDATES)
            found.append(front.rows)
        return self.space.designs(np.unique(np.vstack(found), axis=0))

    def _list_contexts(self, stairs: ConditionalFronts) -> list[_Context]:
        """Return some combinations of free parameters, with the modelled losses of all rows."""
        if "all" not in self._contexts:
            base, roles = self.space.base, self.space.roles
            free = base
            if roles.free:
                completions = stairs.wholes(base)[0].designs
                free = completions.take(np.arange(min(len(completions), _CONTEXTS)))
                free = free if len(free) else base
            self._contexts["all"] = [
                self._context(free.take(np.array([row]))) for row in range(len(free))
            ]
        return self._contexts["all"]

    def _context(self, free: Batch) -> _Context:
        space = self.space
        varied = self._known_losses(space.varied, free)
        base = self._known_losses(space.base, free)
        changes = np.nan_to_num(varied - base, nan=np.inf)
        tables = [np.asarray(own) for own in np.split(changes, space.starts[1:-1])]
        drawn = space.problem.space.sample(_CHECKED, space.problem.rng(0, 5))
        rows = space.rows_of(drawn)
        guess = base + sum(own[rows[:, place]] for place, own in enumerate(tables))
        true = self._known_losses(space.designs(rows), free)
        fine = np.isfinite(true).all(axis=1) & np.isfinite(guess).all(axis=1)
        width = np.ptp(true[fine], axis=0) if fine.any() else np.ones(true.shape[1])
        gap = np.abs(true[fine] - guess[fine]).max(axis=0, initial=0.0)
        return _Context(
            tables=tables, exact=bool((gap <= _EQUAL * np.maximum(width, 1e-300)).all())
        )

    def _known_losses(self, batch: Batch, free: Batch) -> Floats:
        """Return the modelled losses of designs with the free parameters of another, (n, b)."""
        problem, roles = self.space.problem, self.space.roles
        if roles.free:
            many = free.take(np.zeros(len(batch), dtype=np.int64))
            batch, _ = merge_parts(problem.space, batch, many, roles.part)
        columns: Mapping[str, Column] = known_columns(problem, batch)
        found = [
            (1.0 if problem.objectives[place].goal == "minimize" else -1.0)
            * problem.objectives[place].values(columns, len(batch))
            for place in roles.known
        ]
        return np.column_stack(found) if found else np.zeros((len(batch), 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Context:
    """Modelled losses that each row of each part adds, for one combination of free parameters.

    ``exact`` states whether the modelled losses are sums over the parts.
    """

    tables: list[Floats]
    exact: bool


def _declared(problem: Problem, objective: Objective) -> Separable | None:
    """Return the declaration of the one metric that an objective reads, if it has one."""
    names = objective.expression.names
    if len(names) != 1:
        return None
    return problem.sources[next(iter(names))].separable if names <= problem.sources.keys() else None
