"""Design space: parameters, the conditions under which they are active, and constraints.

Each group of coupled parameters is compiled on its own; the legal set is their product.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.legal_set.legal_set import Legal
from dse.core.legal_set.size_estimate import Estimate
from dse.core.legal_set.solution import solve_component
from dse.core.parameter import Finite, Parameter, Real, describe
from dse.core.values import Floats, Ints, Mask, Value
from dse.errors import DesignError, nearest


@dataclass(frozen=True, kw_only=True)
class DesignSpace:
    """Constrained space of designs with conditional parameters.

    ``conditions`` maps a parameter's name to the condition under which it is active. ``places``
    maps a parameter's name or a rule's text to the file and line where it is stated. ``lists`` and
    ``data`` hold the structured parameters and the data tables by name.
    """

    parameters: tuple[Parameter, ...]
    conditions: Mapping[str, Expression] = field(default_factory=dict)
    constraints: tuple[Expression, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict, compare=False)
    lists: Mapping[str, Any] = field(default_factory=dict, compare=False)
    data: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @cached_property
    def by_name(self) -> Mapping[str, Parameter]:
        """Parameters of the space, by name."""
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def legal(self) -> Legal:
        """Set of legal designs, compiled at the first access."""
        simplexes = [s.simplex for s in self.lists.values() if getattr(s, "simplex", None)]
        return compile_legal(self.parameters, self.conditions, self.constraints, simplexes)

    def check(self, design: Mapping[str, Value]) -> None:
        """Raise DesignError unless the design is legal.

        Raises:
            DesignError: the design violates a domain, condition or rule; the error names the first.
        """
        unknown = next((name for name in design if name not in self.by_name), None)
        if unknown is not None:
            raise DesignError(
                f"there is no parameter {unknown!r}", hint=nearest(unknown, self.by_name)
            )
        for name, value in design.items():
            if value not in self.by_name[name]:
                raise DesignError(
                    f"{name} cannot be {value!r}",
                    where=self.places.get(name, ""),
                    hint=f"legal: {describe(self.by_name[name])}",
                )
        columns = {p.name: Column.of([design.get(p.name)]) for p in self.parameters}
        row = Batch(columns, 1)
        self._check_activity(design, row)
        for rule in self.constraints:
            if not rule.holds(row.columns, 1, unknown=True)[0]:
                used = {name: design.get(name, "absent") for name in sorted(rule.names)}
                raise DesignError(
                    f"the rule {rule.text!r} does not hold",
                    where=self.places.get(rule.text, ""),
                    hint=", ".join(f"{name} = {value}" for name, value in used.items()),
                )

    def are_legal(self, batch: Batch) -> Mask:
        """Return which of n designs satisfy all domains, conditions and rules, (n,).

        Args:
            batch: designs as columns, made by :meth:`batch`.
        """
        size, columns = len(batch), batch.columns
        legal: Mask = np.ones(size, dtype=bool)
        for parameter in self.parameters:
            name, absent = parameter.name, batch.absent(parameter.name)
            rule = self.conditions.get(name)
            legal &= absent != (True if rule is None else rule.holds(columns, size, unknown=False))
            if isinstance(parameter, Real):
                within = (batch[name] >= parameter.low) & (batch[name] <= parameter.high)
                legal &= absent | within
        for rule in self.constraints:
            legal &= rule.holds(columns, size, unknown=True)
        return legal

    def __contains__(self, design: Mapping[str, Value]) -> bool:
        try:
            self.check(design)
        except DesignError:
            return False
        return True

    def knows(self, design: Mapping[str, Value]) -> bool:
        """Return whether every value is in its parameter's domain; rules are not checked."""
        return all(name in self.by_name and v in self.by_name[name] for name, v in design.items())

    def fixed(self, values: Mapping[str, Value]) -> DesignSpace:
        """Return the subspace in which these parameters are active and have the given values."""
        rules: list[Expression] = []
        parameters: list[Parameter] = []
        for parameter in self.parameters:
            value = values.get(parameter.name)
            if isinstance(parameter, Real) and isinstance(value, int | float):
                parameters.append(replace(parameter, low=float(value), high=float(value)))
            else:
                parameters.append(parameter)
        for name, value in values.items():
            same = syntax.Compare(("==",), (syntax.Name(name), _literal(value)))
            here = syntax.Absent(syntax.Name(name), negated=True)
            known = (
                here if isinstance(self.by_name[name], Real) else syntax.Logic("and", (here, same))
            )
            rules.append(Expression(f"{name} == {value}", known))
        return replace(self, parameters=tuple(parameters), constraints=(*self.constraints, *rules))

    def count(self) -> int | None:
        """Return the number of legal designs; ``None`` if they cannot be counted.

        The designs of a space with a real parameter, or with a group of coupled parameters that is
        too large, cannot be counted.
        """
        return self.legal.count

    def estimate(self) -> Estimate | None:
        """Estimate the number of legal designs, with an interval; ``None`` with real parameters."""
        return self.legal.estimate()

    def enumerate(self, size: int = 65_536) -> Iterator[Batch]:
        """Yield all legal designs in a fixed order, in batches of at most ``size`` designs.

        Raises:
            DesignError: the designs cannot be counted.
        """
        total = self.count()
        if total is None:
            raise DesignError(
                "the space cannot be enumerated", hint="it has a real parameter, or is too large"
            )
        for start in range(0, total, size):
            yield self.legal.at_indices(np.arange(start, min(start + size, total)))

    def sample(self, count: int, rng: np.random.Generator) -> Batch:
        """Draw ``count`` legal designs uniformly and independently.

        Raises:
            DesignError: no legal design was found.
        """
        return self.legal.sample(count, rng)

    def at(
        self,
        points: Floats,  # (n, coordinates), each in [0, 1)
    ) -> Batch:
        """Return legal designs at points of the unit cube; uniform points give uniform designs.

        Points whose design violates a rule over real parameters, or a rule too large to be solved
        exactly, are skipped.
        """
        return self.legal.at_points(points)

    @property
    def coordinates(self) -> int:
        """Dimension of the unit cube that :meth:`at` maps to designs."""
        return self.legal.coordinates

    def neighbours(self, design: Design) -> Batch:
        """Return the legal designs one small change away; coupled parameters change together."""
        return self.legal.neighbours(self.batch([design]))

    def batch(self, designs: Sequence[Mapping[str, Value]]) -> Batch:
        """Return the designs as columns, one for every parameter of the space.

        Raises:
            DesignError: a value is not in its parameter's domain.
        """
        return self.legal.batch(designs)

    def indices(self, batch: Batch) -> Ints:
        """Return each design's index in :meth:`enumerate`, (n,); -1 for an illegal design."""
        return self.legal.indices(batch)

    @property
    def has_real(self) -> bool:
        """Whether any parameter is real."""
        return any(isinstance(parameter, Real) for parameter in self.parameters)

    def _check_activity(self, design: Mapping[str, Value], row: Batch) -> None:
        for parameter in self.parameters:
            name = parameter.name
            rule = self.conditions.get(name)
            active = rule is None or bool(rule.holds(row.columns, 1, unknown=False)[0])
            if active and name not in design:
                raise DesignError(
                    f"{name} is missing",
                    where=self.places.get(name, ""),
                    hint=f"legal: {describe(parameter)}",
                )
            if not active and name in design:
                raise DesignError(
                    f"{name} is set, but it exists only when {rule.text if rule else ''}",
                    where=self.places.get(name, ""),
                    hint="leave it out",
                )


