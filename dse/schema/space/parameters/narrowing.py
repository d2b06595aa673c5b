"""Restriction of a parameter's domain: fixed to one value, or narrowed to a subdomain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real, describe
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.schema.models import Scalar
from dse.schema.space.file import NarrowSpec
from dse.schema.space.parameters.domains import DomainReader, ordinal_of, parameter_of
from dse.units import units

_SHOWN = 200
"""Maximum number of characters of a domain in a message."""


def fix_value(parameter: Parameter, value: Scalar, reader: DomainReader) -> Parameter:
    """Return the parameter with this value as its only value; its activity is unchanged.

    Raises:
        SpecError: the value is not in the domain.
    """
    return _only(parameter, [value_of(parameter, value, reader)])


def narrow_domain(parameter: Parameter, spec: NarrowSpec, reader: DomainReader) -> Parameter:
    """Return the parameter restricted to a list of its values, or to a subdomain.

    Raises:
        SpecError: the list or subdomain is not inside the domain.
    """
    if spec.values is not None:
        return _only(parameter, [value_of(parameter, value, reader) for value in spec.values])
    inner = parameter_of(parameter.name, _in_unit(spec, parameter), reader)
    if isinstance(inner, Real):
        return _shorter(parameter, inner, kept_scale=spec.scale is None)
    outside = next((value for value in inner.values if value not in parameter), None)
    if outside is not None or inner.unit != parameter.unit:
        raise build_domain_error(parameter, inner.values[0] if outside is None else outside)
    if isinstance(inner, Integer) and isinstance(parameter, Integer):
        return inner if spec.scale else replace(inner, scale=parameter.scale)
    narrower = _only(parameter, inner.values)
    if spec.scale is not None and isinstance(narrower, Ordinal):
        return ordinal_of(narrower.name, narrower.values, narrower.unit, spec.scale)
    return narrower


def value_of(parameter: Parameter, value: Scalar, reader: DomainReader) -> Value:
    """Convert a value written in a file to the parameter's own value: ``64 KiB`` to 65536.

    The name of an argument is replaced by the argument's value, unless the name itself is in the
    domain.

    Raises:
        SpecError: the value is not in the domain.
    """
    return own_value(parameter, value if value in parameter else reader.word(value), reader)


def own_value(parameter: Parameter, given: Scalar, reader: DomainReader) -> Value:
    """Convert a value written in a file to the parameter's own value, but resolve no arguments.

    Raises:
        SpecError: the value is not in the domain.
    """
    value = given
    if isinstance(given, str) and _is_amount(given, parameter):
        given = reader.amount(given, parameter.unit).value
    if given not in parameter:
        raise build_domain_error(parameter, value)
    if isinstance(parameter, Real):
        return float(given)
    return next(own for own in parameter.values if own == given and _alike(own, given))


def build_domain_error(parameter: Parameter, value: Scalar) -> SpecError:
    """Return the error for a value outside the domain; its hint describes the domain."""
    domain = describe(parameter)
    shown = domain if len(domain) <= _SHOWN else f"{domain[:_SHOWN]} ..."
    hint = f"legal: {shown}"
    if isinstance(parameter, Choice) and isinstance(value, str):
        close = nearest(value, [str(own) for own in parameter.values])
        hint = f"{close} ({hint})" if close.startswith("did") else hint
    return SpecError(f"{parameter.name} cannot be {value!r}", hint=hint)


def _only(parameter: Parameter, values: Sequence[Value]) -> Parameter:
    """Return the parameter restricted to the given values, in the order of its domain."""
    kept = set(values)
    if isinstance(parameter, Real):
        if len(kept) == 1:
            (value,) = (float(value) for value in kept)
            return replace(parameter, low=value, high=value)
        numbers = sorted(float(value) for value in kept)
        return ordinal_of(parameter.name, numbers, parameter.unit, parameter.scale)
    if isinstance(parameter, Choice):
        chosen = [own for own in parameter.values if any(_same(own, value) for value in values)]
        return replace(parameter, values=tuple(chosen))
    if isinstance(parameter, Integer):
        whole = [own for own in parameter.values if own in kept]
        if len(whole) == 1:
            return replace(parameter, low=whole[0], high=whole[0], step=1)
        return ordinal_of(parameter.name, whole, parameter.unit, parameter.scale)
    return replace(parameter, values=tuple(own for own in parameter.values if own in kept))


def _shorter(parameter: Parameter, inner: Real, *, kept_scale: bool) -> Real:
    if not isinstance(parameter, Real):
        raise SpecError(
            f"{parameter.name} has listed values, and a range of reals is no part of them",
            hint=f"legal: {describe(parameter)[:_SHOWN]}",
        )
    for bound in (inner.low, inner.high):
        if bound not in parameter or inner.unit != parameter.unit:
            raise build_domain_error(parameter, bound)
    return replace(inner, scale=parameter.scale) if kept_scale else inner


def _in_unit(spec: NarrowSpec, parameter: Parameter) -> NarrowSpec:
    """Return the ``narrow`` entry with the parameter's unit as its default unit."""
    numeric = spec.choice is None and spec.boolean is None
    if spec.unit is None and numeric and parameter.unit:
        return spec.model_copy(update={"unit": parameter.unit})
    return spec


def _is_amount(given: str, parameter: Parameter) -> bool:
    """Return whether a string is parsed as a quantity; for a choice of strings it is not."""
    if not isinstance(parameter, Choice):
        return True
    return given not in parameter and units.quantity(given) is not None


def _same(own: Value, value: Value) -> bool:
    return own == value and _alike(own, value)


def _alike(own: Value, value: Value) -> bool:
    return isinstance(own, bool | str) == isinstance(value, bool | str)
