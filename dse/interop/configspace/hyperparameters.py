"""Conversion between one ConfigSpace hyperparameter in JSON and one parameter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast

from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real, Scale
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.interop.document import legal_name
from dse.interop.value_conversion import (
    check_count,
    number_in,
    numbers_only,
    step_values,
    values_in,
)
from dse.units import units

Item = Mapping[str, Any]


class HyperparameterReader:
    """Parser of ConfigSpace hyperparameters; ``warnings`` lists properties not imported."""

    def __init__(self) -> None:
        self.warnings: list[str] = []

    def parameter(self, item: Item, name: str) -> Parameter:
        """Convert a hyperparameter to a parameter with the given name.

        Raises:
            SpecError: the item is not a hyperparameter of a known type, or its domain is empty.
        """
        kind = str(item.get("type"))
        kinds: Mapping[str, Callable[[Item, str, str], Parameter]] = {
            "uniform_float": self._float,
            "normal_float": self._float,
            "beta_float": self._float,
            "uniform_int": self._integer,
            "normal_int": self._integer,
            "beta_int": self._integer,
            "categorical": self._categorical,
            "ordinal": self._ordinal,
            "constant": self._constant,
            "unparametrized": self._constant,  # a constant's older name
        }
        if kind not in kinds:
            raise SpecError(f"{name} is of the type {kind!r}", hint=nearest(kind, kinds))
        self._warn_of_lost_fields(item, kind, name)
        return kinds[kind](item, name, self._unit(item, name))

    def _float(self, item: Item, name: str, unit: str) -> Parameter:
        low, high, scale = _range(item, name)
        step = number_in(item, "q", name) if item.get("q") is not None else None
        if step is None:
            return Real(name=name, low=low, high=high, unit=unit, scale=scale)
        values = step_values(low, high, step, name)
        return Ordinal(name=name, values=values, unit=unit, scale=scale)

    def _integer(self, item: Item, name: str, unit: str) -> Parameter:
        low, high, scale = _range(item, name)
        step = number_in(item, "q", name) if item.get("q") is not None else 1
        if not (low.is_integer() and high.is_integer() and float(step).is_integer() and step > 0):
            raise SpecError(f"{name} is a whole number, but goes from {low} to {high} by {step}")
        count = int((high - low) // step)
        check_count(count + 1, name)
        return Integer(
            name=name,
            low=int(low),
            high=int(low) + count * int(step),
            step=int(step),
            unit=unit,
            scale=scale,
        )

    def _categorical(self, item: Item, name: str, unit: str) -> Parameter:
        values = values_in(item, "choices", name, self.warnings)
        return Choice(name=name, values=values, unit=unit if numbers_only(values) else "")

    def _ordinal(self, item: Item, name: str, unit: str) -> Parameter:
        values = values_in(item, "sequence", name, self.warnings)
        if numbers_only(values):
            return Ordinal(name=name, values=cast("tuple[int | float, ...]", values), unit=unit)
        self.warnings.append(f"{name}: the order of its words is not kept")
        return Choice(name=name, values=values)

    def _constant(self, item: Item, name: str, unit: str) -> Parameter:
        (value,) = values_in({"value": [item.get("value")]}, "value", name, self.warnings)
        if numbers_only([value]):
            return Ordinal(name=name, values=(cast("int | float", value),), unit=unit)
        return Choice(name=name, values=(value,))

    def _warn_of_lost_fields(self, item: Item, kind: str, name: str) -> None:
        """Add a warning for a distribution or weights, which a parameter cannot represent."""
        shape, _, _ = kind.partition("_")
        if shape in ("normal", "beta"):
            lost = [
                f"{key} = {item[key]}" for key in ("mu", "sigma", "alpha", "beta") if key in item
            ]
            self.warnings.append(
                f"{name}: its {shape} distribution ({', '.join(lost)}) is not kept; "
                "no value of the range is preferred"
            )
        weights = item.get("weights") or item.get("probabilities")
        if isinstance(weights, list) and len({str(weight) for weight in weights}) > 1:
            self.warnings.append(
                f"{name}: its weights {weights} are not kept; all values are equal"
            )

    def _unit(self, item: Item, name: str) -> str:
        """Return the unit that the export stores in ``meta``; warn of other entries there."""
        meta = item.get("meta") or {}
        others = sorted(set(meta) - {"unit"}) if isinstance(meta, dict) else ["meta"]
        if others:
            self.warnings.append(f"{name}: its notes under 'meta' are not kept")
        unit = meta.get("unit", "") if isinstance(meta, dict) else ""
        if not isinstance(unit, str) or not unit:
            return ""
        try:
            return unit if units.coherent(unit) == unit else self._no_unit(name, unit)
        except SpecError:
            return self._no_unit(name, unit)

    def _no_unit(self, name: str, unit: str) -> str:
        self.warnings.append(f"{name}: its unit {unit!r} is not kept; it is not a known unit")
        return ""


def name_in(item: Any, key: str = "name") -> str:
    """Return the name of a ConfigSpace item, such as a hyperparameter.

    Raises:
        SpecError: the item is not a JSON object, or its name is not a text.
    """
    if not isinstance(item, dict):
        raise SpecError(f"a JSON object is expected, not {str(item)[:60]}")
    name = item.get(key)
    if not isinstance(name, str) or not legal_name(name):
        raise SpecError(f"{key!r} is {name!r}, and no name")
    return name


def hyperparameter(parameter: Parameter, default: Value) -> dict[str, Any]:
    """Return a parameter as a ConfigSpace hyperparameter with a uniform prior."""
    meta = {"unit": parameter.unit} if parameter.unit else None
    rest = {"name": parameter.name, "meta": meta}
    if isinstance(parameter, Real):
        if parameter.low == parameter.high:
            return {"type": "constant", "value": parameter.low, **rest}
        ends = {"lower": parameter.low, "upper": parameter.high, "log": parameter.scale == "log"}
        return {"type": "uniform_float", **ends, "default_value": default, **rest}
    values = list(parameter.values)
    if len(values) == 1:
        return {"type": "constant", "value": values[0], **rest}
    if isinstance(parameter, Integer) and parameter.step == 1:
        ends = {"lower": parameter.low, "upper": parameter.high, "log": parameter.scale == "log"}
        return {"type": "uniform_int", **ends, "default_value": default, **rest}
    if isinstance(parameter, Choice):
        rest["weights"] = None
        return {"type": "categorical", "choices": values, "default_value": default, **rest}
    return {"type": "ordinal", "sequence": values, "default_value": default, **rest}


def _range(item: Item, name: str) -> tuple[float, float, Scale]:
    low, high = (float(number_in(item, key, name)) for key in ("lower", "upper"))
    scale: Scale = "log" if item.get("log") is True else "linear"
    if low > high:
        raise SpecError(f"{name} goes backwards: {low} .. {high}")
    if scale == "log" and low <= 0:
        raise SpecError(f"{name} has a log scale, but starts at {low}", hint="start above zero")
    return low, high, scale
