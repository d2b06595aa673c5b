"""A space stated twice: as a YAML file for us, and as plain Python that every peer can read."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

Setting = bool | int | float | str
Row = tuple[Setting | None, ...]
"""One design: a value for every parameter in order, ``None`` where it is absent."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What is legal, in a form that is not ours.

    ``rules`` are Python expressions over the parameters' names, in which a parameter that is absent
    is ``None``. ``guards`` say when a parameter exists: while each of its parents has one of the
    values named. ``designs`` is the number of legal designs, published or counted by other means
    than any tool that is compared here.
    """

    name: str
    file: str
    source: str
    domains: Mapping[str, Sequence[Setting]]
    rules: Sequence[str] = ()
    guards: Mapping[str, Mapping[str, Sequence[Setting]]] = field(default_factory=dict)
    arguments: Mapping[str, Setting] = field(default_factory=dict)
    designs: Callable[[], int]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The parameters in order."""
        return tuple(self.domains)

    def choices(self, name: str) -> list[Setting | None]:
        """The parameter's values, and ``None`` for absence where it can be absent."""
        absent: list[Setting | None] = [None] if name in self.guards else []
        return [*self.domains[name], *absent]

    @cached_property
    def all_rules(self) -> tuple[str, ...]:
        """The rules, and one for each guard that ties absence to the parents' values."""
        guards = [f"({name} is None) != ({guard_text(g)})" for name, g in self.guards.items()]
        return (*guards, *self.rules)

    @cached_property
    def names_of(self) -> Mapping[str, tuple[str, ...]]:
        """The parameters that each rule reads, in their order."""
        return {rule: tuple(n for n in self.names if n in _words(rule)) for rule in self.all_rules}

    @cached_property
    def combinations(self) -> int:
        """How many combinations of values there are before the rules."""
        total = 1
        for name in self.names:
            total *= len(self.choices(name))
        return total

    def function(self, rules: Sequence[str], names: Sequence[str]) -> Callable[..., Any]:
        """The conjunction of rules as a function of these parameters."""
        body = " and ".join(f"({rule})" for rule in rules) or "True"
        made: Callable[..., Any] = eval(f"lambda {', '.join(names)}: {body}")
        return made

    @cached_property
    def legal(self) -> Callable[..., Any]:
        """All rules as one function of all parameters, in order."""
        return self.function(self.all_rules, self.names)


def guard_text(guard: Mapping[str, Sequence[Setting]]) -> str:
    """The guard as a Python expression."""
    return " and ".join(f"{parent} in {tuple(values)!r}" for parent, values in guard.items())


def _words(rule: str) -> set[str]:
    return {
        node.id for node in ast.walk(ast.parse(rule, mode="eval")) if isinstance(node, ast.Name)
    }
