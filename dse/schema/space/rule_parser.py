"""Checks of a space's constraints and activity conditions: names, lists, units and values.

A rule that divides by zero or overflows for every combination of parameter values is refused. A
rule that does so only for some combinations follows IEEE 754 there: ``x / 0`` is infinite; ``0 /
0``, ``x // 0`` and ``x % 0`` are NaN, which is neither equal to, less than nor greater than any
number, so ``x % y == 0`` is false where y is 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from dse.core.batch import Column
from dse.core.expressions import syntax
from dse.core.expressions.expression import Expression
from dse.core.expressions.syntax import Compare, Lookup, Member, Name, Node, Text, children
from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Floats, Value
from dse.errors import DseError, SpecError, nearest
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.rules.exactness import Exactness
from dse.schema.yaml.validation import HiddenError
from dse.units import dimensions, units

MAX_COMBINATIONS = 50_000
"""Maximum number of parameter combinations for which a formula is evaluated."""

_DIVISIONS = ("/", "//", "%")

_PARTIAL = ("log2", "sqrt")


class Rules:
    """Checker of a space's constraints and activity conditions.

    It also expands them: list members and table lookups are resolved to scalar parameters.
    """

    def __init__(self, whole: SpaceBuilder) -> None:
        self.whole = whole
        self.units = units_of(whole.parameters.values())
        self._exactness = Exactness(whole.parameters)
        self._ready: dict[int, Expression | None] = {}

    def check(self) -> None:
        """Check every rule and replace it by its expanded form; errors are recorded."""
        whole = self.whole
        for name, rule in list(whole.conditions.items()):
            ready = self._prepare(rule, whole.activated[name])
            if ready is not None:
                whole.conditions[name] = ready
                self._check_activity(name, ready)
        self._check_no_circle()
        whole.constraints = [
            (ready, where)
            for rule, where in whole.constraints
            if (ready := self._prepare(rule, where)) is not None
        ]

    def ready(self, rule: Expression) -> Expression:
        """Return a checked rule over scalar parameters, with literals in coherent units.

        List members and table lookups are expanded.

        Raises:
            HiddenError: the rule uses a name whose declaration has an error.
            SpecError: the rule is not valid.
        """
        hidden = [name.name for name in syntax.names_in(rule.node) if self._is_lost(name.name)]
        if hidden:
            raise HiddenError(hidden[0])
        written = self.whole.expand(rule)
        for name in sorted(written.names):
            if name not in self.whole.parameters:
                raise self.whole.unknown(name, rule.text)
        try:
            dimensions.unit_of(written, self.units)
        except SpecError as error:
            keyed = "looked up" in error.problem and self.whole.repeated(rule.text)
            hint = keyed or error.hint or self._wordy(written)
            raise SpecError(error.problem, where=error.where, hint=hint) from error
        self._check_truth(written.node, rule.text)
        check_words(written.node, self.whole.parameters, self.whole.before)
        check_keys(written.node, self.whole.parameters, self.whole.repeated)
        ready = written.resolve_units(units.factor)
        check_has_value(ready, self.whole.parameters)
        self._exactness.check(ready)
        return ready

    def _wordy(self, rule: Expression) -> str:
        """Return a hint if the rule uses a choice with string values as a number; else ``""``."""
        for name in sorted(rule.names):
            parameter = self.whole.parameters[name]
            values = parameter.values if isinstance(parameter, Choice) else ()
            words = [value for value in values if isinstance(value, str)]
            if words and all(units.quantity(word) is not None for word in words):
                listed = ", ".join(map(str, values))[:60]
                return f"{name} is a choice of words; for quantities: 'ordinal: [{listed}]'"
            if 0 < len(words) < len(values):
                return (
                    f"{name} has words such as {words[0]!r} among its numbers: quote all values "
                    "to make them words, or keep numbers only"
                )
            if words:
                shown = ", ".join(map(repr, words))[:60]
                return f"{name} is a word: {shown}; words are compared by '==', '!=' and 'in'"
        return ""

    def _prepare(self, rule: Expression, where: str) -> Expression | None:
        """Return the checked and expanded rule; ``None``, with error recorded, if invalid."""
        if id(rule) not in self._ready:
            self._ready[id(rule)] = None
            try:
                self._ready[id(rule)] = self.ready(rule)
            except DseError as error:
                self.whole.mistakes.add(error, where)
        return self._ready[id(rule)]

    def _is_lost(self, name: str) -> bool:
        known = self.whole
        head = name.rpartition(".")[0]
        there = name in known.parameters or name in known.listings
        return not there and head not in known.data and known.hidden(name)

    def _check_truth(self, node: syntax.Node, text: str) -> None:
        """Raise SpecError unless the node and each operand of and, or, not is boolean."""
        match node:
            case syntax.Name():
                parameter = self.whole.parameters[node.name]
                values: Iterable[Value] = (
                    parameter.values if isinstance(parameter, Choice) else (0,)
                )
                fine = all(isinstance(value, bool) for value in values)
            case syntax.Logic():
                for operand in node.operands:
                    self._check_truth(operand, text)
                return
            case syntax.Unary(operator="not"):
                self._check_truth(node.operand, text)
                return
            case _:
                fine = syntax.is_truth(node)
        if not fine:
            raise SpecError(
                f"{text!r} is no rule: it is neither true nor false",
                hint="compare it with something, such as '... <= 8'",
            )

    def _check_activity(self, name: str, rule: Expression) -> None:
        """Record an error for an activity condition that reads the parameter that it activates.

        Reading a real parameter is an error too, unless the activated parameter is real.
        """
        parameters, where = self.whole.parameters, self.whole.activated[name]
        if name in rule.names:
            error = SpecError(f"{name} cannot be the condition of itself")
            self.whole.mistakes.add(error, where)
        real = sorted(n for n in rule.names if isinstance(parameters.get(n), Real))
        if real and not isinstance(parameters.get(name), Real):
            error = SpecError(
                f"{name} cannot be active by the value of {real[0]}, a real parameter",
                hint=f"give {real[0]} steps: an ordinal such as 'range(0 .. 1, 0.1)'",
            )
            self.whole.mistakes.add(error, where)

    def _check_no_circle(self) -> None:
        """Record an error if parameters depend on each other's activity conditions in a cycle."""
        circle = _circle({n: rule.names - {n} for n, rule in self.whole.conditions.items()})
        if circle:
            first = circle[0]
            chain = " on ".join(circle[1:])
            error = SpecError(
                f"the condition of {first} depends on {first} itself, through others",
                hint=f"{first} depends on {chain}",
            )
            self.whole.mistakes.add(error, self.whole.activated[first])


