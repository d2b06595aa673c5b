"""Values of the arguments of an included space file: those that the include sets, or defaults."""

from __future__ import annotations

from collections.abc import Mapping

from dse.core.expressions.syntax import Node, Number, Text, Truth
from dse.errors import SpecError, nearest
from dse.schema.models import Scalar
from dse.schema.space.file import Stated
from dse.schema.space.parameters.domains import amount
from dse.schema.yaml.error_collector import ErrorCollector
from dse.schema.yaml.source import shown
from dse.units import units


def bound(
    stated: Mapping[str, Stated[Scalar | None]],
    given: Mapping[str, Stated[Scalar]],
    *,
    named_at: str,
    mistakes: ErrorCollector,
) -> dict[str, Node]:
    """Return the value of each argument of an included file as a literal.

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
