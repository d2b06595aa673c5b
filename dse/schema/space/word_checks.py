"""Checks that texts compared in a formula are possible values, and that lookup keys exist."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from dse.core.expressions.syntax import Compare, Lookup, Member, Name, Node, Text, children
from dse.core.parameter import Choice, Parameter, Real
from dse.core.values import Value
from dse.errors import SpecError, nearest


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
