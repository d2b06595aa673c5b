"""Check for unused parameters: an error, unless the study lists them under ``unread``."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from dse.core.design import base
from dse.core.space import DesignSpace
from dse.errors import DseError, SpecError, nearest
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import EVERYTHING
from dse.registry import load, options_of
from dse.schema.models import StudySpec
from dse.schema.study.fixed_inputs import reads_any
from dse.schema.yaml.source import SourceDocument

_SHOWN = 4
"""Maximum number of parameters of a fragment that a message lists."""


@dataclass(frozen=True, kw_only=True)
class Readers:
    """Search for parameters of a study that nothing uses.

    A list counts as one parameter. A parameter that no evaluator and no formula reads is still used
    if rules of the space connect it to one that is read: ``gpus`` in ``tp * pp * dp == gpus``.

    Args:
        spec: the study file.
        source: its document, for the line numbers of errors.
        space: the study's space.
        space_file: the document of the space, for the line numbers of its includes.
        bound: the study's evaluators.
        formulas: the names in objectives and constraints.
        made: function that creates an evaluator with one option changed, or removed.
    """

    spec: StudySpec
    source: SourceDocument
    space: DesignSpace
    bound: Sequence[Bound]
    formulas: Collection[str]
    made: Callable[[str, str, Mapping[str, object]], Any]
    space_file: SourceDocument

    def mistakes(self) -> Iterator[SpecError]:
        """Yield an error for each parameter of the space that the study does not read.

        An option that has the name of a parameter, which the evaluator thus ignores, is an error
        too.
        """
        yield from self._odd_names()
        meant = set(self.spec.unread)
        unread = [name for name in self._unread if not _prefixes(name) & meant]
        for group, names in self._group_names(unread).items():
            if group in self._includes:
                yield self._unread_fragment(group, names)
            else:
                yield from map(self._unread_parameter, names)
        for name, option in self._hiding:
            if option not in unread and not {f"{name}.{option}", option} & meant:
                yield self._hidden(name, option)

    @cached_property
    def _includes(self) -> Mapping[str, str]:
        """File and line of each include in the space file, by the name of the include."""
        included = self.space_file.value.get("include") or ()
        return {name: self.space_file.place(["include", name]) for name in included}

    @cached_property
    def _owner(self) -> Mapping[str, str]:
        """Name of the list of each parameter that is a member of one, by parameter."""
        return {one.name: name for name, own in self.space.lists.items() for one in own.members}

    def _owners(self, names: Iterable[str]) -> frozenset[str]:
        return frozenset(self._owner.get(name, name) for name in names)

    @cached_property
    def _parameters(self) -> Sequence[str]:
        """Names of the declared parameters; a list counts as one name."""
        return list(dict.fromkeys(self._owner.get(p.name, p.name) for p in self.space.parameters))

    @cached_property
    def _direct(self) -> frozenset[str]:
        """Parameters that an evaluator reads or that a formula of the study uses."""
        names = {name for one in self.bound for name in one.names.values()}
        return self._owners({*names, *self.formulas})

    @cached_property
    def _tied(self) -> frozenset[str]:
        """Parameters that evaluators or formulas read, or that constraints connect to those.

        The connection may be indirect. If a parameter is used, those in its activity condition are
        used too, but not the reverse: a parameter that exists only for int4 is not used because
        ``format`` is.
        """
        ties = [self._owners(rule.names) for rule in self.space.constraints]
        guards: dict[str, frozenset[str]] = {}
        for guarded, condition in self.space.conditions.items():
            name = self._owner.get(guarded, guarded)
            guards[name] = guards.get(name, frozenset()) | self._owners(condition.names)
        reached, waiting = set[str](), list(self._direct)
        by_name: dict[str, list[frozenset[str]]] = {}
        for tie in ties:
            for name in tie:
                by_name.setdefault(name, []).append(tie)
        while waiting:
            name = waiting.pop()
            if name not in reached:
                reached.add(name)
                waiting += [other for tie in by_name.pop(name, ()) for other in tie]
                waiting += guards.get(name, ())
        return frozenset(reached)

    @cached_property
    def _options(self) -> Mapping[str, Collection[str]]:
        """Options that each evaluator's constructor accepts, by evaluator."""
        specs = self.spec.evaluators.items()
        return {name: options_of(load("evaluators", one.use)) for name, one in specs}

    @cached_property
    def _unread(self) -> Sequence[str]:
        """Unused parameters.

        A parameter that only constraints use counts as unused if an evaluator has an option of its
        name.
        """
        options = {option for own in self._options.values() for option in own}
        return [
            name
            for name in self._parameters
            if name not in self._tied or (name in options and name not in self._direct)
        ]

    @cached_property
    def _hiding(self) -> Sequence[tuple[str, str]]:
        """Pairs (evaluator, option) with the name of a parameter that the evaluator ignores."""
        found = []
        for one in self.bound:
            stated = self.spec.evaluators[one.name].options
            reads = self._owners(one.names.values())
            found += [(one.name, o) for o in stated if o in self._parameters and o not in reads]
        return list(dict.fromkeys(found))

    def _group_names(self, unread: Sequence[str]) -> Mapping[str, list[str]]:
        """Group unused parameters by the outermost include whose parameters are all unused.

        A parameter outside of such an include is a group of its own, under its own name.
        """
        whole = {
            prefix
            for name in unread
            for prefix in _prefixes(name) - {name}
            if all(n in unread for n in self._parameters if n.startswith(f"{prefix}."))
        }
        groups: dict[str, list[str]] = {}
        for name in unread:
            group = min(_prefixes(name) & whole, key=len, default=name)
            groups.setdefault(group, []).append(name)
        return groups

    def _unread_fragment(self, group: str, names: Sequence[str]) -> SpecError:
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        return SpecError(
            f"nothing reads a parameter of {group!r}: {', '.join(names[:_SHOWN])}{more}",
            where=self._includes[group],
            hint=f"leave it out of 'include', name an evaluator that reads it, or write "
            f"{self._meant(group)}",
        )

    def _unread_parameter(self, name: str) -> SpecError:
        word = name.rpartition(".")[2]
        holders = [own for own, options in self._options.items() if word in options]
        mend = self._mend_option(holders[0], word, name) if holders else self._mend_reading(name)
        return SpecError(
            f"nothing reads the parameter {name!r}: its value has no effect on any metric",
            where=self.space.places.get(name, ""),
            hint=f"{mend}; if it is intended, write {self._meant(name)}",
        )

    def _mend_option(self, evaluator: str, option: str, name: str) -> str:
        sentence = f"{option!r} is an option of {evaluator}, with one value for all designs"
        way = self._way(evaluator, option, name)
        if way:
            return f"{sentence}: {way}"
        return (
            f"{sentence}: remove the parameter and write '{option}: ...' there; to compare "
            "several values, use one evaluator for each, or scenarios"
        )

    def _way(self, evaluator: str, option: str, name: str) -> str:
        """Return a hint on how to make an evaluator read the parameter; empty if impossible."""
        braces = f"{{{name}}}"
        if self._reads(evaluator, option, {option: braces}, name):
            return f"write '{option}: \"{braces}\"' there to use the value of each design"
        stated = option in self.spec.evaluators[evaluator].options
        if stated and self._reads(evaluator, option, {}, option):
            return f"remove the option, so that {evaluator} reads the parameter"
        if self._reads(evaluator, option, {option: None}, option):
            return f"write '{option}: null' there, so that {evaluator} reads the parameter"
        return ""

    def _reads(self, evaluator: str, option: str, stated: Mapping[str, object], name: str) -> bool:
        try:
            return reads_any(self.made(evaluator, option, stated), name)
        except (DseError, TypeError, ValueError, AttributeError):
            return False  # the option is not text, or is required

    def _mend_reading(self, name: str) -> str:
        free = {
            reading: one.name
            for one in self.bound
            for reading in sorted(one.evaluator.reads | one.evaluator.optional)
            if reading != EVERYTHING and reading not in {base(own) for own in one.names}
        }
        near = nearest(name.rpartition(".")[2], free)
        reading = next((own for own in free if near.startswith(f"did you mean {own!r}")), None)
        if reading is not None:
            own = free[reading]
            return (
                f"did you mean {reading!r}, which {own} reads? 'bind: {{{reading}: {name}}}' "
                f"under {own} works too"
            )
        evaluators = ", ".join(
            f"{one.label} reads {_list_names(self._read_by(one))}" for one in self.bound
        )
        return f"leave it out, or name an evaluator or a rule that reads it ({evaluators})"

    def _read_by(self, one: Bound) -> list[str]:
        return sorted(self._owners(one.names.values()) & {*self._parameters})

    def _hidden(self, evaluator: str, option: str) -> SpecError:
        way = self._way(evaluator, option, option)
        return SpecError(
            f"{option!r} is both an option of {evaluator} and a parameter of the space, and "
            f"{evaluator} does not read the parameter",
            where=self.source.place(["evaluators", evaluator, option]),
            hint=f"{way or 'rename one of them'}; if one value for all designs is "
            f"intended, write {self._meant(f'{evaluator}.{option}')}",
        )

    def _meant(self, name: str) -> str:
        """Return a hint: the ``unread`` entry that declares the parameter as unused on purpose."""
        in_python = self.source.lines is None
        return f'unread=["{name}"]' if in_python else f"'unread: [{name}]' in the study"

    def _odd_names(self) -> Iterator[SpecError]:
        """Yield an error for each name under ``unread`` that does not exist, or is in fact read."""
        hiding = {f"{name}.{option}" for name, option in self._hiding}
        known = {prefix for name in self._parameters for prefix in _prefixes(name)} | hiding
        for place, name in enumerate(self.spec.unread):
            where = self.source.place(["unread", place])
            if name not in known:
                hint = nearest(name, known)
                yield SpecError(f"there is no parameter {name!r}", where=where, hint=hint)
            elif name in self._direct and name not in {option for _, option in self._hiding}:
                by = [one.label for one in self.bound if name in self._owners(one.names.values())]
                who = " and ".join(by) or "a formula of the study"
                problem = f"{name!r} is listed as unread, but {who} reads it"
                yield SpecError(problem, where=where, hint="remove it from the list")


def _prefixes(name: str) -> set[str]:
    """Return the name and all its dotted prefixes: ``a.b.c``, ``a.b``, ``a``."""
    words = name.split(".")
    return {".".join(words[: end + 1]) for end in range(len(words))}


def _list_names(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}" if names else "no parameter"
