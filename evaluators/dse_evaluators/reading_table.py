"""Table of an evaluator's inputs, with their ranges, units and defaults.

An evaluator option with the name of an input fixes that input for all designs; it is then not read
from the design.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple, assert_never

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse.errors import EvaluationError, SpecError, nearest
from dse.protocols import InputDescription
from dse.units.units import quantity
from dse_evaluators.amounts import amount
from dse_evaluators.readings import Check, check_readings, flag, number, word


class NumberInput(NamedTuple):
    """Numeric input of an evaluator in a closed range; required unless it has a default.

    The range is ``low`` to ``high``; ``whole`` restricts the input to integers.
    """

    low: float
    high: float
    unit: str = ""
    default: float | None = None
    whole: bool = False


class Flag(NamedTuple):
    """Boolean input of an evaluator; required unless it has a default."""

    default: bool | None = None


class ChoiceInput(NamedTuple):
    """Categorical input of an evaluator; ``numbers`` maps each value to its numeric code.

    The input is required unless it has a default.
    """

    numbers: Mapping[Value, float]
    default: Value | None = None


class CheckedInput(NamedTuple):
    """Input of an evaluator that is neither a number nor a category, such as a text.

    Evaluators read the input from the batch. ``check`` checks a value; it can be pickled: a
    function of a module, a bound method, or a ``functools.partial`` of either. The input is
    required unless it has a default.
    """

    check: Check
    default: Value | None = None


Reading = NumberInput | Flag | ChoiceInput | CheckedInput


def one_of(words: Iterable[str], default: Value | None = None) -> ChoiceInput:
    """Return a categorical input with the values ``words``, coded by their index."""
    return ChoiceInput({name: float(place) for place, name in enumerate(words)}, default)


@dataclass(frozen=True, slots=True)
class Readings:
    """Inputs of an evaluator by name, with their ranges, units and defaults.

    Inputs in ``settled`` have one value for all designs.
    """

    table: Mapping[str, Reading]
    settled: Mapping[str, Value] = field(default_factory=dict)

    @staticmethod
    def of(table: Mapping[str, Reading], owner: object) -> Readings:
        """Return an evaluator's inputs; inputs whose option is set are fixed to its value.

        Raises:
            SpecError: an option has an invalid value, or its unit does not fit.
        """
        given = {name: value for name, value in vars(owner).items() if name in table}
        return Readings(table).fixed({k: value for k, value in given.items() if value is not None})

    def fixed(self, given: Mapping[str, Value]) -> Readings:
        """Return a copy with some inputs fixed for all designs; values may be ``1.2 GHz``.

        Raises:
            SpecError: there is no such input, or the value is invalid for it.
        """
        return Readings(self.table, {**self.settled, **self._convert_given(given)})

    def otherwise(self, usual: Mapping[str, Value]) -> Readings:
        """Return a copy with other default values, for designs that do not set the inputs.

        Raises:
            SpecError: there is no such input, or the value is invalid for it.
        """
        converted = self._convert_given(usual)
        table = {name: _with_default(self.table[name], value) for name, value in converted.items()}
        return Readings({**self.table, **table}, self.settled)

    @property
    def declared(self) -> tuple[frozenset[str], frozenset[str], dict[str, str]]:
        """Names of required and of optional inputs, and units by name, without fixed inputs.

        The result is an evaluator's ``reads``, ``optional`` and ``units``.
        """
        free = {name: one for name, one in self.table.items() if name not in self.settled}
        reads = frozenset(name for name, one in free.items() if one.default is None)
        units = {name: one.unit for name, one in free.items() if isinstance(one, NumberInput)}
        return reads, frozenset(free) - reads, {name: unit for name, unit in units.items() if unit}

    @property
    def defaults(self) -> dict[str, Value]:
        """The default of each input that has one."""
        defaults = {name: one.default for name, one in self.table.items()}
        return {name: value for name, value in defaults.items() if value is not None}

    @property
    def descriptions(self) -> dict[str, InputDescription]:
        """The values that each input can take, as text, and its default."""
        return {name: _describe(one) for name, one in self.table.items()}

    def check(
        self, values: Mapping[str, Sequence[Value]], lists: Mapping[str, int] | None = None
    ) -> None:
        """Raise SpecError if a value that a space allows for an input is invalid.

        The checks are those of :func:`check_readings`.
        """
        check_readings(values, {name: _check(one) for name, one in self.table.items()}, lists)

    def columns(self, batch: Batch) -> dict[str, Floats]:
        """Return the inputs of n designs as columns (n,), categorical values as their codes.

        Raises:
            EvaluationError: a categorical value is not among those that its input takes.
        """
        stored = [name for name, one in self.table.items() if not isinstance(one, CheckedInput)]
        return {name: self.column(name, batch) for name in stored}

    def column(self, name: str, batch: Batch) -> Floats:
        """Return one input of n designs, (n,), as :meth:`columns` does; texts are not allowed.

        Raises:
            EvaluationError: a categorical value is not among those that the input takes.
        """
        one = self.table[name]
        if name in self.settled:
            return np.full(len(batch), number_of(one, self.settled[name]))
        if isinstance(one, ChoiceInput):
            return _looked_up(name, one, batch)
        found = batch[name] if one.default is None else batch.get(name, one.default)
        return np.asarray(found, dtype=np.float64)

    def rows(self, batch: Batch) -> list[dict[str, float]]:
        """Return each design's inputs by name, as a list; categorical values as their codes."""
        columns = self.columns(batch)
        lists = [column.tolist() for column in columns.values()]
        return [dict(zip(columns, row, strict=True)) for row in zip(*lists, strict=True)]

    def _convert_given(self, given: Mapping[str, Value]) -> dict[str, Value]:
        """Check values for some of the inputs; return them converted to the inputs' units."""
        for name in given:
            if name not in self.table:
                raise SpecError(f"there is no knob {name!r}", hint=nearest(name, self.table))
        converted = {name: _in_unit(name, self.table[name], value) for name, value in given.items()}
        self.check({name: (value,) for name, value in converted.items()})
        return converted


