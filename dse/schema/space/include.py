"""Reading of one space file and its includes into the complete space."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Node, Number, Text, Truth, names_in
from dse.errors import DseError, SpecError, nearest
from dse.schema.models import NAME_HINT, Scalar, is_name
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.file import SECTIONS, Fragment, Fragments, IncludeSpec, Stated, TableSpec
from dse.schema.space.fix_narrow import (
    Settlement,
    check_renames,
    check_settlements,
    rename_by_prefix,
    settled_in,
)
from dse.schema.space.members import Members
from dse.schema.space.parameters.domains import amount
from dse.schema.space.scope import Scope
from dse.schema.space.tables.combination_tables import rule_of
from dse.schema.space.tables.data import table_of
from dse.schema.yaml.files import Files, resolve_path
from dse.schema.yaml.source import shown
from dse.schema.yaml.validation import ErrorCollector, model_of
from dse.units import units

MAX_DEPTH = 20
"""Maximum depth of nested includes."""

MAX_PARTS = 500
"""Maximum number of includes in a space; a file counts once per include."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncludeScope:
    """Context in which a file is included in the complete space.

    Args:
        full: maps a name in the file to its full name in the complete space.
        settled: the ``fix`` and ``narrow`` entries of including files, by the file's own names.
        above: the chain of including files, each with the location of its include.
        named_at: the location of the file's include; empty for the top-level file.
        note: a hint appended to name-clash errors.
    """

    full: Callable[[str], str] = str
    settled: Mapping[str, list[Settlement]] = field(default_factory=dict)
    above: tuple[tuple[Path, str], ...] = ()
    named_at: str = ""
    note: str = ""


