"""From space files to the space: fragments included under their names, every rule checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from dse import dimensions, units
from dse.core.expression import Compare, Expression, Member, Name, Node, Text, children, names_in
from dse.core.parameter import Choice, Parameter, Real, describe
from dse.core.parser import RESERVED, parse
from dse.core.space import Space
from dse.errors import DesignError, SpecError, SpecErrors, nearest
from dse.schema.domains import Number, divided, parameter_of
from dse.schema.files import Files, resolved
from dse.schema.mistakes import Mistakes, model_of
from dse.schema.models import ParameterSpec, SpaceSpec
from dse.schema.source import Source, shown


@dataclass(slots=True)
class _Parts:
    """What the files say so far, under the names of the whole space."""

    mistakes: Mistakes = field(default_factory=Mistakes)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    conditions: dict[str, Expression] = field(default_factory=dict)
    constraints: list[Expression] = field(default_factory=list)
    places: dict[str, str] = field(default_factory=dict)


def space_of(path: Path, files: Files, *, named_at: str = "") -> Space:
    """The space that the file at ``path`` describes, with all that it includes.

    Raises:
        SpecErrors: with every mistake found in the files.
    """
    parts = _Parts()
    _read(path, "", (), parts, files, named_at)
    parts.mistakes.check()
    if not parts.parameters:
        raise SpecError("the space has no parameters", where=f"{shown(path)}:1")
    _check_rules(parts)
    parts.mistakes.check()
    space = Space(
        parameters=tuple(parts.parameters.values()),
        conditions=parts.conditions,
        constraints=tuple(parts.constraints),
        places=parts.places,
    )
    _check_not_empty(space, f"{shown(path)}:1")
    return space


def _read(
    path: Path,
    prefix: str,
    above: tuple[tuple[Path, str], ...],
    parts: _Parts,
    files: Files,
    named_at: str,
) -> None:
    circle = next((place for seen, place in above if seen == path), None)
    if circle is not None:
        parts.mistakes.add(
            SpecError(f"{shown(path)} includes itself", where=named_at, hint=f"first at {circle}")
        )
        return
    try:
        source = files.source(path, named_at=named_at)
        spec = model_of(SpaceSpec, source)
    except (SpecError, SpecErrors) as error:
        parts.mistakes.add(error)
        return
    stack = (*above, (path, named_at or source.place()))
    for name, file in spec.include.items():
        where = source.place(["include", name])
        _read(resolved(file, path), f"{prefix}{name}.", stack, parts, files, where)
    _add_parameters(spec, source, prefix, parts)
    _add_constraints(spec, source, prefix, parts)


def _add_parameters(spec: SpaceSpec, source: Source, prefix: str, parts: _Parts) -> None:
    for own, one in spec.parameters.items():
        where = source.place(["parameters", own])
        name = prefix + own
        if name in parts.parameters:
            problem = f"the parameter {name!r} is declared twice"
            parts.mistakes.add(
                SpecError(problem, where=where, hint=f"first at {parts.places[name]}")
            )
            continue
        if own in RESERVED or not all(word.isidentifier() for word in own.split(".")):
            hint = "letters, digits and '_', and no word of the expression language"
            parts.mistakes.add(SpecError(f"{own!r} is no name", where=where, hint=hint))
            continue
        parts.places[name] = where
        try:
            parts.parameters[name] = parameter_of(name, one, _numbers_in(parts, prefix))
            _add_divisor_rule(name, one, prefix, parts, where)
            if one.when is not None:
                rule = _rule(one.when, prefix)
                parts.conditions[name] = rule
                parts.places.setdefault(one.when, source.place(["parameters", own, "when"]))
        except SpecError as error:
            parts.mistakes.add(error, where)


def _numbers_in(parts: _Parts, prefix: str) -> Callable[[str], Sequence[Number]]:
    def numbers(name: str) -> Sequence[Number]:
        other = parts.parameters.get(prefix + name)
        if other is None or isinstance(other, Real | Choice):
            known = [n for n, p in parts.parameters.items() if not isinstance(p, Real | Choice)]
            raise SpecError(
                f"{name!r} is no whole-number parameter declared before", hint=nearest(name, known)
            )
        return other.values

    return numbers


def _add_divisor_rule(
    name: str, spec: ParameterSpec, prefix: str, parts: _Parts, where: str
) -> None:
    other = divided(spec)
    if other is not None:
        text = f"{prefix}{other} % {name} == 0"
        parts.constraints.append(parse(text))
        parts.places[text] = where


def _add_constraints(spec: SpaceSpec, source: Source, prefix: str, parts: _Parts) -> None:
    for place, text in enumerate(spec.constraints):
        where = source.place(["constraints", place])
        try:
            parts.constraints.append(_rule(text, prefix))
            parts.places[text] = where
        except SpecError as error:
            parts.mistakes.add(error, where)


def _rule(text: str, prefix: str) -> Expression:
    """The rule, over the whole space's names; it must be true or false, not a number.

    Raises:
        SpecError: the text is no expression, or is a number.
    """
    rule = parse(text)
    check_truth(rule)
    return rule.renamed(lambda name: prefix + name) if prefix else rule


def check_truth(rule: Expression) -> None:
    """Nothing, if the formula is true or false. Raises SpecError if it is a number."""
    kind = type(rule.node).__name__
    if kind in ("Number", "Text", "Binary", "Call") and "is_pow2" not in rule.text:
        raise SpecError(
            f"{rule.text!r} is no rule: it is neither true nor false",
            hint="compare it with something, such as '... <= 8'",
        )


def _check_rules(parts: _Parts) -> None:
    """Every name known, every unit fitting, every word a value of its choice; units folded in."""
    told = units_of(parts.parameters.values())
    for name, rule in list(parts.conditions.items()):
        checked = _checked(rule, parts, told)
        if checked is not None:
            parts.conditions[name] = checked
            real = sorted(n for n in rule.names if isinstance(parts.parameters.get(n), Real))
            if real and not isinstance(parts.parameters[name], Real):
                error = SpecError(
                    f"{name} cannot be active by the value of {real[0]}, a real parameter",
                    hint=f"give {real[0]} steps: an ordinal such as 'range(0 .. 1, 0.1)'",
                )
                parts.mistakes.add(error, parts.places[rule.text])
            if name in rule.names:
                error = SpecError(f"{name} cannot be the condition of itself")
                parts.mistakes.add(error, parts.places[rule.text])
    _check_no_circle(parts)
    parts.constraints = [
        checked for rule in parts.constraints if (checked := _checked(rule, parts, told))
    ]


def _checked(rule: Expression, parts: _Parts, told: Mapping[str, str]) -> Expression | None:
    where = parts.places.get(rule.text, "")
    try:
        check_names(rule, parts.parameters)
        dimensions.unit_of(rule, told)
        _check_words(rule.node, parts.parameters)
    except SpecError as error:
        parts.mistakes.add(error, where)
        return None
    return rule.resolved(units.factor)


def units_of(parameters: Iterable[Parameter]) -> dict[str, str]:
    """The unit of each parameter for :func:`dse.dimensions.unit_of`; words are ``text``."""
    return {
        p.name: dimensions.TEXT
        if isinstance(p, Choice) and any(isinstance(v, str) for v in p.values)
        else p.unit
        for p in parameters
    }


def check_names(rule: Expression, known: Mapping[str, object]) -> None:
    """Nothing, if every name is known. Raises SpecError for the first that is not."""
    for name in names_in(rule.node):
        if name.name not in known:
            raise SpecError(
                f"there is no {name.name!r} (in {rule.text!r})", hint=nearest(name.name, known)
            )


def _check_words(node: Node, parameters: Mapping[str, Parameter]) -> None:
    """A word that a choice is compared with must be one of its values."""
    if isinstance(node, Compare | Member):
        sides = node.operands if isinstance(node, Compare) else (node.item, *node.values)
        choices = [
            p
            for side in sides
            if isinstance(side, Name) and isinstance(p := parameters[side.name], Choice)
        ]
        for side in sides:
            for choice in choices:
                if isinstance(side, Text) and side.value not in choice.values:
                    raise SpecError(
                        f"{choice.name} is never {side.value!r}",
                        hint=nearest(side.value, [str(v) for v in choice.values]),
                    )
    for child in children(node):
        _check_words(child, parameters)


def _check_no_circle(parts: _Parts) -> None:
    state: dict[str, int] = {}

    def visit(name: str) -> bool:
        if state.get(name) == 1:
            return False
        if state.get(name) == 2 or name not in parts.conditions:
            return True
        state[name] = 1
        fine = all(visit(parent) for parent in sorted(parts.conditions[name].names - {name}))
        state[name] = 2
        return fine

    for name, rule in parts.conditions.items():
        if not visit(name):
            parts.mistakes.add(
                SpecError(f"the condition of {name} depends on {name} itself, through others"),
                parts.places.get(rule.text, ""),
            )
            return


def _check_not_empty(space: Space, where: str) -> None:
    """Nothing, if there is a legal design. Raises SpecError naming the rule that leaves none."""
    if _possible(space):
        return
    for count in range(1, len(space.constraints) + 1):
        first = Space(
            parameters=space.parameters,
            conditions=space.conditions,
            constraints=space.constraints[:count],
        )
        if not _possible(first):
            rule = space.constraints[count - 1]
            used = [f"{n}: {describe(space.by_name[n])}" for n in sorted(rule.names)]
            raise SpecError(
                f"no legal design is left once {rule.text!r} is to hold",
                where=space.places.get(rule.text, where),
                hint="; ".join(used),
            )
    raise SpecError("the space has no legal design", where=where)


def _possible(space: Space) -> bool:
    count = space.count()
    if count is not None:
        return count > 0
    try:
        return len(space.sample(1, np.random.default_rng(0))) > 0
    except DesignError:
        return False
