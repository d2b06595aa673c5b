"""Binding of an evaluator's inputs to the study's parameters and metrics, with unit conversion."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from dse.core.design import base
from dse.core.parameter import Integer, Parameter, Real, size
from dse.core.values import Value
from dse.errors import DseError, PluginError, SpecError, SpecErrors, nearest, raise_all
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import (
    COHERENT,
    EVERYTHING,
    ChecksValues,
    Evaluator,
    formulas_of,
    written_formulas_of,
)
from dse.registry import check_options, load, options_of, required
from dse.schema.models import EvaluatorSpec
from dse.schema.space.rule_parser import check_keys, check_words
from dse.schema.study.fixed_inputs import FixedInputs
from dse.schema.study.objectives import SymbolTable
from dse.schema.yaml.option_types import find_mistyped_option
from dse.schema.yaml.validation import HiddenError
from dse.units import dimensions, units

_MOST_VALUES = 256
"""Size of an integer parameter up to which an evaluator checks all values, not just both ends."""

_FEW = 12
"""Maximum number of known names that a message lists when none is similar to the wrong one."""

_BETWEEN = 0.618
"""Position of the inner value checked of a real parameter: its ends are often whole numbers."""


def evaluator_of(spec: EvaluatorSpec, options: Mapping[str, Any]) -> Evaluator:
    """Construct the evaluator plug-in that a study file names, with its options.

    Raises:
        PluginError: there is no such evaluator, or it does not take these options.
        SpecError: an option's value is invalid.
        SpecErrors: the values of several options are invalid.
    """
    made, errors = repaired_evaluator(spec, options)
    raise_all(errors)
    assert made is not None
    return made


def repaired_evaluator(
    spec: EvaluatorSpec, options: Mapping[str, Any]
) -> tuple[Evaluator | None, list[DseError]]:
    """Construct an evaluator without its invalid options; return the evaluator and all errors.

    Each attempt leaves out the options that the last one found invalid, so that errors in other
    options are found too. The evaluator is ``None`` if it cannot be constructed without them. An
    error that mentions a removed option may be due to its removal, and ends the search.
    """
    errors: list[DseError] = []
    try:
        plugin = load("evaluators", spec.use)
    except DseError as error:
        return None, [error]
    known, needed, rest = options_of(plugin), required(plugin), dict(options)
    try:
        check_options("evaluators", spec.use, plugin, options)
    except DseError as error:
        errors += error.errors if isinstance(error, SpecErrors) else [error]
        rest = {name: value for name, value in options.items() if name in known}
        if not rest.keys() >= set(needed):
            return None, errors
    left: set[str] = options.keys() - rest.keys()
    for _ in range(len(options) + 1):
        try:
            return _made_with(plugin, spec.use, rest), errors
        except DseError as error:
            problems = error.errors if isinstance(error, SpecErrors) else (error,)
            inner = [_with_part(one, plugin, spec.use, rest) for one in problems]
            if any(option in f"{one.problem} {one.hint}" for one in inner for option in left):
                break
            errors += inner
            off = [one.part[:2] for one in inner if one.part and one.part[0] in rest]
            rest = _without_parts(rest, off)
            if not off or not rest.keys() >= set(needed):
                break
            left |= {str(words[-1]) for words in off}
    return None, errors


def _with_part(error: DseError, plugin: Any, use: str, options: Mapping[str, Any]) -> DseError:
    """Return a constructor's error with the name of the option that causes it.

    The cause is an option without which the constructor does not raise that error.
    """
    if error.part and error.part[0] in options:
        return error
    for option in options.keys() - set(required(plugin)):
        try:
            _made_with(plugin, use, {k: one for k, one in options.items() if k != option})
        except DseError as other:
            if other.problem == error.problem:
                continue
        problem = error.problem if option in error.problem else f"{option}: {error.problem}"
        return type(error)(problem, where=error.where, hint=error.hint, part=[option])
    return error


def _without_parts(
    options: Mapping[str, Any], off: Collection[Sequence[str | int]]
) -> dict[str, Any]:
    """Return the options without invalid ones; from a mapping, only its invalid key is removed."""
    rest = dict(options)
    for part in off:
        option, entry = str(part[0]), part[1:]
        value = rest.get(option)
        inner = isinstance(value, Mapping) and bool(entry) and entry[0] in value and len(value) > 1
        if inner:
            rest[option] = {key: one for key, one in rest[option].items() if key != entry[0]}
        else:
            rest.pop(option, None)
    return rest


def _made_with(plugin: Any, use: str, options: Mapping[str, Any]) -> Evaluator:
    try:
        made: Evaluator = plugin(**options)
    except DseError as error:
        if not error.part and not isinstance(error, SpecErrors):
            error.part = _find_option(
                error.problem, {key: options[key] for key in required(plugin)}
            )
        raise
    except (TypeError, ValueError, AttributeError) as error:
        wrong = find_mistyped_option(plugin, options)
        if wrong is None:
            raise PluginError(f"the evaluator {use!r} refuses its options: {error}") from error
        option, kind = wrong
        raise PluginError(
            f"the option {option!r} of {use!r} cannot be {options[option]!r}",
            hint=f"its type is {kind}",
            part=[option],
        ) from error
    return made


def _find_option(problem: str, options: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the option that an error message names, or whose value it quotes."""
    words = re.findall(r"[\w-]+", problem)
    named = next((word for word in words if word in options), None)
    if named is None:  # the message may quote the value instead
        shown = [(problem.find(repr(value)), key) for key, value in options.items()]
        named = min([one for one in shown if one[0] >= 0], default=(0, None))[1]
    return () if named is None else (named,)