class IncludedFile:
    """Reader that adds one space file to the complete space, after the files that it includes.

    Args:
        fragment: the file's entries.
        place: the context of the include.
        given: the argument values that the include sets.
        whole: the builder of the complete space.
        fragments: the cache of parsed files.
    """

    def __init__(
        self,
        fragment: Fragment,
        place: IncludeScope,
        given: Mapping[str, Stated[Scalar]],
        *,
        whole: SpaceBuilder,
        fragments: Fragments,
    ) -> None:
        self.fragment = fragment
        self.place = place
        self.whole = whole
        self.fragments = fragments
        self.mistakes = whole.mistakes
        arguments = bound(
            fragment.arguments, given, named_at=place.named_at, mistakes=self.mistakes
        )
        self.unbound = fragment.arguments.keys() - arguments.keys()
        places = {name: one.where for name, one in given.items()}
        self.scope = Scope(whole, place.full, arguments, self._need, places)
        self.members = Members(fragment, self.scope, place.settled, place.note)

    def read(self) -> list[Statements]:
        """Add the file's parameters and data to the space; return its constraints and tables.

        The constraints and tables of included files are returned, too. They are added to the space
        later, once every name of the complete space is declared.
        """
        self._mark_lost()
        self._check_names()
        self._read_data()
        inner = [rules for name in self.fragment.include for rules in self._read_include(name)]
        self.members.read(self.fragments.files)
        return [*inner, Statements(self.fragment, self.scope, self.fragments.files)]

    def _need(self, name: str) -> None:
        self.members.need(name)

    def _mark_lost(self) -> None:
        full = self.place.full
        self.whole.lost |= {full(name) for name in (*self.fragment.lost, *self.unbound)}
        self.whole.dropped |= {full(n): where for n, where in self.fragment.dropped.items()}
        if self.fragment.partial:
            self.whole.clouded.add(full(""))

    def _check_names(self) -> None:
        """Record an error for each invalid name and for each name that the file declares twice."""
        known: dict[str, str] = {}
        for section in SECTIONS:
            for name, stated in getattr(self.fragment, section).items():
                if not is_name(name) or (section in ("arguments", "include") and "." in name):
                    error = SpecError(f"{name[:60]!r} is no name", hint=NAME_HINT)
                    self.mistakes.add(error, stated.where)
                elif name in known:
                    hint = f"first at {known[name]}"
                    error = SpecError(f"{name!r} is declared twice", hint=hint)
                    self.mistakes.add(error, stated.where)
                known.setdefault(name, stated.where)

    def _read_data(self) -> None:
        for name, stated in self.fragment.data.items():
            full = self.place.full(name)
            if not self.whole.declare(full, stated.where, self.place.note):
                continue
            try:
                self.whole.data[full], why = table_of(stated, self.fragments.files)
                self.whole.repeats |= {full: why} if why else {}
            except DseError as error:
                self.whole.lost.add(full)
                self.mistakes.add(error, stated.where)

    def _read_include(self, name: str) -> list[Statements]:
        stated = self.fragment.include[name]
        fragment = None
        try:
            fragment = self._find_fragment(stated)
        except DseError as error:
            self.mistakes.add(error, stated.where)
        if fragment is None:
            self.whole.clouded.add(f"{self.place.full(name)}.")
            return []
        names = stated.value.rename
        own, settled = settled_in(name, stated, self.scope, self.place.settled)
        place = IncludeScope(
            full=lambda inner: self.place.full(f"{name}.{rename_by_prefix(inner, names)}"),
            settled=settled,
            above=(*self.place.above, (self.fragment.path, stated.where)),
            named_at=stated.where,
            note=f"names are changed at {stated.at('rename')}" if names else "",
        )
        given = {
            key: Stated(
                self._resolve_argument(value, key, fragment),
                stated.source,
                (*stated.path, "with", key),
            )
            for key, value in stated.value.given.items()
        }
        before = len(self.whole.declared)
        part = IncludedFile(fragment, place, given, whole=self.whole, fragments=self.fragments)
        rules = part.read()
        new = list(self.whole.declared)[before:]
        check_settlements(own, part.fragment, place.full, new, self.whole)
        check_renames(stated, place.full, new, self.whole)
        return rules

    def _resolve_argument(self, value: Scalar, name: str, fragment: Fragment) -> Scalar:
        """Return the value that an include sets for the argument ``name`` of the included file.

        If the value is the name of an argument of the including file, or a formula over its
        arguments, it is evaluated; otherwise it is returned unchanged.
        """
        default = fragment.arguments.get(name)
        usual = None if default is None else default.value
        of_words = isinstance(usual, str) and units.quantity(usual) is None
        if not isinstance(value, str) or of_words:
            return self.scope.word(value)
        try:
            names = {one.name for one in names_in(parse(value).node)}
            if len(names) == 0 or value in names or not names <= self.scope.arguments.keys():
                return self.scope.word(value)
            found = self.scope.amount(value)
        except DseError:
            return self.scope.word(value)
        return f"{found.value!r} {found.unit}" if found.unit else found.value

    def _find_fragment(self, stated: Stated[IncludeSpec]) -> Fragment | None:
        """Return the parsed file that an include names; ``None``, with errors recorded, if invalid.

        Raises:
            SpecError: the file includes itself, or includes are too deep or too many.
        """
        path = resolve_path(stated.value.file, stated.source.path)
        above = [*self.place.above, (self.fragment.path, stated.where)]
        circle = next((place for seen, place in above if seen == path), None)
        if circle is not None:
            hint = f"first at {circle}" if circle != stated.where else ""
            raise SpecError(f"{shown(path)} includes itself", hint=hint)
        if len(above) > MAX_DEPTH:
            raise SpecError(f"files are included more than {MAX_DEPTH} deep")
        self.whole.parts += 1
        if self.whole.parts > MAX_PARTS:
            raise SpecError(f"more than {MAX_PARTS} files are included")
        return self.fragments.at(path, stated.where)


