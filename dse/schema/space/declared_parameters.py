"""Serialization of parameters and compound parameters in the notation of a space file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, assert_never

from dse.core.compound_parameters import Each, Partition, Permutation, Simplex, Structured, Subset
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real, Scale
from dse.core.values import Value
from dse.schema.space.parameters.number_text import spell_number, spelled_all

_GENERATED = 4
"""Minimum number of values for which a list is written as a generator such as ``pow2``."""


def domain_of(parameter: Parameter) -> dict[str, Any]:
    """Return a parameter's domain as the keys of a space file, such as ``{'choice': [...]}``."""
    match parameter:
        case Real():
            ends = _numbers([parameter.low, parameter.high], parameter.unit, "real")
            return {**ends, **_scale(parameter.scale)}
        case Integer():
            ends = {"integer": [parameter.low, parameter.high]}
            step = {"step": parameter.step} if parameter.step > 1 else {}
            return {**ends, **step, **_unit(parameter.unit), **_scale(parameter.scale)}
        case Ordinal():
            return {**_ordinal(parameter), **_scale(parameter.scale)}
        case Choice():
            if parameter.values == (False, True) and isinstance(parameter.values[0], bool):
                return {"boolean": True}
            return {"choice": list(parameter.values), **_unit(parameter.unit)}
        case _:
            assert_never(parameter)


def _ordinal(parameter: Ordinal) -> dict[str, Any]:
    values, unit = parameter.values, parameter.unit
    if len(values) >= _GENERATED and all(isinstance(value, int) for value in values):
        first, last = spell_number(values[0], unit), spell_number(values[-1], unit)
        if _doubles(values):
            return {"ordinal": f"pow2({first} .. {last})"}
        step = values[1] - values[0]
        if step > 0 and values == tuple(range(int(values[0]), int(values[-1]) + 1, int(step))):
            return {"ordinal": f"range({first} .. {last}, {spell_number(step, unit)})"}
    return _numbers(values, unit, "ordinal")


def _doubles(values: Sequence[float]) -> bool:
    """Return whether the values are consecutive powers of two, ascending."""
    first = int(values[0])
    power = first > 0 and first & (first - 1) == 0
    return power and all(value == first << place for place, value in enumerate(values))


def _numbers(values: Sequence[float], unit: str, key: str) -> dict[str, Any]:
    texts = spelled_all(values, unit) if unit else None
    return {key: list(values), **_unit(unit)} if texts is None else {key: texts}


def _unit(unit: str) -> dict[str, str]:
    return {"unit": unit} if unit else {}


def _scale(scale: Scale) -> dict[str, str]:
    return {"scale": scale} if scale != "linear" else {}


def list_of(one: Structured, members: Sequence[Parameter]) -> dict[str, Any]:
    """Return the declaration of a compound parameter as the keys of a space file.

    ``members`` are its members with their current domains, which may have been narrowed.
    """
    match one:
        case Each():
            return {"each": one.length, **domain_of(shared_domain(one, members))}
        case Permutation():
            return {"permutation": _items(one.items)}
        case Subset():
            size: dict[str, Any] = {"size": _count(one.least, one.most, one.counted_by)}
            free = not one.counted_by and (one.least, one.most) == (0, len(one.items))
            return {"subset": _items(one.items), **({} if free else size)}
        case Partition():
            parts = _count(one.least, one.most, one.counted_by)
            return {"partition": one.length, "parts": parts}
        case Simplex():
            step = {} if one.steps is None else {"step": 1 / one.steps}
            return {"simplex": _items(one.items), **step}
        case _:
            assert_never(one)


def shared_domain(one: Each, members: Sequence[Parameter]) -> Parameter:
    """Return a parameter with the domain to write once for all members of an ``each:`` list.

    The domain is the narrowed one if all members were narrowed alike, else the declared one.
    """
    domains = [{k: v for k, v in domain_of(member).items() if k != "name"} for member in members]
    return members[0] if all(domain == domains[0] for domain in domains) else one.domain


def _items(items: tuple[Value, ...]) -> list[Value] | int:
    return len(items) if items == tuple(range(len(items))) and len(items) > 1 else list(items)


def _count(least: int, most: int, counted_by: str) -> int | str | list[int]:
    if counted_by:
        return counted_by
    return least if least == most else [least, most]
