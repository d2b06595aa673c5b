"""Application of the ``fix`` and ``narrow`` entries of an include to the included parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dse.core.parameter import Parameter
from dse.errors import SpecError, nearest
from dse.schema.models import NAME_HINT, Scalar, is_name
from dse.schema.space.builder import SpaceBuilder
from dse.schema.space.file import Fragment, IncludeSpec, NarrowSpec, Stated
from dse.schema.space.parameters.generators import extract_dividend
from dse.schema.space.parameters.narrowing import fix_value, narrow_domain
from dse.schema.space.scope import Scope
from dse.schema.yaml.source import shown


@dataclass(slots=True, kw_only=True)
class Settlement:
    """Restriction of an included parameter: a ``fix`` value or a ``narrow`` subdomain.

    ``used`` is set once it has been applied; if it stays unset, no parameter has its name.
    """

    value: Scalar | list[Scalar] | NarrowSpec
    where: str
    scope: Scope
    used: bool = False

    def applied(self, parameter: Parameter) -> Parameter:
        """Return the parameter with its domain restricted to the value or subdomain.

        Raises:
            SpecError: the value or subdomain is not inside the domain, or does not suit it.
        """
        self.used = True
        if isinstance(self.value, NarrowSpec):
            dividend = extract_dividend(self.value.ordinal)
            if dividend is not None and self.scope.expand(dividend).names:
                raise SpecError(
                    f"{dividend!r} depends on parameters, but a narrowed domain must be constant",
                    hint=f"add the rule '({dividend}) % ... == 0' to the constraints",
                )
            return narrow_domain(parameter, self.value, self.scope)
        if isinstance(self.value, list):
            raise SpecError(f"{parameter.name} is one value, not a list of {len(self.value)}")
        return fix_value(parameter, self.value, self.scope)


Settled = dict[str, list[Settlement]]


def settled_in(
    name: str, stated: Stated[IncludeSpec], scope: Scope, outer: Mapping[str, list[Settlement]]
) -> tuple[Settled, Settled]:
    """Return the ``fix`` and ``narrow`` entries that apply to an included file's parameters.

    Both mappings are keyed by the names in the included file. The first has the restrictions that
    this include states; the second also has those stated by files further up the chain of includes.

    Args:
        name: the include's name.
        stated: the include.
        scope: the scope of the including file.
        outer: restrictions of the including file's names; ``chip.rows`` refers to ``rows`` of the
            include ``chip``.
    """
    spec, own = stated.value, Settled()
    for key, value in spec.fix.items():
        where = stated.at("fix", key)
        own.setdefault(key, []).append(Settlement(value=value, where=where, scope=scope))
    for key, part in spec.narrow.items():
        where = stated.at("narrow", key)
        own.setdefault(key, []).append(Settlement(value=part, where=where, scope=scope))
    every = {key: list(ones) for key, ones in own.items()}
    back = {new: old for old, new in spec.rename.items()}
    for key, ones in outer.items():
        head, dot, inner = key.partition(".")
        if head == name and dot:
            every.setdefault(rename_by_prefix(inner, back), []).extend(ones)
    return own, every


def rename_by_prefix(name: str, names: Mapping[str, str]) -> str:
    """Rename a dotted or indexed name by ``names``, which may map the name or a prefix of it."""
    if name in names:
        return names[name]
    for old, new in names.items():
        if name.startswith((f"{old}.", f"{old}[")):
            return new + name[len(old) :]
    return name


def check_settlements(
    settled: Settled,
    fragment: Fragment,
    full: Callable[[str], str],
    declared: Sequence[str],
    whole: SpaceBuilder,
) -> None:
    """Record an error for each ``fix`` or ``narrow`` of a name that the file does not declare.

    Args:
        settled: the restrictions (``fix``, ``narrow``) that the include states.
        fragment: the included file.
        full: maps a name in the file to its full name in the complete space.
        declared: the full names that the file declared.
        whole: the space builder that collects the errors.
    """
    for name, ones in settled.items():
        for one in ones:
            if one.used or whole.hidden(full(name)):
                continue
            if name in fragment.arguments:
                hint = f"it is an argument: 'with: {{{name}: ...}}'"
            else:
                prefix = full("")
                hint = nearest(name, [own.removeprefix(prefix) for own in declared])
            error = SpecError(f"{shown(fragment.path)} has no parameter {name!r}", hint=hint)
            whole.mistakes.add(error, one.where)


def check_renames(
    stated: Stated[IncludeSpec],
    full: Callable[[str], str],
    declared: Sequence[str],
    whole: SpaceBuilder,
) -> None:
    """Record an error for each invalid ``rename:`` entry, such as one of an unknown name."""
    taken: dict[str, str] = {}
    for old, new in stated.value.rename.items():
        where, name = stated.at("rename", old), full(old)
        there = any(own == name or own.startswith((f"{name}.", f"{name}[")) for own in declared)
        if not is_name(new):
            whole.mistakes.add(SpecError(f"{new[:60]!r} is no name", hint=NAME_HINT), where)
        elif new in taken:
            hint = f"first at {taken[new]}"
            whole.mistakes.add(SpecError(f"two names are changed to {new!r}", hint=hint), where)
        elif not there and not whole.hidden(name):
            prefix = full("")
            hint = nearest(old, [own.removeprefix(prefix) for own in declared])
            whole.mistakes.add(SpecError(f"there is no {old!r} to rename", hint=hint), where)
        taken.setdefault(new, where)