@dataclass(frozen=True, slots=True)
class Statements:
    """Constraints and tables of one space file, with the resolver of its names."""

    fragment: Fragment
    scope: Scope
    files: Files

    def add(self) -> None:
        """Add each valid constraint and table to the space; record the errors of the others."""
        mistakes = self.scope.whole.mistakes
        for stated in self.fragment.constraints:
            try:
                self._add_rule(stated)
            except DseError as error:
                mistakes.add(error, stated.where)
        for stated in self.fragment.tables:
            try:
                self._add_table(stated)
            except DseError as error:
                mistakes.add(error, stated.where)

    def _add_rule(self, stated: Stated[Any]) -> None:
        if not isinstance(stated.value, str):
            shown = repr(stated.value)[:60]
            hint = "put the rule in quotes" if isinstance(stated.value, dict) else ""
            raise SpecError(f"a rule is a text, not {shown}", hint=hint)
        self.scope.whole.constrain([self.scope.formula(stated.value)], stated.where)

    def _add_table(self, stated: Stated[Any]) -> None:
        spec = model_of(TableSpec, stated.source.inner(stated.path))
        typed = Stated(spec, stated.source, stated.path)
        rule = rule_of(typed, self.scope, self.files, self.scope.whole.mistakes)
        if rule is not None:
            self.scope.whole.constrain([rule], stated.where)


def bound(
    stated: Mapping[str, Stated[Scalar | None]],
    given: Mapping[str, Stated[Scalar]],
    *,
    named_at: str,
    mistakes: ErrorCollector,
) -> dict[str, Node]:
    """Return the argument values of an included file, as literals.

    Errors are recorded, and the arguments concerned left out.

    Args:
        stated: the file's arguments with their defaults; one with default ``None`` is required.
        given: the values that the include sets.
        named_at: the location of the include; empty for the top-level file.
        mistakes: the collector of errors.
    """
    for name, one in given.items():
        if name not in stated:
            error = SpecError(f"there is no argument {name!r}", hint=nearest(name, stated))
            mistakes.add(error, one.where)
    found: dict[str, Node] = {}
    for name, default in stated.items():
        value = given[name].value if name in given else default.value
        if value is None:
            mistakes.add(_missing(name, default, named_at), named_at or default.where)
            continue
        try:
            found[name] = _literal(value)
            if default.value is not None and name in given:
                _check_alike(name, _literal(default.value), found[name], value)
        except SpecError as error:
            mistakes.add(error, given[name].where if name in given else default.where)
    return found


def _missing(name: str, default: Stated[Scalar | None], named_at: str) -> SpecError:
    if named_at:
        file = shown(default.source.path)
        return SpecError(f"{file} needs {name!r}", hint=f"give it: 'with: {{{name}: ...}}'")
    return SpecError(
        f"the argument {name!r} has no value here",
        hint="give it a default, or include the file with it: 'with: {" + name + ": ...}'",
    )


def _literal(value: Scalar) -> Node:
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, int | float):
        amount(value)
        return Number(value)
    found = units.quantity(value)
    if found is not None and _is_unit(found[1]):
        number, unit = found
        amount(value)
        return Number(int(number) if number == int(number) else number, unit)
    if "'" in value and '"' in value:
        raise SpecError("a text cannot contain both kinds of quotes")
    return Text(value)


def _is_unit(text: str) -> bool:
    try:
        units.unit(text)
    except SpecError:
        return False
    return True


def _check_alike(name: str, default: Node, given: Node, value: Scalar) -> None:
    """Raise SpecError unless an argument has the type and the dimension of its default."""
    fits = type(default) is type(given)
    if isinstance(default, Number) and isinstance(given, Number):
        fits = units.same_dimension(default.unit, given.unit)
    if not fits:
        raise SpecError(
            f"the argument {name!r} is {_kind(default)}, and {value!r} is {_kind(given)}",
            hint="give one of the default's kind",
        )


def _kind(node: Node) -> str:
    match node:
        case Number():
            return f"a quantity in {node.unit}" if node.unit else "a bare number"
        case Truth():
            return "true or false"
        case _:
            return "a word"
