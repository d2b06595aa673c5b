"""Parsing of compound parameters: list (``each``), permutation, subset, partition, simplex."""

from __future__ import annotations

from dataclasses import dataclass

from dse.core.compound_parameters import Each, Partition, Permutation, Simplex, Structured, Subset
from dse.core.expressions.expression import Expression
from dse.core.parameter import Parameter
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.schema.models import Scalar, is_name
from dse.schema.space.file import ParameterSpec
from dse.schema.space.parameters.domains import uniform, whole_number
from dse.schema.space.scope import MAX_ITEMS, Scope
from dse.schema.space.tables.cells import is_number
from dse.schema.yaml.validation import HiddenError

MAX_STEPS = 10_000
"""Maximum number of steps into which the shares of a simplex are divided."""


def structured_of(
    name: str,
    spec: ParameterSpec,
    scope: Scope,
    *,
    domain: Parameter | None,
    when: Expression | None,
) -> Structured:
    """Build the compound parameter that a space file declares.

    Args:
        name: the full name of the parameter.
        spec: the validated YAML of its declaration.
        scope: resolver of the file's names.
        domain: the domain of each item of an ``each:`` list; else ``None``.
        when: the condition under which all members of the parameter are active.

    Raises:
        SpecError: the parameter has no items, too many items, or an impossible count or step.
    """
    if domain is not None:
        assert spec.each is not None
        length = _length(spec.each, scope, "'each'")
        return Each(name=name, domain=domain, length=length, when=when)
    if spec.permutation is not None:
        return Permutation(name=name, items=_items(spec.permutation, scope), when=when)
    if spec.subset is not None:
        items = _items(spec.subset, scope)
        count = _count([0, len(items)] if spec.size is None else spec.size, scope, "'size'")
        return _subset(name, items, count, when)
    if spec.partition is not None:
        assert spec.parts is not None
        length = _length(spec.partition, scope, "'partition'")
        return _partition(name, length, _count(spec.parts, scope, "'parts'"), when)
    assert spec.simplex is not None
    items = _items(spec.simplex, scope)
    if len(items) < 2:
        raise SpecError("a simplex of one item is constant", hint="a simplex has two items or more")
    return Simplex(name=name, items=items, steps=_steps(spec, scope), when=when)


@dataclass(frozen=True, slots=True)
class _Count:
    """Size of a subset or number of parts of a partition: from ``least`` to ``most``.

    If ``by`` is not empty, it names the parameter whose value is the size.
    """

    least: int
    most: int
    by: str = ""


def _subset(name: str, items: tuple[Value, ...], count: _Count, when: Expression | None) -> Subset:
    if count.most > len(items) and not count.by:
        raise SpecError(f"{count.most} of {len(items)} items cannot be chosen")
    return Subset(
        name=name,
        items=items,
        least=count.least,
        most=min(count.most, len(items)),
        counted_by=count.by,
        when=when,
    )


def _partition(name: str, length: int, count: _Count, when: Expression | None) -> Partition:
    if count.by:
        count = _Count(max(count.least, 1), min(count.most, length), count.by)
    if count.least < 1 or count.most < count.least:
        raise SpecError("a partition has at least one part")
    if count.most > length:
        raise SpecError(f"a chain of {length} cannot have {count.most} parts: no part may be empty")
    return Partition(
        name=name,
        length=length,
        least=count.least,
        most=count.most,
        counted_by=count.by,
        when=when,
    )


def _length(value: int | str, scope: Scope, what: str) -> int:
    """Return an item count, stated as a number, a formula, or the name of a list or data table."""
    keys = scope.keys(value) if isinstance(value, str) else None
    try:
        length = scope.count(value, what) if keys is None else len(keys)
    except SpecError as error:
        if isinstance(error, HiddenError) or not is_name(str(value)):
            raise
        known = nearest(str(value), [*scope.whole.data, *scope.whole.listings])
        hint = known or f"declare it: 'data: {{{value}: {value}.csv}}'"
        problem = f"{error.problem}, no list and no table of 'data:'"
        raise SpecError(problem, where=error.where, hint=hint) from error
    if not 1 <= length <= MAX_ITEMS:
        raise SpecError(f"{what} is from 1 to {MAX_ITEMS}, not {length}")
    return length


def _items(value: list[Scalar] | int | str, scope: Scope) -> tuple[Value, ...]:
    """Return the items of a compound parameter, from the value in the file.

    They are the values of a list in the file, the keys of the list or data table that ``value``
    names, or 0 to count - 1.
    """
    if isinstance(value, list):
        items: tuple[Value, ...] = tuple(value)
    else:
        keys = scope.keys(value) if isinstance(value, str) else None
        items = tuple(range(_length(value, scope, "the count"))) if keys is None else keys
    if not items:
        raise SpecError("there are no items")
    if len(items) > MAX_ITEMS:
        raise SpecError(f"there are more than {MAX_ITEMS} items")
    seen = set[str]()
    for item in items:
        text = str(item)
        if text in seen:
            raise SpecError(f"the item {item!r} appears twice")
        if not text.strip() or isinstance(item, bool) or any(mark in text for mark in "[]'\""):
            raise SpecError(f"{item!r} cannot be an item", hint="items are numbers or plain words")
        seen.add(text)
    numbers = [item for item in items if is_number(item)]
    return uniform(numbers) if len(numbers) == len(items) else items


def _count(value: int | list[int | str] | str, scope: Scope, what: str) -> _Count:
    by = scope.counting(value) if not isinstance(value, list) else None
    if by is not None:
        values = scope.whole.parameters[by].values  # type: ignore[union-attr]
        return _Count(int(min(values)), int(max(values)), by)
    if not isinstance(value, list):
        exact = scope.count(value, what)
        return _Count(exact, exact)
    bounds = [scope.count(one, what) for one in value]
    if len(bounds) != 2 or bounds[0] > bounds[1]:
        raise SpecError(f"{what} is a number, or [least, most], not {value}")
    return _Count(bounds[0], bounds[1])


def _steps(spec: ParameterSpec, scope: Scope) -> int | None:
    if spec.step is None:
        return None
    found = scope.amount(spec.step)
    if found.unit or not 0 < found.value <= 1:
        raise SpecError(f"'step' is a share of one, such as 0.1, not {spec.step!r}")
    steps = whole_number(float(f"{1 / found.value:.9g}"))
    if steps is None or steps > MAX_STEPS:
        raise SpecError(
            f"steps of {spec.step} do not add up to one", hint="take 0.1, 0.05, 0.25 ..."
        )
    return steps
