"""Inputs of an external model: read from the design unless an option fixes them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dse.core.values import Value
from dse.errors import SpecError
from dse.units.units import converted, quantity
from dse_evaluators.readings import Check, check_readings, word


@dataclass(frozen=True, slots=True, kw_only=True)
class Knob:
    """Input of an external model; without a default it is required.

    If ``words`` are given, the input takes one of them. If ``text`` is true, it is a name that only
    the external program can check; otherwise it is a number.
    """

    name: str
    unit: str = ""
    default: Value | None = None
    words: tuple[str, ...] = ()
    text: bool = False

    def value(self, given: Any) -> Value:
        """Convert a value of an evaluator's option to a value of the input.

        A text such as ``1.2 GHz`` becomes a number in the input's unit.

        Raises:
            SpecError: the value is invalid.
        """
        if self.words:
            word(*self.words)(self.name, given)
            return str(given)
        if self.text:
            return str(given)
        stated = quantity(given) if isinstance(given, str) and self.unit else None
        if stated is not None:
            return converted(*stated, self.unit)
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise SpecError(f"{self.name} must be a number, not {given!r}")
        return given


class SimulatorInputs:
    """Inputs of an evaluator, some of them fixed by options.

    Args:
        knobs: all inputs.
        given: the values that options give, by name; ``None`` for inputs to read from the design.

    Raises:
        SpecError: an option has an invalid value.
    """

    def __init__(self, knobs: Sequence[Knob], given: Mapping[str, Any]) -> None:
        self._fixed = {
            knob.name: knob.value(given[knob.name])
            for knob in knobs
            if given.get(knob.name) is not None
        }
        self._free = {knob.name: knob for knob in knobs if knob.name not in self._fixed}
        self.reads = frozenset(name for name, knob in self._free.items() if knob.default is None)
        self.optional = frozenset(self._free) - self.reads
        self.units = {name: knob.unit for name, knob in self._free.items() if knob.unit}

    def of(self, design: Mapping[str, Value]) -> dict[str, Value]:
        """Return the value of each input: from an option, the design or the default."""
        free = {
            name: design.get(name, "" if knob.default is None else knob.default)
            for name, knob in self._free.items()
        }
        return {**self._fixed, **free}

    def check(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check the values that a space allows for each input that is read from the design.

        Raises:
            SpecError: a value is invalid.
        """
        checks: dict[str, Check] = {
            name: word(*knob.words) for name, knob in self._free.items() if knob.words
        }
        check_readings({n: v for n, v in values.items() if n in self._free}, checks)
