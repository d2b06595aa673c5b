"""Values as ranks and back, for peers that know numbers but no lists of them."""

from __future__ import annotations

from dse.core.parameter import Finite
from dse.core.values import Value


def rank(parameter: Finite, value: Value) -> int:
    """The place of the value among the parameter's."""
    return parameter.values.index(value)


def ranked(parameter: Finite, place: int) -> Value:
    """The inverse of :func:`rank`."""
    return parameter.values[place]
