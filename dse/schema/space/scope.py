"""Resolution of one file's names, formulas and quantities in the complete space."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from dse.core.batch import Column
from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.parameter import Choice, Real
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.schema.models import Quantity, Scalar
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.parameters.domains import Amount, amount, whole_number
from dse.schema.space.parameters.generators import generate_numbers
from dse.schema.yaml.validation import HiddenError
from dse.units import dimensions, units

MAX_COMBINATIONS = 1_000_000
"""Maximum number of parameter combinations over which a generator's formula is evaluated."""

MAX_ITEMS = 5_000
"""Maximum number of items of a compound parameter."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Resolver of the names, formulas and quantities in one space file.

    Args:
        whole: the complete space, as far as it is built.
        full: maps a name in the file to its full name in the complete space.
        arguments: the literal value of each argument of the file.
        needed: builds the parameter of this name early, if the file declares it.
        given: the location where an including file sets an argument, by argument name.
    """

    whole: SpaceBuilder
    full: Callable[[str], str]
    arguments: Mapping[str, syntax.Node]
    needed: Callable[[str], None]
    given: Mapping[str, str] = field(default_factory=dict)

    def formula(self, text: str) -> Expression:
        """Parse a formula; replace names by full names, and arguments by their values.

        Raises:
            SpecError: the text is not a valid expression.
        """
        parsed = parse(text)
        edits = dict(self._edits(parsed.node))
        if not edits:
            return parsed
        replaced = text
        for (column, length), words in sorted(edits.items(), reverse=True):
            replaced = replaced[:column] + words + replaced[column + length :]
        return parsed if replaced == text else parse(replaced)

    def expand(self, text: str) -> Expression:
        """Parse a formula and expand list members and lookups to scalar parameters.

        Parameters that the formula uses are built first.

        Raises:
            SpecError: the text is not a valid expression, misuses a list or data, or has an
                unknown name.
        """
        for name in syntax.names_in(parse(text).node):
            self.needed(name.name)
        rule = self.whole.expand(self.formula(text))
        for full in rule.names:
            if full not in self.whole.parameters:
                if self.whole.hidden(full):
                    raise HiddenError(full)
                raise self.whole.unknown(full, rule.text)
        return rule

    def amount(self, text: Quantity, unit: str = "") -> Amount:
        """Evaluate a quantity such as ``64 KiB``, or a formula over arguments and data tables.

        Args:
            text: the literal or formula.
            unit: the required dimension, and the unit of a number without one.

        Raises:
            SpecError: the text is not a number, depends on parameters, or has a unit that does not
                fit.
        """
        if not isinstance(text, str) or not self._is_formula(text):
            return amount(text, unit)
        rule = self.expand(text)
        if rule.names:
            name = min(rule.names)
            raise SpecError(f"{text!r} depends on {name}, but a domain must be constant")
        found = dimensions.unit_of(rule, {})
        if found == dimensions.TEXT:
            word = self.arguments.get(text)
            problem = (
                f"{text!r} is {word.value!r}"
                if isinstance(word, syntax.Text)
                else f"{text!r} is a word"
            )
            raise SpecError(f"{problem}, not a number", where=self.given.get(text, ""))
        if unit and not units.same_dimension(found, unit):
            raise SpecError(f"{text!r} is no quantity in {unit}")
        value = rule.resolve_units(units.factor).values({}, 1)
        if value.absent is not None and value.absent[0]:
            raise SpecError(f"{text!r} has no value")
        return amount(value.values[0].item() / units.factor(unit), unit or units.coherent(found))

    def word(self, value: Scalar) -> Scalar:
        """Return the value of the argument named ``value``; any other value stays unchanged."""
        node = self.arguments.get(value) if isinstance(value, str) else None
        if isinstance(node, syntax.Number) and node.unit:
            return f"{node.value} {node.unit}"
        return value if node is None else node.value  # type: ignore[union-attr]

    def generated(self, text: str, unit: str) -> tuple[Sequence[int | float], str]:
        """Return the numbers that a generator such as ``pow2(1 .. 64)`` yields, and their unit.

        Raises:
            SpecError: the text is not a valid generator, or generates too many values.
        """
        return generate_numbers(text, unit, self, self.values)

    def count(self, value: int | str, what: str) -> int:
        """Evaluate an integer literal, or a formula over arguments and data tables, as an integer.

        Args:
            value: the literal or formula.
            what: the name of the quantity, for error messages.

        Raises:
            SpecError: the value is not an integer from 0 to :data:`MAX_ITEMS`.
        """
        found = self.amount(value)
        whole = whole_number(found.value)
        if whole is None or found.unit:
            raise SpecError(f"{what} is a whole number, not {value!r}")
        if not 0 <= whole <= MAX_ITEMS:
            raise SpecError(f"{what} is from 0 to {MAX_ITEMS}, not {whole}")
        return whole

    def keys(self, value: str) -> tuple[Value, ...] | None:
        """Return the keys of the list or data table of this name; ``None`` if there is none."""
        self.needed(value)
        full = self.full(value)
        if full in self.whole.data:
            return self.whole.data[full].keys
        listing = self.whole.listings.get(full)
        return None if listing is None else listing.keys

    def counting(self, value: int | str) -> str | None:
        """Return the full name of an integer parameter, to serve as the size of a list or subset.

        The result is ``None`` if there is no parameter of this name.

        Raises:
            SpecError: the parameter has values that are not integers.
        """
        if not isinstance(value, str):
            return None
        self.needed(value)
        full = self.full(value)
        parameter = self.whole.parameters.get(full)
        if parameter is None:
            return None
        if isinstance(parameter, Real | Choice) or any(v != int(v) for v in parameter.values):
            raise SpecError(f"{value} is no whole-number parameter")
        return full

    def values(self, text: str) -> tuple[Sequence[int | float], str]:
        """Return the distinct values that a formula can take, ascending, and their coherent unit.

        The formula is evaluated for all combinations of its parameters' values.

        Raises:
            SpecError: the formula uses a real or choice parameter, or has more than
                :data:`MAX_COMBINATIONS` combinations.
        """
        rule = self.expand(text)
        parameters = {name: self.whole.parameters[name] for name in sorted(rule.names)}
        for name, parameter in parameters.items():
            if isinstance(parameter, Real | Choice):
                known = [
                    n for n, p in self.whole.parameters.items() if not isinstance(p, Real | Choice)
                ]
                raise SpecError(f"{name!r} has no list of numbers", hint=nearest(name, known))
        domains = [p.values for p in parameters.values() if not isinstance(p, Real)]
        combinations = 1
        for domain in domains:
            combinations *= len(domain)
        if combinations > MAX_COMBINATIONS:
            raise SpecError(f"{text!r} has more than {MAX_COMBINATIONS:,} combinations")
        unit = dimensions.unit_of(rule, {name: p.unit for name, p in parameters.items()})
        if unit == dimensions.TEXT:
            raise SpecError(f"{text!r} is a word, not a number")
        grid = np.meshgrid(*(np.array(domain) for domain in domains), indexing="ij")
        columns = {n: Column(axis.ravel()) for n, axis in zip(parameters, grid, strict=True)}
        found = rule.resolve_units(units.factor).values(columns, combinations)
        kept = found.values if found.absent is None else found.values[~found.absent]
        return np.unique(kept).tolist(), units.coherent(unit)

    def _is_formula(self, text: str) -> bool:
        """Return whether the text is a formula with a declared name, not a plain quantity."""
        if text in self.arguments:
            return True
        try:
            if units.quantity(text) is not None:
                amount(text)
                return False
        except SpecError:
            pass
        try:
            names = [name.name for name in syntax.names_in(parse(text).node)]
        except SpecError:
            return False
        heads = {head for name in names for head in _heads(name)}
        return any(head in self.arguments or self._is_declared_name(head) for head in heads)

    def _is_declared_name(self, name: str) -> bool:
        """Return whether the name is declared, even if its declaration has an error."""
        self.needed(name)
        full = self.full(name)
        known = self.whole
        return full in known.declared or full in known.parameters or full in known.lost

    def _edits(self, node: syntax.Node) -> Iterator[tuple[tuple[int, int], str]]:
        """Yield the edits that replace names by full names: ((offset, length), new text)."""
        if isinstance(node, syntax.Name):
            argument = self.arguments.get(node.name)
            words = self.full(node.name) if argument is None else format_literal(argument)
            yield (node.column, len(node.name)), words
            return
        if isinstance(node, syntax.Index) and self._is_item(node):
            yield from self._edits(node.item)
            return
        for child in syntax.children(node):
            yield from self._edits(child)

    def _is_item(self, node: syntax.Index) -> bool:
        """Return whether the index in ``kept[conv1]`` is an item of the list, not a parameter."""
        if not isinstance(node.item, syntax.Name) or not isinstance(node.key, syntax.Name):
            return False
        listing = self.whole.listings.get(self.full(node.item.name))
        return listing is not None and node.key.name in listing.keys


def format_literal(node: syntax.Node) -> str:
    """Return a literal node as text in the expression language."""
    match node:
        case syntax.Truth():
            return "true" if node.value else "false"
        case syntax.Text():
            return f'"{node.value}"' if "'" in node.value else f"'{node.value}'"
        case syntax.Number(value=value, unit=unit):
            words = f"{value!r} {unit}".rstrip()
            return f"({words})" if unit or value < 0 else words
        case _:
            raise AssertionError(node)


def _heads(name: str) -> list[str]:
    words = name.split(".")
    return [".".join(words[:count]) for count in range(1, len(words) + 1)]
