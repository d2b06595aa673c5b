"""Builder that merges the entries of a space's files, each under its full dotted name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dse.core.compound_parameters import Structured
from dse.core.expressions.expression import Expression
from dse.core.expressions.list_rules import Listing, Table, expand_lists
from dse.core.parameter import Choice, Parameter, Real, size
from dse.errors import DseError, SpecError, nearest
from dse.schema.space.rules.exactness import check_exact_domain
from dse.schema.yaml.validation import MOST_REPORTED, ErrorCollector

MAX_PARAMETERS = 20_000
"""Maximum number of parameters; guards against nested includes that double with every level."""

MAX_VALUES = 10_000_000
"""Maximum total number of values of all domains."""


@dataclass(slots=True)
class SpaceBuilder:
    """Parameters, rules, compound parameters and data tables of a space under construction.

    All are keyed by full name, such as ``chip.rows`` for ``rows`` of the include ``chip``. Four
    mappings hold file locations: ``declared`` of each declaration, ``places`` of each rule,
    ``activated`` of each parameter's activity condition, and ``dropped`` of each ``drop:`` entry
    for a name of an extended file. ``lost`` are names whose declaration has an error. ``clouded``
    are prefixes of names that may be missing because of an error. Errors in rules that use either
    are not reported. ``before`` holds each parameter's earlier definitions, before ``fix``,
    ``narrow`` or replacement; rules and tables may still use their values. ``repeats`` explains, by
    table, why its first column is not a key.
    """

    mistakes: ErrorCollector = field(default_factory=ErrorCollector)
    parameters: dict[str, Parameter] = field(default_factory=dict)
    conditions: dict[str, Expression] = field(default_factory=dict)
    constraints: list[tuple[Expression, str]] = field(default_factory=list)
    lists: dict[str, Structured] = field(default_factory=dict)
    listings: dict[str, Listing] = field(default_factory=dict)
    data: dict[str, Table] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    repeats: dict[str, str] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    clouded: set[str] = field(default_factory=set)
    dropped: dict[str, str] = field(default_factory=dict)
    activated: dict[str, str] = field(default_factory=dict)
    before: dict[str, tuple[Parameter, ...]] = field(default_factory=dict)
    parts: int = 0
    values: int = 0

    def declare(self, name: str, where: str, hint: str = "") -> bool:
        """Reserve the name and return true; on a clash, record an error and return false.

        Args:
            name: the full name.
            where: the location of the declaration.
            hint: a hint that is added to the error of a clash.
        """
        if name in self.declared:
            problem = f"{name!r} is declared twice"
            first = f"first at {self.declared[name]}"
            error = SpecError(problem, where=where, hint=f"{first}; {hint}" if hint else first)
            self.mistakes.add(error)
            return False
        self.declared[name] = where
        return True

    def add(self, parameter: Parameter) -> None:
        """Add a parameter to the space; its name must have been declared before.

        Raises:
            SpecError: the parameter's integers are not exact, or the space has too many parameters
                or values.
        """
        check_exact_domain(parameter)
        self.values += 1 if isinstance(parameter, Real) else int(size(parameter))
        if len(self.parameters) >= MAX_PARAMETERS:
            raise SpecError(f"the space has more than {MAX_PARAMETERS:,} parameters")
        if self.values > MAX_VALUES:
            raise SpecError(f"the domains have more than {MAX_VALUES:,} values in all")
        self.parameters[parameter.name] = parameter

    def add_list(self, one: Structured) -> None:
        """Add a compound parameter with a declared name; its members are added separately."""
        self.lists[one.name] = one
        self.listings[one.name] = one.listing

    def activate(self, name: str, rule: Expression, where: str) -> None:
        """Set the activity condition of a parameter, stated at the file location ``where``."""
        self.conditions[name] = rule
        self.activated[name] = where
        self.places.setdefault(rule.text, where)

    def constrain(self, rules: Iterable[Expression], where: str) -> None:
        """Add constraints to the space, with their file location ``where``."""
        for rule in rules:
            self.constraints.append((rule, where))
            self.places.setdefault(rule.text, where)

    def expand(self, rule: Expression) -> Expression:
        """Return the rule with list members and table lookups expanded to scalar parameters.

        Raises:
            SpecError: the rule misuses lists or data.
        """
        try:
            return expand_lists(rule, self.listings, self.data)
        except SpecError as error:
            why = self.repeated(rule.text)
            if not why or "has no item" not in error.problem:
                raise
            hint = f"{why}; {error.hint}"
            raise SpecError(error.problem, where=error.where, hint=hint) from error

    def repeated(self, text: str) -> str:
        """Return why a table in the text cannot be looked up by its first column; else empty."""
        return next((why for name, why in self.repeats.items() if f"{name}[" in text), "")

    def hidden(self, name: str) -> bool:
        """Return whether a name may be declared in a section of a file that could not be read."""
        words = name.split(".")
        heads = [".".join(words[:count]) for count in range(1, len(words) + 1)]
        if any(head.partition("[")[0] in self.lost for head in heads):
            return True
        return any(name.startswith(prefix) for prefix in self.clouded)

    def _word(self, name: str) -> str:
        """Return a hint to quote the name if it is a value of a choice parameter; else empty."""
        word = name.rpartition(".")[2]
        choices = (one for one in self.parameters.values() if isinstance(one, Choice))
        return f"a word goes in quotes: '{word}'" if any(word in c.values for c in choices) else ""

    def unknown(self, name: str, rule: str) -> DseError:
        """Return the error for an undeclared name in the text of a rule, with similar names."""
        if len(self.mistakes.errors) >= MOST_REPORTED:
            hint = ""  # the error will not be shown, and finding similar names is slow
        elif name in self.dropped:
            hint = f"it was dropped at {self.dropped[name]}: drop the rule too"
        else:
            hint = (
                _meant(name)
                or self._word(name)
                or nearest(name, [*self.parameters, *self.lists, *self.data, *self.lost])
            )
        return SpecError(f"there is no {name!r} (in {rule!r})", hint=hint)


def _meant(name: str) -> str:
    """Return a Python constant such as ``True`` in the expression language; else empty."""
    if name in ("True", "False"):
        return f"write {name.lower()}"
    return "write 'x is absent' or 'x is not absent'" if name in ("None", "null") else ""