def _literal(value: Value) -> syntax.Node:
    if isinstance(value, bool):
        return syntax.Truth(value)
    return syntax.Text(value) if isinstance(value, str) else syntax.Number(value)


Space = DesignSpace
"""Name that plug-ins import."""


def compile_legal(
    parameters: Sequence[Parameter],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
    simplexes: Sequence[frozenset[str]] = (),
) -> Legal:
    """Return the set of legal designs of these parameters and rules, ready for sampling.

    Args:
        parameters: the parameters of the space.
        conditions: activity condition of each parameter that has one.
        constraints: the rules.
        simplexes: sets of real parameters, by name, whose values sum to 1.

    Raises:
        DesignError: the condition of a finite parameter reads a real one.
    """
    finite = [parameter for parameter in parameters if not isinstance(parameter, Real)]
    reals = tuple(parameter for parameter in parameters if isinstance(parameter, Real))
    real_names = {real.name for real in reals}
    plain = [rule for rule in constraints if not rule.names & real_names]
    mixed = tuple(rule for rule in constraints if rule.names & real_names)
    on_reals = [name for name, rule in conditions.items() if rule.names & real_names]
    if set(on_reals) - real_names:
        raise DesignError(
            f"{min(set(on_reals) - real_names)} cannot be active by the value of a real parameter",
            hint="give the real parameter a step, so that it has finitely many values",
        )
    inner = {name: rule for name, rule in conditions.items() if name not in real_names}
    components = tuple(
        solve_component(
            group,
            {p.name: inner[p.name] for p in group if p.name in inner},
            [rule for rule in plain if rule.names & {p.name for p in group}],
        )
        for group in _groups(finite, inner, plain)
    )
    constant = tuple(rule for rule in plain if not rule.names)
    if components and not all(rule.holds({}, 1, unknown=True)[0] for rule in constant):
        first = components[0]
        emptied = solve_component(first.parameters, {}, (*first.constraints, *constant))
        components = (emptied, *components[1:])
    elif not components:
        mixed = (*mixed, *constant)
    return Legal(
        components=components,
        reals=reals,
        conditions=conditions,
        mixed=mixed,
        simplexes=tuple(
            tuple(place for place, real in enumerate(reals) if real.name in names)
            for names in simplexes
        ),
    )


def _groups(
    parameters: Sequence[Finite],
    conditions: Mapping[str, Expression],
    constraints: Sequence[Expression],
) -> list[list[Finite]]:
    """Return the parameters in groups that rules couple, directly or through other parameters."""
    root = {parameter.name: parameter.name for parameter in parameters}

    def find(name: str) -> str:
        while root[name] != name:
            root[name] = root[root[name]]
            name = root[name]
        return name

    ties = [rule.names for rule in constraints]
    ties += [rule.names | {name} for name, rule in conditions.items()]
    for tie in ties:
        first, *others = sorted(tie & root.keys()) or [""]
        for other in others:
            root[find(other)] = find(first)
    groups: dict[str, list[Finite]] = {}
    for parameter in parameters:
        groups.setdefault(find(parameter.name), []).append(parameter)
    return list(groups.values())
