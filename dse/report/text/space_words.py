"""Formatting of a space's parameters and designs, with a list of parameters as one entry."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import assert_never

from dse.core.compound_parameters import Each, Partition, Permutation, Simplex, Structured, Subset
from dse.core.inspection.rule_conflicts import Rule
from dse.core.legal_set.size_estimate import Estimate
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.space import DesignSpace
from dse.core.values import Value
from dse.report import words

_LONG_DOMAIN = 8
"""Maximum number of values that are listed in full; of more, the first three and the last."""

_CELL = 10**12
_MANY_DIGITS = 10**45

_LEAST_SERIES = 5
"""Minimum number of values that are abbreviated as a series; fewer are listed in full."""


def value_text(value: Value, unit: str = "") -> str:
    """Return a parameter's value with its unit as text; the result is cached."""
    return _value_text(type(value).__name__, value, unit)


@cache
def _value_text(_: str, value: Value, unit: str) -> str:
    return words.value_text(value, unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """Parameter, or list of parameters, that one entry of a space file declares."""

    name: str
    members: tuple[Parameter, ...]
    form: Structured | None = None

    def text(self, design: Mapping[str, Value]) -> str:
        """Return the value of a space-file entry in a design as text; empty if it is inactive."""
        held = [m for m in self.members if m.name in design]
        if self.form is None:
            return value_text(design[held[0].name], held[0].unit) if held else ""
        if isinstance(self.form, Subset):
            pairs = zip(self.form.items, self.members, strict=True)
            words = [str(item) for item, member in pairs if design.get(member.name)]
        else:
            words = [value_text(design[member.name], member.unit) for member in held]
        return f"[{', '.join(words)}]" if held else ""

    @property
    def is_number(self) -> bool:
        """Whether the values of the space-file entry are numbers."""
        return self.form is None and not isinstance(self.members[0], Choice)

    @property
    def domain(self) -> str:
        """Legal values of the space-file entry, as text."""
        match self.form:
            case None:
                return domain_text(self.members[0])
            case Each():
                return f"{self.form.length} of: {domain_text(self.form.domain)}"
            case Permutation():
                return f"order of {_words(self.form.items)}"
            case Subset():
                several = self.form.counted_by or _span(self.form.least, self.form.most)
                return f"{several} of {_words(self.form.items)}"
            case Partition():
                parts = self.form.counted_by or _span(self.form.least, self.form.most)
                return f"a chain of {self.form.length} in {parts} parts"
            case Simplex():
                steps = f", in steps of 1/{self.form.steps}" if self.form.steps else ""
                return f"shares of {_words(self.form.items)}{steps}"
            case _:
                assert_never(self.form)


def entries(space: DesignSpace) -> tuple[Entry, ...]:
    """Return the parameters and lists of parameters as in the space file, in their order."""
    lists: dict[str, Entry] = {}
    for name, one in space.lists.items():
        members = tuple(space.by_name[node.name] for node in one.listing.nodes)
        entry = Entry(name=name, members=members, form=one)
        lists |= dict.fromkeys((member.name for member in members), entry)
    alone = {p.name: Entry(name=p.name, members=(p,)) for p in space.parameters}
    found = [lists.get(p.name, alone[p.name]) for p in space.parameters]
    return tuple({entry.name: entry for entry in found}.values())


def design_text(known: Sequence[Entry], design: Mapping[str, Value]) -> str:
    """Return a design as ``name=value`` pairs of its active entries."""
    words = ((entry.name, entry.text(design)) for entry in known)
    return "  ".join(f"{name}={word}" for name, word in words if word)


def domain_text(parameter: Parameter) -> str:
    """Return a parameter's legal values with the unit as text, abbreviated if there are many."""
    unit = parameter.unit
    match parameter:
        case Real():
            scale = ", log scale" if parameter.scale == "log" else ""
            return f"{value_text(parameter.low, unit)} .. {value_text(parameter.high, unit)}{scale}"
        case Integer():
            step = f" step {value_text(parameter.step, unit)}" if parameter.step != 1 else ""
            ends = f"{value_text(parameter.low, unit)} .. {value_text(parameter.high, unit)}"
            return ends + step
        case Ordinal():
            return _series(parameter) or shorten_list(
                [value_text(v, unit) for v in parameter.values]
            )
        case Choice():
            return shorten_list([value_text(value, unit) for value in parameter.values])


def _series(parameter: Ordinal) -> str:
    """Return a domain such as ``1 .. 64, doubling`` or ``0 .. 10, step 2``; else empty.

    The values must double or have equal steps.
    """
    values, unit = parameter.values, parameter.unit
    if len(values) < _LEAST_SERIES:
        return ""
    step = values[1] - values[0]
    pairs = list(pairwise(values))
    if values[0] > 0 and all(b == 2 * a for a, b in pairs):
        spacing = "doubling"
    elif all(math.isclose(b - a, step, rel_tol=1e-9) for a, b in pairs):
        spacing = f"step {value_text(step, unit)}"
    else:
        return ""
    return f"{value_text(values[0], unit)} .. {value_text(values[-1], unit)}, {spacing}"


def setting_text(parameter: Parameter, value: Value) -> str:
    """Return a parameter's value as an assignment: ``clock = 1.2 GHz``."""
    return f"{parameter.name} = {value_text(value, parameter.unit)}"


def rule_text(space: DesignSpace, rule: Rule, setting: str = "--set") -> str:
    """Return a rule with its source position: ``space.yaml:9: tp * pp == gpus``."""
    if rule.kind == "setting" and rule.value is not None:
        return f"{setting}: {setting_text(space.by_name[rule.parameter], rule.value)}"
    return f"{rule.where}: {rule.text}" if rule.where else rule.text


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 design``, ``12,000 designs``."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def big(number: int) -> str:
    """Return an integer as text with all digits; from 10^45 in scientific notation."""
    return f"{number:,}" if number < _MANY_DIGITS else short(number)


def short(number: int) -> str:
    """Return an integer short enough for a table cell: ``12,345``, ``4.24e24``."""
    if number < _CELL:
        return f"{number:,}"
    power = math.floor(math.log10(number))
    return f"{number // 10 ** (power - 2) / 100:.2f}e{power}"


def estimate_text(estimate: Estimate) -> str:
    """Return an estimated count with its confidence interval and upper bound, as text."""
    bound = f"at most {short(estimate.at_most)} for certain"
    legal = f"{estimate.hits:,} of {estimate.draws:,} draws were legal"
    if not estimate.hits:
        known = "one is known" if estimate.low else "none is known"
        return f"{bound}, {known}: {legal}"
    span = f"95 %: {short(estimate.low)} to {short(estimate.high)}"
    return f"about {short(estimate.count)} ({span}), {bound}: {legal}"


def shorten_list(words: Sequence[str]) -> str:
    """Return the items separated by commas; of many, the first three, the last and the count."""
    if len(words) <= _LONG_DOMAIN:
        return ", ".join(words)
    return f"{', '.join(words[:3])}, ... {words[-1]} ({len(words)} values)"


def _words(items: Sequence[Value]) -> str:
    return shorten_list([value_text(item) for item in items])


def _span(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