_MOST_WORDS = 16
"""Number of values of a categorical input that its description lists."""


def _describe(one: Reading) -> InputDescription:
    match one:
        case NumberInput():
            whole = ", whole" if one.whole else ""
            return InputDescription(f"{one.low:g} to {one.high:g}{whole}", one.default)
        case Flag():
            return InputDescription("true, false", one.default)
        case ChoiceInput():
            words = list(map(str, one.numbers))
            more = f", and {len(words) - _MOST_WORDS} more" if len(words) > _MOST_WORDS else ""
            return InputDescription(", ".join(words[:_MOST_WORDS]) + more, one.default)
        case CheckedInput():
            return InputDescription("", one.default)
    assert_never(one)


def _check(one: Reading) -> Check:
    match one:
        case NumberInput():
            return number(one.low, one.high, whole=one.whole, unit=one.unit)
        case Flag():
            return flag
        case ChoiceInput():
            return word(*one.numbers)
        case CheckedInput():
            return one.check
    assert_never(one)


def _in_unit(name: str, one: Reading, value: Value) -> Value:
    """Convert a text such as ``1.2 GHz`` to the input's unit, without a range check.

    Other values are returned unchanged.
    """
    if isinstance(one, NumberInput) and isinstance(value, str) and quantity(value) is not None:
        return amount(name, value, one.unit, least=-inf)
    return value


def _with_default(one: Reading, value: Value) -> Reading:
    match one:
        case NumberInput():
            return one._replace(default=float(value))
        case Flag():
            return one._replace(default=bool(value))
        case ChoiceInput() | CheckedInput():
            return one._replace(default=value)
    assert_never(one)


def number_of(one: Reading, value: Value) -> float:
    """Return a value of an input as a number: the value, or its code if it is categorical."""
    return one.numbers[value] if isinstance(one, ChoiceInput) else float(value)


def _looked_up(name: str, one: ChoiceInput, batch: Batch) -> Floats:
    usual = 0.0 if one.default is None else one.numbers[one.default]
    try:
        return batch.lookup(name, one.numbers, usual)
    except KeyError as error:
        value = np.asarray(error.args[0]).item()  # a Python scalar, for its repr
        hint = nearest(value, map(str, one.numbers))
        raise EvaluationError(f"{name} cannot be {value!r}", hint=hint) from error