def _circle(parents: Mapping[str, frozenset[str]]) -> list[str]:
    """Return the names along a cycle of the graph, with the first one repeated at the end.

    ``parents`` maps each name to the names that it depends on. The list is empty if there is no
    cycle.
    """
    done = set[str]()
    for start in parents:
        path: list[str] = []
        stack = [(start, iter(sorted(parents[start])))] if start not in done else []
        path += [start] if stack else []
        while stack:
            step = next(stack[-1][1], None)
            if step is None:
                stack.pop()
                done.add(path.pop())
            elif step in path:
                return [*path[path.index(step) :], step]
            elif step in parents and step not in done:
                path.append(step)
                stack.append((step, iter(sorted(parents[step]))))
    return []


def units_of(parameters: Iterable[Parameter]) -> dict[str, str]:
    """Return each parameter's unit by name; for a parameter with string values, ``TEXT``."""
    return {
        p.name: dimensions.TEXT
        if isinstance(p, Choice) and any(isinstance(v, str) for v in p.values)
        else p.unit
        for p in parameters
    }


def check_has_value(rule: Expression, parameters: Mapping[str, Parameter]) -> None:
    """Check that every formula in the rule is finite for some combination of parameter values.

    Raises:
        SpecError: for every combination, a formula divides by zero, overflows or has no value.
    """
    for node in _formulas(rule.node, outer=True):
        if isinstance(node, syntax.Binary) and node.operator in _DIVISIONS:
            divisor = _values(node.right, parameters)
            if divisor is not None and (divisor == 0).all():
                raise SpecError(f"{rule.text!r} divides by zero, whatever the parameters are")
        values = _values(node, parameters)
        if values is None or np.isfinite(values).any():
            continue
        kind = "has no value" if np.isnan(values).all() else "is too large for a number"
        raise SpecError(f"a part of {rule.text!r} {kind}, whatever the parameters are")


def _formulas(node: syntax.Node, *, outer: bool) -> Iterator[syntax.Node]:
    """Yield nodes that may not be finite: quotients, powers, roots, logs, entire formulas."""
    arithmetic = isinstance(
        node, syntax.Binary | syntax.Unary | syntax.Number | syntax.Call
    ) and not syntax.is_truth(node)
    risky = isinstance(node, syntax.Binary) and node.operator in (*_DIVISIONS, "**")
    if (
        risky
        or (arithmetic and outer)
        or (isinstance(node, syntax.Call) and node.function in _PARTIAL)
    ):
        yield node
    for child in syntax.children(node):
        yield from _formulas(child, outer=not arithmetic)


