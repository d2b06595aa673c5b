"""Parsing of designs from files: quantities with units, and one value for a list of parameters."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.design import Design
from dse.core.parameter import Choice, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import DesignError, SpecError
from dse.schema.space.parameters.domains import amount
from dse.units import units

_MOST_NAMED = 8


def design_of(values: Mapping[str, Value], space: DesignSpace) -> Design:
    """Return the feasible design with these values; texts such as ``64 KiB`` are quantities.

    A value given for a list of parameters applies to all members without a value of their own.

    Raises:
        DesignError: the design violates a rule of the space.
        SpecError: a quantity cannot be parsed.
    """
    plain = plain_values(values, space)
    _check_complete(plain, space)
    space.check(plain)
    return space.batch([plain]).design(0)  # normalized: 1 and 1.0 give equal designs


def _check_complete(plain: Mapping[str, Value], space: DesignSpace) -> None:
    """Raise DesignError with the names of the missing parameters, if two or more are missing."""
    known = {*plain, *space.conditions}
    missing = [p.name for p in space.parameters if p.name not in known]
    odd = next((name for name in plain if name not in space.by_name), None)
    if len(missing) > 1 and odd is None:
        named = ", ".join(missing[:_MOST_NAMED])
        more = f" and {len(missing) - _MOST_NAMED} more" if len(missing) > _MOST_NAMED else ""
        raise DesignError(
            f"{named}{more} are missing",
            where=space.places.get(missing[0], ""),
            hint=f"give each a value: {missing[0]}: {_first_value(space.by_name[missing[0]])}",
        )


def _first_value(parameter: Parameter) -> Value:
    return parameter.low if isinstance(parameter, Real) else parameter.values[0]


def plain_values(values: Mapping[str, Value], space: DesignSpace) -> dict[str, Value]:
    """Convert values in a file to the space's parameters, in coherent units.

    A value given for a list becomes one for each member. The result need not be a legal design.

    Raises:
        SpecError: a quantity cannot be parsed.
    """
    plain: dict[str, Value] = {}
    for name, given in _spread(values, space).items():
        value = given.item() if isinstance(given, np.generic) else given  # of a data frame
        parameter = space.by_name.get(name)
        is_quantity = isinstance(value, str) and units.quantity(value) is not None
        if parameter is not None and is_quantity and not isinstance(parameter, Choice):
            plain[name] = amount(value, parameter.unit).value
        else:
            plain[name] = value
    return plain


def legal_design(values: Mapping[str, Value], space: DesignSpace) -> Design:
    """Return the feasible design; errors have the location of the values in the file.

    Raises:
        SpecError: the design violates a rule of the space, or a quantity cannot be parsed.
    """
    try:
        return design_of(values, space)
    except DesignError as error:
        rule = f" ({error.where})" if error.where else ""
        raise SpecError(error.problem, hint=error.hint + rule) from error


def _spread(values: Mapping[str, Value], space: DesignSpace) -> dict[str, Value]:
    """Return the values; a value given for a list is copied to members without a value."""
    found: dict[str, Value] = {}
    for name, value in values.items():
        members = [f"{name}[{key}]" for key in _keys(name, space)]
        if members and all(member in space.by_name for member in members):
            found |= dict.fromkeys(members, value)
        else:
            found[name] = value
    return found | {name: value for name, value in values.items() if name in space.by_name}


def _keys(name: str, space: DesignSpace) -> tuple[Value, ...]:
    return space.lists[name].listing.keys if name in space.lists else ()
