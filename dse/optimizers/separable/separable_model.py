"""Separable objectives of a problem: the inputs of their surrogates, and the first designs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.objective import Objective
from dse.core.problem import Problem
from dse.core.separable import Separable
from dse.core.values import Floats
from dse.optimizers.bayesian.measured_split import MeasuredSplit
from dse.optimizers.separable.part_space import (
    NotSeparableError,
    PartSpace,
    features_of,
    part_space,
)
from dse.optimizers.separable.sum_model import SumInputs

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
            inputs = {place: _inputs(space, separable) for place, separable in declared.items()}
        except NotSeparableError as reason:
            return str(reason)
        return SeparableModel(space=space, inputs=inputs)

    @cached_property
    def probes(self) -> Batch:
        """First designs: all features at their least, all at their largest, then one at a time.

        Several neighbouring parts take their largest feature together if there are more than
        ``_PROBES`` parts. The first two designs are usually the ends of the front. There are none
        if no part has a feature.
        """
        own = self._featured
        if not own.tables:
            return self.space.designs(np.zeros((0, len(self.space.parts)), dtype=np.int64))
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

    @property
    def _featured(self) -> SumInputs:
        """Inputs with the most features, for which probes are chosen."""
        return max(self.inputs.values(), key=lambda one: len(one.tables))

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


def _inputs(space: PartSpace, separable: Separable) -> SumInputs:
    """Return the inputs of the surrogate of a declared metric."""
    places, tables = features_of(space, separable)
    return SumInputs(
        space=space,
        places=np.array(places, dtype=np.int64),
        tables=tuple(tables),
        monotone=separable.monotone,
    )


def _declared(problem: Problem, objective: Objective) -> Separable | None:
    """Return the declaration of the one metric that an objective reads, if it has one."""
    names = objective.expression.names
    if len(names) != 1:
        return None
    return problem.sources[next(iter(names))].separable if names <= problem.sources.keys() else None
