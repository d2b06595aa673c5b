"""Parameters of a space: real, integer, ordinal and choice, with their domains and scales."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from dse.core.values import Floats, Value

Scale = Literal["linear", "log"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Real:
    """Real parameter between two inclusive bounds, in ``unit``, on a linear or log scale."""

    name: str
    low: float
    high: float
    unit: str = ""
    scale: Scale = "linear"

    def __contains__(self, value: object) -> bool:
        return _is_number(value) and self.low <= value <= self.high  # type: ignore[operator]

    def at(
        self,
        shares: Floats,  # (n,), each in [0, 1]
    ) -> Floats:
        """Return the values at fractions (0 to 1) of the range, linear or logarithmic, (n,)."""
        if self.low == self.high:
            return np.full(shares.shape, self.low)
        if self.scale == "log":
            span = math.log(self.high) - math.log(self.low)
            values = np.exp(math.log(self.low) + shares * span)
        else:
            values = self.low + shares * (self.high - self.low)
        return np.where(shares >= 1, self.high, np.clip(values, self.low, self.high))

    def shares(
        self,
        values: Floats,  # (n,)
    ) -> Floats:
        """Return each value's fraction of the range (0 to 1), (n,); the inverse of :meth:`at`."""
        if self.high == self.low:
            return np.full(values.shape, 0.5)
        if self.scale == "log":
            return np.log(values / self.low) / math.log(self.high / self.low)
        return (values - self.low) / (self.high - self.low)


@dataclass(frozen=True, slots=True, kw_only=True)
class Integer:
    """Integer parameter from ``low`` to ``high`` inclusive, in steps of ``step``, in ``unit``."""

    name: str
    low: int
    high: int
    step: int = 1
    unit: str = ""
    scale: Scale = "linear"

    @property
    def values(self) -> tuple[int, ...]:
        return tuple(range(self.low, self.high + 1, self.step))

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, int)
            and not isinstance(value, bool)
            and self.low <= value <= self.high
            and (value - self.low) % self.step == 0
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordinal:
    """Ordinal parameter: a list of numbers in ``unit``, whose order defines their distance.

    On a linear scale they are evenly spaced; on a log scale they are spaced by their logarithms.
    """

    name: str
    values: tuple[int | float, ...]
    unit: str = ""
    scale: Scale = "linear"

    def __contains__(self, value: object) -> bool:
        return _is_number(value) and value in self.values


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Categorical parameter: values without an order."""

    name: str
    values: tuple[Value, ...]
    unit: str = ""

    def __contains__(self, value: object) -> bool:
        return any(value == mine and type(value) is type(mine) for mine in self.values)


Finite = Integer | Ordinal | Choice
Parameter = Real | Finite


def size(parameter: Parameter) -> float:
    """Return the number of values of the parameter; infinite for a real one."""
    match parameter:
        case Real():
            return math.inf
        case Integer():
            return (parameter.high - parameter.low) // parameter.step + 1
        case _:
            return len(parameter.values)


def describe(parameter: Parameter) -> str:
    """Return the parameter's domain as text, for messages and tables."""
    unit = f" {parameter.unit}" if parameter.unit else ""
    match parameter:
        case Real():
            return f"{parameter.low:g} .. {parameter.high:g}{unit}"
        case Integer():
            step = f" step {parameter.step}" if parameter.step != 1 else ""
            return f"{parameter.low} .. {parameter.high}{step}{unit}"
        case _:
            return ", ".join(str(value) for value in parameter.values) + unit


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