def bound_of(
    name: str,
    evaluator: Evaluator,
    bind: Mapping[str, str],
    known: Mapping[str, str],
    *,
    parameters: Collection[str],
) -> Bound:
    """Return the evaluator with each of its inputs bound to a parameter or metric of the study.

    An input is bound by ``bind``, else to the same name, else to the only name that ends with it
    (``rows`` to ``chip.rows``). A list (``bits``) is bound member by member (``bits[0]`` to
    ``compress.bits[0]``).

    Args:
        name: the evaluator's name in the study.
        evaluator: the plug-in.
        bind: the user's bindings, from inputs to names of the study.
        known: the unit of every parameter and metric of the study.
        parameters: the names of the parameters, all of which an input of ``EVERYTHING`` reads.

    Raises:
        SpecError: an input is unknown, ambiguous, missing, or has a unit that does not match.
        SpecErrors: several inputs have errors.
    """
    readings = evaluator.reads | evaluator.optional
    errors: list[DseError] = [
        SpecError(
            f"{name} reads no {reading!r}",
            hint=nearest(reading, readings - {EVERYTHING}),
            part=("bind", reading),
        )
        for reading in bind
        if reading not in readings and EVERYTHING not in readings
    ]
    names, lists = {one: one for one in parameters if EVERYTHING in readings}, _lists(parameters)
    for reading in sorted(readings - {EVERYTHING}):
        try:
            full = _resolve_input(name, reading, bind, known, lists)
            if full is None and reading in evaluator.reads:
                raise _build_missing_error(name, reading, evaluator, known)
        except SpecError as error:
            errors.append(error)
            continue
        if full in {f"{name}.{own}" for own in evaluator.provides}:
            problem = f"{name} reads {full!r}, which it reports itself"
            errors.append(SpecError(problem, part=_find_formula(evaluator, reading)))
        keys = lists.get(full or "", [""])
        names |= {f"{reading}{key}": f"{full}{key}" for key in keys if full is not None}
    factors: dict[str, float] = {}
    for own in [own for own in names if base(own) in evaluator.units]:
        full = names[own]
        if known[full] == dimensions.TEXT and formulas_of(evaluator):
            continue  # text, which a formula may compare
        try:
            factors[own] = _factor(name, own, evaluator.units[base(own)], full, known[full])
        except SpecError as error:
            errors.append(error)
    raise_all(errors)
    return Bound(name=name, evaluator=evaluator, names=names, factors=factors)


def _build_missing_error(
    name: str, reading: str, evaluator: Evaluator, known: Mapping[str, str]
) -> SpecError:
    """Return the error for a required input that is neither a parameter nor a metric."""
    if isinstance(known, SymbolTable) and known.hides(reading):
        return HiddenError(reading)
    close = nearest(reading, known)
    near = f" ({close})" if close.startswith("did you mean") or len(known) <= _FEW else ""
    return SpecError(
        f"{name} needs {reading!r}, which the space does not have",
        hint=f"declare it, give '{reading}: ...' as an option, or 'bind: {{{reading}: ...}}'{near}",
        part=_find_formula(evaluator, reading) or ("reads",),
    )


def _find_formula(evaluator: Evaluator, reading: str) -> tuple[str, ...]:
    """Return the option path of the evaluator's formula that reads this input; else ``""``."""
    return next(
        (("metrics", own) for own, one in formulas_of(evaluator).items() if reading in one.names),
        (),
    )


