"""Import and export of Optuna's distributions, as a JSON object of distributions by name.

Source:
    https://optuna.readthedocs.io/en/stable/reference/distributions.html
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real, Scale
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.errors import SpecError, nearest
from dse.interop.conversion import SpaceExport, SpaceImport, UnsupportedRules
from dse.interop.document import Document, NameMap
from dse.interop.value_conversion import check_count, number_in, step_values, values_in

Attributes = Mapping[str, Any]


def read_distributions(text: str, file: str = "optuna.json") -> SpaceImport:
    """Read a space from Optuna's distributions; it has no conditions and no rules.

    Args:
        text: a JSON object from names to distributions, each as an object, or as the string that
            ``distribution_to_json`` returns.
        file: file name for error messages.

    Raises:
        SpecError: the text has no distributions, or an invalid one.
    """
    document = Document(text, file)
    names, warnings, parameters = NameMap(), list[str](), list[Parameter]()
    for theirs, item in document.value.items():
        try:
            name = names.add(theirs)
            parameters.append(_parameter(item, name, warnings))
        except SpecError as error:
            raise error.at(document.place(theirs)) from error
    if not parameters:
        raise SpecError("there are no distributions", where=f"{file}:1")
    return SpaceImport(
        space=DesignSpace(parameters=tuple(parameters)),
        name="",
        names=names.ours,
        warnings=(*names.warnings, *warnings),
    )


def write(space: DesignSpace, *, drop_rules: bool = False) -> SpaceExport:
    """Export the parameters of a space as Optuna's distributions.

    Args:
        space: the space to export.
        drop_rules: omit rules and conditions, each with a warning; the result is a superset of the
            space.

    Raises:
        SpecError: the space has rules or conditions, and ``drop_rules`` is false.
    """
    unsaid = UnsupportedRules("Optuna", space)
    for name in space.conditions:
        with unsaid.condition(name):
            raise SpecError("it has no conditional parameters")
    for rule in space.constraints:
        with unsaid.rule(rule):
            raise SpecError("it has no rules between parameters")
    warnings = unsaid.warnings(drop=drop_rules)
    found = {}
    for parameter in space.parameters:
        kind, attributes = _distribution(parameter, warnings)
        found[parameter.name] = json.dumps({"name": kind, "attributes": attributes})
    return SpaceExport(text=json.dumps(found, indent=2) + "\n", warnings=tuple(warnings))


# -- import -------------------------------------------------------------------------------------


def _parameter(item: Any, name: str, warnings: list[str]) -> Parameter:
    kind, attributes = _kind(item, name)
    if kind == "CategoricalDistribution":
        return Choice(name=name, values=values_in(attributes, "choices", name, warnings))
    if kind in ("IntDistribution", "IntUniformDistribution", "IntLogUniformDistribution"):
        log = kind == "IntLogUniformDistribution" or attributes.get("log") is True
        return _integer(attributes, name, "log" if log else "linear")
    log = kind == "LogUniformDistribution" or attributes.get("log") is True
    return _float(attributes, name, "log" if log else "linear")


_KINDS = (
    "FloatDistribution",
    "IntDistribution",
    "CategoricalDistribution",
    "UniformDistribution",
    "LogUniformDistribution",
    "DiscreteUniformDistribution",
    "IntUniformDistribution",
    "IntLogUniformDistribution",
)
_SHORT = {
    "float": "FloatDistribution",
    "int": "IntDistribution",
    "categorical": "CategoricalDistribution",
}


def _kind(item: Any, name: str) -> tuple[str, Attributes]:
    if isinstance(item, str):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError) as error:
            raise SpecError(f"{name} is {item[:60]!r}, and no distribution") from error
    if not isinstance(item, dict):
        raise SpecError(f"{name} is {str(item)[:60]}, and no distribution")
    kind, attributes = item.get("name"), item.get("attributes")
    if "type" in item:  # the short form, {"type": "int", "low": 1, "high": 8}
        kind, attributes = _SHORT.get(str(item["type"]), item["type"]), item
    if kind not in _KINDS or not isinstance(attributes, dict):
        hint = nearest(str(kind), _KINDS)
        raise SpecError(f"{name} is of the kind {kind!r}, which is no distribution", hint=hint)
    return str(kind), attributes


def _integer(attributes: Attributes, name: str, scale: Scale) -> Integer:
    low, high = number_in(attributes, "low", name), number_in(attributes, "high", name)
    step = number_in(attributes, "step", name) if attributes.get("step") is not None else 1
    if any(float(number) != int(number) for number in (low, high, step)):
        raise SpecError(f"{name} is a whole number, but goes from {low} to {high} by {step}")
    _check_range(low, high, name, scale)
    if step < 1:
        raise SpecError(f"{name} goes by steps of {step}")
    count = int(high - low) // int(step)
    check_count(count + 1, name)
    top = int(low) + count * int(step)
    return Integer(name=name, low=int(low), high=top, step=int(step), scale=scale)


def _float(attributes: Attributes, name: str, scale: Scale) -> Parameter:
    low, high = number_in(attributes, "low", name), number_in(attributes, "high", name)
    _check_range(low, high, name, scale)
    key = "q" if attributes.get("q") is not None else "step"
    if attributes.get(key) is None:
        return Real(name=name, low=float(low), high=float(high), scale=scale)
    return Ordinal(name=name, values=step_values(low, high, number_in(attributes, key, name), name))


def _check_range(low: float, high: float, name: str, scale: Scale) -> None:
    if low > high:
        raise SpecError(f"{name} goes backwards: {low} .. {high}")
    if scale == "log" and low <= 0:
        raise SpecError(f"{name} has a log scale, but starts at {low}", hint="start above zero")


# -- export -------------------------------------------------------------------------------------


def _distribution(parameter: Parameter, warnings: list[str]) -> tuple[str, dict[str, Any]]:
    if parameter.unit:
        warnings.append(f"{parameter.name}: its unit {parameter.unit} is lost; Optuna has no units")
    match parameter:
        case Real():
            ends = {"low": parameter.low, "high": parameter.high}
            return "FloatDistribution", {"step": None, **ends, "log": parameter.scale == "log"}
        case Integer():
            return _whole(parameter, warnings)
        case Choice():
            return "CategoricalDistribution", {"choices": list(parameter.values)}
        case Ordinal():
            step = _step(parameter.values)
            if step is not None:
                ends = {"low": parameter.values[0], "high": parameter.values[-1]}
                return "IntDistribution", {"log": False, "step": step, **ends}
            if len(parameter.values) > 2:
                warnings.append(f"{parameter.name}: its order is lost; Optuna has no uneven lists")
            return "CategoricalDistribution", {"choices": list(parameter.values)}


def _whole(parameter: Integer, warnings: list[str]) -> tuple[str, dict[str, Any]]:
    log = parameter.scale == "log"
    if log and (parameter.step > 1 or parameter.low < 1):
        warnings.append(f"{parameter.name}: its log scale is lost; Optuna has none with steps")
        log = False
    ends = {"low": parameter.low, "high": parameter.values[-1]}
    return "IntDistribution", {"log": log, "step": parameter.step, **ends}


def _step(values: tuple[Value, ...]) -> int | None:
    """Return the common difference of ascending integers; ``None`` if not evenly spaced."""
    if not all(isinstance(value, int) for value in values) or len(values) < 2:
        return None
    steps = {int(after) - int(before) for before, after in pairwise(values)}
    step = steps.pop()
    return step if not steps and step > 0 else None
