"""Separable objectives and limits: the inputs of their surrogates, and the first designs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dse.core.batch import Batch
from dse.core.expressions.expression import Expression
from dse.core.problem import Problem
from dse.core.separable import Separable
from dse.core.values import Floats
from dse.optimizers.bayesian.measured_settings import MeasuredSplit
from dse.optimizers.separable.additive_space import (
    AdditiveSpace,
    NotSeparableError,
    build_additive_space,
    features_of,
)
from dse.optimizers.separable.sum_model import SumInputs

_CANDIDATES = 4
"""Most modelled metrics that are tried as the feature of an undeclared sum."""
_DOUBT, _KNOWN = 0.1, 0.1
"""Assumed relative error of a sum, and the share of variance below which an end is known."""


@dataclass(frozen=True, kw_only=True)
class SeparableModel:
    """Surrogate inputs of objectives and limits that are sums of terms over the same groups.

    Attributes:
        space: the parameter groups and the value combinations of each.
        inputs: for each objective or limit, by :func:`key_of_formula`, the inputs of the candidate
            surrogates: one if its metric is declared separable, else one for each modelled metric
            that may be its feature, and one without features.
        declared: the keys of the objectives and limits that are declared separable.
    """

    space: AdditiveSpace
    inputs: Mapping[str, tuple[SumInputs, ...]]
    declared: frozenset[str]

    @staticmethod
    def of(problem: Problem, split: MeasuredSplit, *, find: bool = False) -> SeparableModel | str:
        """Return the inputs of the additive surrogates, or the reason why there are none.

        The reason is empty if nothing is declared separable.

        Args:
            problem: the problem.
            split: the problem's objectives and limits, split into measured and modelled ones.
            find: whether objectives and limits without a declaration are candidates, too.
        """
        formulas = learnt_formulas(problem, split).values()
        declared = {
            key_of_formula(one): separable
            for one in formulas
            if (separable := _declared(problem, one)) is not None
        }
        if not declared and not find:
            return ""
        groups = [group for one in declared.values() for group in one.groups]
        try:
            space = build_additive_space(problem, split, groups)
            shared = {id(one): (_inputs(space, one),) for one in declared.values()}
            inputs: dict[str, tuple[SumInputs, ...]] = _undeclared(space, formulas) if find else {}
            inputs |= {key: shared[id(one)] for key, one in declared.items()}
        except NotSeparableError as reason:
            return str(reason) if declared else ""
        return SeparableModel(space=space, inputs=inputs, declared=frozenset(declared))

    @cached_property
    def ends(self) -> Batch:
        """Return the first designs to measure: all features at their least, and at their largest.

        These designs are usually the ends of the front. There are none if no term has a feature.
        """
        own = self._featured
        if own is None or not own.tables:
            return self.space.designs(np.zeros((0, len(self.space.terms)), dtype=np.int64))
        low = self.space.rows_of(self.space.base)[0]
        high = low.copy()
        for place, table in zip(own.places.tolist(), own.tables, strict=True):
            low[place], high[place] = int(np.argmin(table)), int(np.argmax(table))
        return self.space.designs(np.vstack([low, high]))

    @property
    def _featured(self) -> SumInputs | None:
        """Declared inputs with the most features, which decide the first designs."""
        declared = [self.inputs[key][0] for key in sorted(self.declared)]
        return max(declared, key=lambda one: len(one.tables), default=None)

    def open_ends(self, attempted: Batch) -> Batch:
        """Return those of the designs :attr:`ends` whose values are not known yet.

        A value counts as known if the measured designs reduce its variance to at most ``_KNOWN``
        times the prior variance, assuming independent sensitivities.

        Args:
            attempted: designs that were or are being measured.
        """
        own = self._featured
        if own is None:
            return self.ends
        largest = np.array([float(table.max()) or 1.0 for table in own.tables])

        def regressors(batch: Batch) -> Floats:
            features = own.features(self.space.rows_of(batch)) / largest
            return np.column_stack([np.ones(len(batch)), features])

        seen, wanted = regressors(attempted), regressors(self.ends)
        inner = np.eye(wanted.shape[1]) + seen.T @ seen / _DOUBT**2
        left = np.einsum("ij,ij->i", wanted, np.linalg.solve(inner, wanted.T).T)
        unknown = left > _KNOWN * (wanted**2).sum(axis=1)
        unknown |= len(attempted) < len(wanted)
        return self.ends.take(np.flatnonzero(unknown))


def key_of_formula(expression: Expression) -> str:
    """Return a key that identifies an objective's or limit's formula, whatever its text."""
    return repr(expression.node)


def learnt_formulas(problem: Problem, split: MeasuredSplit) -> dict[str, Expression]:
    """Return the formulas of measured objectives, then of measured limits, by the user's text."""
    objectives = [problem.objectives[place].expression for place in split.learnt]
    limits = {limit.text: limit.slack for limit in split.learnt_limits}
    return {one.text: one for one in objectives} | limits


def _inputs(space: AdditiveSpace, separable: Separable) -> SumInputs:
    """Return the inputs of the surrogate of a declared metric."""
    places, tables = features_of(space, separable)
    return SumInputs(
        space=space,
        places=np.array(places, dtype=np.int64),
        tables=tuple(tables),
        monotone=separable.monotone,
    )


def _undeclared(
    space: AdditiveSpace, formulas: Iterable[Expression]
) -> dict[str, tuple[SumInputs, ...]]:
    """Return the candidate inputs of formulas that depend on all measured parameters.

    The features of a candidate are the changes of a modelled metric of these parameters; the last
    candidate has no features, and learns the effect of each value.
    """
    problem, split = space.problem, space.split
    groups = tuple(term.names for term in space.terms)
    metrics = [
        name
        for name, source in problem.sources.items()
        if source.kind == "modelled"
        and len(source.reads) > 1
        and source.reads <= split.measured_parameters
    ]
    found = [_inputs(space, Separable(groups=groups, by=name, monotone=False)) for name in metrics]
    found = [one for one in found if any(table.any() for table in one.tables)]
    plain = _inputs(space, Separable(groups=groups, monotone=False))
    every = (*found[:_CANDIDATES], plain)
    return {
        key_of_formula(one): every
        for one in formulas
        if split.behind(one) == split.measured_parameters
    }


def _declared(problem: Problem, expression: Expression) -> Separable | None:
    """Return the declaration of the one metric that a formula reads, if it has one."""
    names = expression.names
    if len(names) != 1:
        return None
    return problem.sources[next(iter(names))].separable if names <= problem.sources.keys() else None