def _lists(parameters: Collection[str]) -> dict[str, list[str]]:
    """Return the members' suffixes of each list of parameters: ``{'bits': ['[0]', '[1]']}``."""
    found: dict[str, list[str]] = {}
    for full in parameters:
        if base(full) != full:
            found.setdefault(base(full), []).append(full.removeprefix(base(full)))
    return found


def check_formulas(
    name: str,
    evaluator: Evaluator,
    known: Mapping[str, str],
    parameters: Mapping[str, Parameter],
) -> None:
    """Check the units of an evaluator's formulas, and the values compared with parameters in them.

    Args:
        name: the evaluator's name in the study.
        evaluator: the plug-in, with list members and lookups in its formulas expanded.
        known: the unit of each name; formulas that read other names are skipped.
        parameters: the parameters among the names.

    Raises:
        SpecError: a formula has another unit than declared, mixes units, or compares a parameter
            with a value that it cannot take.
        SpecErrors: several formulas have errors.
    """
    errors: list[DseError] = []
    for own, formula in written_formulas_of(evaluator).items():
        if not formula.names <= known.keys():
            continue  # reported when the input is bound
        part = ["metrics", own]
        try:
            found = dimensions.unit_of(formula, known)
            check_words(formula.node, parameters)
            check_keys(formula.node, parameters)
        except SpecError as error:
            errors.append(SpecError(f"{name}.{own}: {error.problem}", hint=error.hint, part=part))
            continue
        declared = evaluator.provides[own].unit
        if not units.same_dimension(found, declared):
            problem = (
                f"{name}.{own} is declared in {declared or 'no unit'}, "
                f"but {formula.text!r} is in {found or 'no unit'}"
            )
            hint = f"declare 'unit: {found}'" if found else "leave its unit out"
            errors.append(SpecError(problem, hint=hint, part=part))
    raise_all(errors)


def check_values(bound: Bound, parameters: Mapping[str, Parameter]) -> None:
    """Call the evaluator's own check, if any, with values that its inputs can take.

    Raises:
        SpecError: the evaluator rejects a value.
    """
    evaluator = bound.evaluator
    given: dict[str, Sequence[Value]] = {}
    if isinstance(evaluator, FixedInputs):
        given = {own: (value,) for own, value in evaluator.values.items()}
        evaluator = evaluator.evaluator
    if isinstance(evaluator, ChecksValues):
        read = {own: full for own, full in bound.names.items() if full in parameters}
        evaluator.check_values(given | {own: _some(parameters[full]) for own, full in read.items()})


def _some(parameter: Parameter) -> Sequence[Value]:
    """Return values of a parameter to check: all, or only some if they are too many.

    For a real parameter these are both bounds and a value between them, for a large range of
    integers both bounds.
    """
    if isinstance(parameter, Real):
        between = parameter.low + _BETWEEN * (parameter.high - parameter.low)
        return parameter.low, between, parameter.high
    if isinstance(parameter, Integer) and size(parameter) > _MOST_VALUES:
        return parameter.low, parameter.high
    return parameter.values


def _resolve_input(
    name: str,
    reading: str,
    bind: Mapping[str, str],
    known: Mapping[str, str],
    lists: Collection[str],
) -> str | None:
    names = {*known, *lists}
    wanted = bind.get(reading)
    if wanted is not None:
        if wanted in names:
            return wanted
        if isinstance(known, SymbolTable) and known.hides(wanted):
            raise HiddenError(wanted)
        raise SpecError(
            f"{name} is bound to {wanted!r}, which does not exist",
            hint=nearest(wanted, names),
            part=("bind", reading),
        )
    if reading in names:
        return reading
    ending = sorted(full for full in names if full.endswith(f".{reading}"))
    if len(ending) > 1:
        raise SpecError(
            f"{name} reads {reading!r}, which may be {' or '.join(ending)}",
            hint=f"choose one: 'bind: {{{reading}: {ending[0]}}}'",
        )
    return ending[0] if ending else None


def _factor(name: str, own: str, wanted: str, full: str, stated: str) -> float:
    if stated == dimensions.TEXT:
        raise SpecError(f"{name} reads {own!r} as a number, but {full} is text")
    if wanted == COHERENT:
        return units.factor(stated)
    if not units.same_dimension(stated, wanted):
        raise SpecError(
            f"{name} reads {own!r} in {wanted or 'a bare number'}, "
            f"but {full} is in {stated or 'a bare number'}",
            hint=f"give {full} a unit such as {wanted}" if wanted else f"give {full} no unit",
            part=("units", own),
        )
    return units.factor(stated) / units.factor(wanted)
