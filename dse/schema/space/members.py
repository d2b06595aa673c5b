"""Builder of the parameters that one space file declares.

A parameter is built when it is first needed, since a domain may depend on another parameter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dse.core.compound_parameters import (
    TOLERANCE,
    Each,
    Partition,
    Permutation,
    Simplex,
    Structured,
    Subset,
)
from dse.core.compound_parameters import member as name_member
from dse.core.design import base
from dse.core.expressions.list_rules import Listing, listings
from dse.core.expressions.syntax import Name
from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Value
from dse.errors import DseError, SpecError, nearest
from dse.schema.models import NAME_HINT, Scalar, is_name
from dse.schema.space.compound_parameter_parser import structured_of
from dse.schema.space.file import STRUCTURED, Fragment, ParameterSpec, Stated
from dse.schema.space.fix_narrow import Settlement
from dse.schema.space.parameters.domains import parameter_of
from dse.schema.space.parameters.generators import extract_dividend
from dse.schema.space.scope import Scope
from dse.schema.space.tables.grids import grid_of
from dse.schema.space.tables.table_space import table_space
from dse.schema.yaml.files import Files, resolve_path

MAX_CHAIN = 12
"""Maximum length of a chain of dependent domains; each level is one level of recursion."""


class Members:
    """Builder that adds the parameters of one space file, with implied rules, to the space.

    Args:
        fragment: the file's entries.
        scope: resolver of the file's names.
        settled: the ``fix`` and ``narrow`` entries of including files, by this file's names.
        note: a hint appended to name-clash errors, such as where the include renames.
    """

    def __init__(
        self,
        fragment: Fragment,
        scope: Scope,
        settled: Mapping[str, list[Settlement]],
        note: str = "",
    ) -> None:
        self.fragment = fragment
        self.scope = scope
        self.whole = scope.whole
        self.settled = settled
        self.note = note
        self._begun: list[str] = []
        self._done: set[str] = set()

    def read(self, files: Files) -> None:
        """Add every parameter of the file to the space; errors are recorded without stopping."""
        table = self.fragment.table
        if table is not None:
            try:
                self._read_table(table, files)
            except DseError as error:
                self.whole.mistakes.add(error, table.where)
                self.whole.clouded.add(self.scope.full(""))
        for name in self.fragment.parameters:
            self.need(name)
        for name, stated in self.fragment.parameters.items():
            if stated.value.when is not None:
                self._activate(name, stated.value.when, stated.at("when"))

    def need(self, name: str) -> None:
        """Build the parameter of this name, if the file declares it and it is not built yet.

        Raises:
            SpecError: the parameter's domain depends on itself, or on a chain of more than
                MAX_CHAIN domains.
        """
        stated = self.fragment.parameters.get(name)
        if stated is None or name in self._done:
            return
        if name in self._begun:
            chain = " needs ".join([*self._begun[self._begun.index(name) :], name])
            raise SpecError(f"the domain of {name} depends on itself: {chain}", where=stated.where)
        if len(self._begun) >= MAX_CHAIN:
            raise SpecError(
                f"more than {MAX_CHAIN} domains depend on one another",
                where=stated.where,
                hint="declare each before those that need it",
            )
        self._begun.append(name)
        try:
            if self.whole.declare(self.scope.full(name), stated.where, self.note):
                self._build(name, stated)
        except DseError as error:
            self.whole.lost.add(self.scope.full(name))
            self.whole.mistakes.add(error, stated.where)
        finally:
            self._begun.remove(name)
            self._done.add(name)

    def _build(self, name: str, stated: Stated[ParameterSpec]) -> None:
        spec, full = stated.value, self.scope.full(name)
        if spec.each is None and not any(kind in STRUCTURED for kind in spec.kinds):
            parameter = self._apply_settlements(name, parameter_of(full, spec, self.scope))
            self.whole.add(parameter)
            self._keep_divisors(spec, [name], stated.where)
            return
        domain = None
        if spec.each is not None:
            together = [s for s in self.settled.get(name, []) if not isinstance(s.value, list)]
            domain = self._apply_settlements(name, parameter_of(full, spec, self.scope), together)
        one = structured_of(full, spec, self.scope, domain=domain, when=None)
        own = {member.name: name + member.name.removeprefix(full) for member in one.members}
        self._add_list(name, one, own, stated.where)
        listed = [own[node.name] for node in one.listing.nodes if isinstance(node, Name)]
        self._keep_divisors(spec, listed, stated.where)

    def _add_list(self, name: str, one: Structured, own: Mapping[str, str], where: str) -> None:
        """Add a compound parameter: its members, rules and conditions.

        Args:
            name: the parameter's name in the file.
            one: the compound parameter.
            own: maps each member's full name to its name in the file.
            where: the location of the declaration.
        """
        together = self._together(name, one)
        for member in one.members:
            if "[" not in member.name and not self.whole.declare(member.name, where, self.note):
                continue
            ones = [*self.settled.get(own[member.name], []), *together.get(member.name, [])]
            settled = self._apply_settlements(own[member.name], member, ones)
            self.whole.before[member.name] += self.whole.before.get(self.scope.full(name), ())
            alone = isinstance(member, Real) and member.name not in together
            if isinstance(one, Simplex) and alone and settled != member:
                raise SpecError(
                    f"{member.name} is one of the shares of {name}, which add up to one",
                    where=ones[0].where,
                    hint="fix all of them, give the simplex a 'step', or a constraint",
                )
            self.whole.add(settled)
        self.whole.add_list(one)
        self.whole.constrain(one.rules, where)
        for member_name, rule in one.conditions.items():
            self.whole.activate(member_name, rule, where)
        for settlement in self.settled.get(name, []):
            if not settlement.used:
                settlement.used = True
                raise SpecError(
                    f"{name} is a compound of several parameters",
                    where=settlement.where,
                    hint=f"fix or narrow its members, such as {next(iter(own.values()), '')}, "
                    f"or fix all with a list: 'fix: {{{name}: [...]}}'",
                )

    def _together(self, name: str, one: Structured) -> dict[str, list[Settlement]]:
        """Return the fixed values of members of compound parameters that a single list fixes.

        The result is keyed by the member's full name; a member may be fixed several times.
        """
        found: dict[str, list[Settlement]] = {}
        for settlement in self.settled.get(name, []):
            if not isinstance(settlement.value, list):
                continue
            settlement.used = True
            try:
                values = values_of(one, settlement.value)
            except SpecError as error:
                raise error.at(settlement.where) from error
            for member, value in values.items():
                found.setdefault(member, []).append(replace(settlement, value=value))
        return found

    def _apply_settlements(
        self, own: str, parameter: Parameter, ones: Sequence[Settlement] | None = None
    ) -> Parameter:
        """Return the parameter after applying the ``fix`` and ``narrow`` entries for its name.

        The domain before these restrictions, and definitions that an extending file replaced, are
        recorded in ``before`` of the space builder.
        """
        before = [
            self._parse_previous(parameter.name, spec)
            for spec in self.fragment.replaced.get(own, ())
        ]
        known = [one for one in before if one is not None]
        self.whole.before[parameter.name] = (parameter, *known)
        for settlement in self.settled.get(own, []) if ones is None else ones:
            try:
                parameter = settlement.applied(parameter)
            except SpecError as error:
                raise error.at(error.where or settlement.where) from error
        return parameter

    def _parse_previous(self, name: str, spec: ParameterSpec) -> Parameter | None:
        """Return the parameter of a replaced definition; ``None`` if compound or invalid."""
        if any(kind in STRUCTURED for kind in spec.kinds):
            return None
        try:
            return parameter_of(name, spec, self.scope)
        except SpecError:
            return None

    def _keep_divisors(self, spec: ParameterSpec, names: list[str], where: str) -> None:
        """Add the constraint ``n % x == 0`` for a parameter x with ``divisors(n)`` as its domain.

        It is needed where n depends on parameters.
        """
        text = extract_dividend(spec.ordinal) if isinstance(spec.ordinal, str) else None
        if text is None or not self.scope.expand(text).names:
            return
        dividend = text if text.replace(".", "_").isidentifier() else f"({text})"
        rules = [self.scope.formula(f"{dividend} % {name} == 0") for name in names]
        self.whole.constrain(rules, where)

    def _activate(self, name: str, text: str, where: str) -> None:
        full = self.scope.full(name)
        try:
            rule = self.scope.formula(text)
        except SpecError as error:
            self.whole.mistakes.add(error, where)
            return
        if full in self.whole.lists:
            one = replace(self.whole.lists[full], when=rule)
            self.whole.add_list(one)
            for member_name, condition in one.conditions.items():
                self.whole.activate(member_name, condition, where)
        elif full in self.whole.parameters:
            self.whole.activate(full, rule, where)

    def _read_table(self, table: Stated[str], files: Files) -> None:
        if self.fragment.parameters:
            first = next(iter(self.fragment.parameters.values()))
            raise SpecError(
                "a space is a table or has parameters, not both",
                hint=f"the parameters begin at {first.where}",
            )
        grid = grid_of(resolve_path(table.value, table.source.path), files, named_at=table.where)
        found = table_space(grid, self.scope.full)
        for own, parameter in found.parameters.items():
            if base(own) != own and base(own) in found.parameters:
                problem = f"the column {own!r} is a member of {base(own)!r}, which is a column too"
                raise SpecError(problem, where=grid.where)
            if not is_name(base(own)):
                raise SpecError(f"the column {own!r} is no name", where=grid.where, hint=NAME_HINT)
            if self.whole.declare(parameter.name, grid.where, self.note):
                self.whole.add(self._apply_settlements(own, parameter))
        self.whole.listings |= _collect_lists({p.name: p for p in found.parameters.values()})
        self.whole.constrain([found.rule], grid.where)
        for name, rule in found.conditions.items():
            self.whole.activate(name, rule, grid.where)


def _collect_lists(parameters: Mapping[str, Parameter]) -> dict[str, Listing]:
    """Return the lists formed by parameters with indexed names such as ``bits[0]``.

    A list of boolean members with text keys is marked as a subset.
    """
    return {
        name: replace(one, flags=_are_truths(one, parameters))
        for name, one in listings(parameters).items()
    }


def _are_truths(one: Listing, parameters: Mapping[str, Parameter]) -> bool:
    members = [parameters[node.name] for node in one.nodes if isinstance(node, Name)]
    truths = all(
        isinstance(value, bool)
        for member in members
        for value in (member.values if isinstance(member, Choice) else (0,))
    )
    return truths and all(isinstance(key, str) for key in one.keys)


def values_of(one: Structured, values: Sequence[Scalar]) -> dict[str, Scalar]:
    """Convert a list of values for a compound parameter to a value per member, by full name.

    Args:
        one: the compound parameter.
        values: the chosen items of a subset; otherwise one value per member, in order.

    Raises:
        SpecError: the number of values is wrong, one is not an item or is repeated, shares do not
            add up to one, or the parameter is a partition.
    """
    match one:
        case Subset():
            return _flag_items(one, values)
        case Partition():
            raise SpecError(
                f"{one.name} is several cuts",
                hint=f"fix its members, such as {one.name}[0]",
            )
        case Permutation():
            _check_items(one.name, one.items, values)
        case Simplex():
            _check_shares(values)
        case Each():
            pass
    if len(values) != len(one.members):
        raise SpecError(f"{one.name} has {len(one.members)} values, and this gives {len(values)}")
    return {own.name: value for own, value in zip(one.members, values, strict=True)}


def _flag_items(one: Subset, values: Sequence[Scalar]) -> dict[str, Scalar]:
    _check_items(one.name, one.items, values)
    return {name_member(one.name, item): item in values for item in one.items}


def _check_shares(values: Sequence[Scalar]) -> None:
    known = [value for value in values if not isinstance(value, str)]
    if len(known) == len(values) and abs(sum(known) - 1) > TOLERANCE:
        raise SpecError(f"the shares add up to {sum(known):g}, not to one")


def _check_items(name: str, items: Sequence[Value], values: Sequence[Scalar]) -> None:
    for place, value in enumerate(values):
        if value not in items:
            hint = nearest(str(value), map(str, items))
            raise SpecError(f"{name} has no item {value!r}", hint=hint)
        if value in values[:place]:
            raise SpecError(f"the item {value!r} appears twice")