def _values(node: syntax.Node, parameters: Mapping[str, Parameter]) -> Floats | None:
    """Return the formula's values over all combinations of its parameters' values, shape (n,).

    A real parameter is sampled at three points. The result is ``None`` if there are too many
    combinations, or if no value is a number.
    """
    names = sorted({name.name for name in syntax.names_in(node)})
    domains = [_sample_values(parameters[name]) for name in names]
    size = math.prod(len(domain) for domain in domains)
    if size > MAX_COMBINATIONS:
        return None
    if not names:
        return _evaluate_present(node, {}, 1)
    places = np.unravel_index(np.arange(size), [len(domain) for domain in domains])
    columns = {
        name: Column.coded(domain, codes)
        for name, domain, codes in zip(names, domains, places, strict=True)
    }
    return _evaluate_present(node, columns, size)


def _evaluate_present(node: syntax.Node, columns: Mapping[str, Column], size: int) -> Floats | None:
    found = Expression("", node).values(columns, size)
    if found.values.dtype.kind not in "bif":
        return None
    known = found.values if found.absent is None else found.values[~found.absent]
    return known.astype(np.float64) if len(known) else None


def _sample_values(parameter: Parameter) -> tuple[Value, ...]:
    """Return all values of a discrete parameter; both bounds and the midpoint of a real one."""
    if isinstance(parameter, Real):
        return (parameter.low, (parameter.low + parameter.high) / 2, parameter.high)
    return parameter.values


def check_words(
    node: Node,
    parameters: Mapping[str, Parameter],
    before: Mapping[str, Sequence[Parameter]] | None = None,
) -> None:
    """Check that each text in a comparison is a value of the choice or lookup compared with it.

    Args:
        node: a formula in which list members and lookups are expanded.
        parameters: by name; other names are ignored.
        before: earlier definitions of fixed, narrowed or replaced parameters, by name; their
            values are accepted as well.

    Raises:
        SpecError: a choice or a lookup never has the text as its value.
    """
    if isinstance(node, Compare | Member):
        sides = children(node)
        pairs = [pair for side in sides for pair in _words(side, parameters, before or {})]
        for side in sides:
            for name, words in pairs:
                if isinstance(side, Text) and side.value not in words:
                    hint = nearest(side.value, [str(word) for word in words])
                    raise SpecError(f"{name} is never {side.value!r}", hint=hint)
    for child in children(node):
        check_words(child, parameters, before)


def _words(
    side: Node,
    parameters: Mapping[str, Parameter],
    before: Mapping[str, Sequence[Parameter]],
) -> Iterator[tuple[str, tuple[Value, ...]]]:
    """Yield the name and values of an operand that is a choice parameter or a table lookup."""
    if isinstance(side, Lookup):
        yield side.text, tuple(value for _, value in side.entries)
    if isinstance(side, Name):
        parameter = parameters.get(side.name)
        if isinstance(parameter, Choice):
            own = before.get(side.name, ())
            earlier = [value for p in own if isinstance(p, Choice) for value in p.values]
            yield side.name, tuple(dict.fromkeys((*parameter.values, *earlier)))


def check_keys(
    node: Node, parameters: Mapping[str, Parameter], repeated: Callable[[str], str] = lambda _: ""
) -> None:
    """Check that every table lookup has an entry for each value of its key parameter.

    Without an entry, the formula's value would silently be unknown for that value.

    Args:
        node: a formula in which list members and lookups are expanded.
        parameters: by name; other names are ignored.
        repeated: returns why a table in a text is not keyed by its first column, else empty.

    Raises:
        SpecError: a value of the key parameter has no entry, or the parameter is real.
    """
    for lookup in lookups(node):
        parameter = parameters.get(lookup.key.name) if isinstance(lookup.key, Name) else None
        if parameter is None:
            continue
        if isinstance(parameter, Real):
            raise SpecError(
                f"{lookup.text} is looked up by {parameter.name}, a real parameter",
                hint="give it steps: an ordinal such as 'range(0 .. 1, 0.1)'",
            )
        known = {key for key, _ in lookup.entries}
        missing = next((value for value in parameter.values if value not in known), None)
        if missing is not None:
            raise SpecError(
                f"{lookup.text} has no value where {parameter.name} is {missing!r}",
                hint=repeated(lookup.text) or f"add it to the data, or narrow {parameter.name}",
            )


def lookups(node: Node) -> Iterator[Lookup]:
    """Yield every table lookup in the expression tree."""
    if isinstance(node, Lookup):
        yield node
    for child in children(node):
        yield from lookups(child)
