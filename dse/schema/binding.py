"""Which parameter or metric each of an evaluator's readings is, and in what unit."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dse import dimensions, units
from dse.bound import Bound
from dse.core.design import base
from dse.core.expression import Expression
from dse.core.parameter import Integer, Parameter, Real, size
from dse.core.values import Value
from dse.errors import DseError, PluginError, SpecError, nearest
from dse.protocols import COHERENT, EVERYTHING, Evaluator
from dse.registry import check_options, load
from dse.schema.given import Given
from dse.schema.mistyped import mistyped
from dse.schema.models import EvaluatorSpec

_MOST_VALUES = 256
"""An evaluator is asked about so many whole numbers one by one, about more by their ends."""

_BETWEEN = 0.618
"""How far from a real's lower end it is asked, too: ends are often whole where few others are."""


def evaluator_of(spec: EvaluatorSpec, options: Mapping[str, Any]) -> Evaluator:
    """The evaluator that the file names, made with its options.

    Raises:
        PluginError: there is none, or it does not take these options.
        SpecError: an option's value is off.
    """
    plugin = load("evaluators", spec.use)
    check_options("evaluators", spec.use, plugin, options)
    try:
        made: Evaluator = plugin(**options)
    except DseError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        wrong = mistyped(plugin, options)
        if wrong is None:
            raise PluginError(f"the evaluator {spec.use!r} refuses its options: {error}") from error
        option, kind = wrong
        raise PluginError(
            f"the option {option!r} of {spec.use!r} cannot be {options[option]!r}",
            hint=f"its type is {kind}",
            part=[option],
        ) from error
    return made


def bound_of(
    name: str,
    evaluator: Evaluator,
    bind: Mapping[str, str],
    known: Mapping[str, str],
    *,
    parameters: Collection[str],
) -> Bound:
    """The evaluator with each reading bound to a name of the study.

    A reading is bound by ``bind``, else to what has exactly its name, else to the one parameter
    whose last word it is (``rows`` to ``chip.rows``). One that is a list (``bits``) is bound
    member by member (``bits[0]`` to ``compress.bits[0]``).

    Args:
        name: the evaluator's name in the study.
        evaluator: the plug-in.
        bind: what the user says.
        known: the unit of every parameter and metric of the study.
        parameters: the names that are parameters: what "everything" means.

    Raises:
        SpecError: a reading is unknown, ambiguous, missing, or in a unit that does not fit.
    """
    readings = evaluator.reads | evaluator.optional
    for reading in bind:
        if reading not in readings and EVERYTHING not in readings:
            raise SpecError(
                f"{name} reads no {reading!r}", hint=nearest(reading, readings - {EVERYTHING})
            )
    names: dict[str, str] = {}
    if EVERYTHING in readings:
        names |= {full: full for full in parameters}
    lists = _lists(parameters)
    for reading in sorted(readings - {EVERYTHING}):
        full = _found(name, reading, bind, {**known, **dict.fromkeys(lists, "")})
        if full in lists:
            names |= {f"{reading}{key}": f"{full}{key}" for key in lists[full]}
        elif full is not None:
            names[reading] = full
        elif reading in evaluator.reads:
            raise SpecError(
                f"{name} needs {reading!r}, which the space does not have",
                hint=f"declare it, give '{reading}: ...' as an option, or 'bind: "
                f"{{{reading}: ...}}' ({nearest(reading, known)})",
                part=_told_in(evaluator, reading),
            )
    factors = {
        own: _factor(name, own, evaluator.units[base(own)], full, known[full])
        for own, full in names.items()
        if base(own) in evaluator.units
    }
    return Bound(name=name, evaluator=evaluator, names=names, factors=factors)


def _told_in(evaluator: Evaluator, reading: str) -> tuple[str, ...]:
    """The option that makes an evaluator read this, where it is a formula."""
    formulas: Mapping[str, Expression] = getattr(evaluator, "formulas", {})
    return next((("metrics", own) for own, one in formulas.items() if reading in one.names), ())


def _lists(parameters: Collection[str]) -> dict[str, list[str]]:
    """The lists among the parameters, each with the keys of its members: ``[0]``, ``[1]``."""
    found: dict[str, list[str]] = {}
    for full in parameters:
        if base(full) != full:
            found.setdefault(base(full), []).append(full.removeprefix(base(full)))
    return found


def check_formulas(name: str, evaluator: Evaluator, known: Mapping[str, str]) -> None:
    """Nothing, if each formula of an evaluator that has some gives the unit that it declares.

    Raises:
        SpecError: one does not, or its own units do not fit together.
    """
    formulas: Mapping[str, Expression] = getattr(evaluator, "formulas", {})
    for own, formula in formulas.items():
        if not formula.names <= known.keys():
            continue  # told when the reading is bound
        found = dimensions.unit_of(formula, known)
        declared = evaluator.provides[own].unit
        if not units.same_dimension(found, declared):
            raise SpecError(
                f"{name}.{own} is declared in {declared or 'no unit'}, "
                f"but {formula.text!r} is in {found or 'no unit'}",
                hint=f"declare 'unit: {found}'" if found else "leave its unit out",
                part=["metrics", own],
            )


def check_values(bound: Bound, parameters: Mapping[str, Parameter]) -> None:
    """Nothing, if the evaluator could be run on all values that its readings can take.

    Raises:
        SpecError: it says that it could not.
    """
    evaluator = bound.evaluator
    given: dict[str, Sequence[Value]] = {}
    if isinstance(evaluator, Given):
        given = {own: (value,) for own, value in evaluator.values.items()}
        evaluator = evaluator.evaluator
    if hasattr(evaluator, "check_values"):
        read = {own: full for own, full in bound.names.items() if full in parameters}
        evaluator.check_values(given | {own: _some(parameters[full]) for own, full in read.items()})


def _some(parameter: Parameter) -> Sequence[Value]:
    """All values of the parameter, or both ends where they are too many; a real's also between."""
    if isinstance(parameter, Real):
        between = parameter.low + _BETWEEN * (parameter.high - parameter.low)
        return parameter.low, between, parameter.high
    if isinstance(parameter, Integer) and size(parameter) > _MOST_VALUES:
        return parameter.low, parameter.high
    return parameter.values


def _found(
    name: str, reading: str, bind: Mapping[str, str], known: Mapping[str, str]
) -> str | None:
    wanted = bind.get(reading)
    if wanted is not None:
        if wanted not in known:
            raise SpecError(
                f"{name} is to read {wanted!r}, which there is not", hint=nearest(wanted, known)
            )
        return wanted
    if reading in known:
        return reading
    ending = [full for full in known if full.endswith(f".{reading}")]
    if len(ending) > 1:
        raise SpecError(
            f"{name} reads {reading!r}, and {' and '.join(sorted(ending))} end so",
            hint=f"say which: 'bind: {{{reading}: {min(ending)}}}'",
        )
    return ending[0] if ending else None


def _factor(name: str, own: str, wanted: str, full: str, told: str) -> float:
    if told == dimensions.TEXT:
        raise SpecError(f"{name} reads {own!r} as a number, but {full} is a word")
    if wanted == COHERENT:
        return units.factor(told)
    if not units.same_dimension(told, wanted):
        raise SpecError(
            f"{name} reads {own!r} in {wanted or 'a bare number'}, "
            f"but {full} is in {told or 'a bare number'}",
            hint=f"give {full} a unit such as {wanted}" if wanted else f"give {full} no unit",
        )
    return units.factor(told) / units.factor(wanted)
