"""Tables of a space: parameters, rules, parameters coupled by rules, and number of designs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.markup import escape

from dse.core.inspection.counts import RuleGroup
from dse.core.inspection.rule_check import obstacle
from dse.core.inspection.rule_effects import DRAWS, Portion, Portions, Removal, SpaceSize
from dse.core.space import DesignSpace
from dse.report.text.space_words import Entry, big, entries, estimate_text, format_count, short
from dse.report.text.terminal_table import Lane, print_lanes, results_console

_RARE = 1e-3
"""Threshold below which a share is printed as ``1 in N``."""


def print_space(space: DesignSpace, *, name: str, description: str) -> None:
    """Print the tables of a space, fitted to the width of the terminal."""
    console, portions, known = results_console(), Portions(space), entries(space)
    console.print(escape(f"{name}: {description}" if description else name), style="bold")
    print_lanes(console, _parameters(space, portions, known))
    if portions.removals:
        print_lanes(console, _rules(portions.removals, portions.extent))
    coupled = [group for group in portions.groups if len(group.component.names) > 1]
    if coupled:
        print_lanes(console, _groups(coupled, known))
    size = (
        f"{format_count(len(known), 'parameter')}, {format_count(len(portions.removals), 'rule')}"
    )
    console.print(escape(f"{size}, {_extent(space, portions.extent)}"), style="bold")
    if _has_estimates(portions):
        console.print(f"~ estimated from {DRAWS:,} draws", style="dim")


def _parameters(space: DesignSpace, portions: Portions, known: Sequence[Entry]) -> list[Lane]:
    lanes = [
        Lane(heading="parameter", cells=[entry.name for entry in known]),
        Lane(heading="domain", cells=[entry.domain for entry in known]),
    ]
    if space.conditions:
        lanes += [
            Lane(heading="when", cells=[_condition(space, entry) for entry in known]),
            Lane(heading="active", cells=[_active(portions, e) for e in known], right=True),
        ]
    return lanes


def _condition(space: DesignSpace, entry: Entry) -> str:
    texts = [space.conditions[m.name].text for m in entry.members if m.name in space.conditions]
    return "; ".join(dict.fromkeys(texts))


def _active(portions: Portions, entry: Entry) -> str:
    """Return the fraction of designs in which a parameter is active, as text.

    For a list whose members differ, it is the range from the lowest to the highest fraction.
    """
    known = [portions.activity[m.name] for m in entry.members if m.name in portions.activity]
    if not known:
        return ""
    known.sort(key=lambda portion: portion.share)
    texts = [percent(known[0]), percent(known[-1])]
    return " to ".join(dict.fromkeys(texts))


def _rules(removals: Sequence[Removal], extent: SpaceSize) -> list[Lane]:
    texts = [one.rule.text for one in removals]
    cells = []
    for one in removals:
        lines = [one.rule.text]
        if texts.count(one.rule.text) > 1:  # a fragment that is included twice
            lines.append(f"  over {', '.join(sorted(one.rule.names))}")
        cells.append("\n".join([*lines, *([f"  {one.rule.where}"] if one.rule.where else [])]))
    columns = {
        "forbids": [percent(one.forbidden) for one in removals],
        "alone": [_alone(one) for one in removals],
        "without it": [_growth(one, extent) for one in removals],
    }
    lanes = [Lane(heading=name, cells=words, right=True) for name, words in columns.items()]
    return [Lane(heading="rule", cells=cells), *lanes]


def _alone(removal: Removal) -> str:
    """Return the fraction of designs that only this rule removes, and, if known, the number."""
    number = [short(removal.removed)] if removal.removed else []
    return "\n".join([*number, percent(removal.alone)])


def _growth(removal: Removal, extent: SpaceSize) -> str:
    """Return the factor by which the number of legal designs would grow without a rule."""
    if not removal.alone.share or not extent.share.share:
        return ""
    about = "~" if removal.alone.draws or extent.share.draws else ""
    return f"{about}x {1 + removal.alone.share / extent.share.share:.3g}"


def _groups(groups: Sequence[RuleGroup], known: Sequence[Entry]) -> list[Lane]:
    return [
        Lane(heading="coupled", cells=[_members(group, known) for group in groups]),
        Lane(heading="legal", cells=[_designs(group) for group in groups], right=True),
        Lane(heading="of", cells=[_format_unruled_count(group) for group in groups], right=True),
    ]


def _members(group: RuleGroup, known: Sequence[Entry]) -> str:
    """Return the names of coupled parameters; a complete list is shown by the list's name."""
    mine = set(group.component.names)
    found: list[str] = []
    for entry in known:
        names = [member.name for member in entry.members if member.name in mine]
        found += [entry.name] if len(names) == len(entry.members) else names
    return ", ".join(found)


def _designs(group: RuleGroup) -> str:
    count = group.component.count
    return f"at most {short(group.component.bound)}" if count is None else short(count)


def _format_unruled_count(group: RuleGroup) -> str:
    return "" if group.unruled is None else short(group.unruled)


def _extent(space: DesignSpace, extent: SpaceSize) -> str:
    if extent.designs is None:
        share = f"{percent(extent.share)} of what there would be without rules"
        about = "" if extent.estimate is None else f"{estimate_text(extent.estimate)}; "
        return f"legal designs not countable ({obstacle(space)}): {about}{share}"
    designs = f"{big(extent.designs)} legal design{'' if extent.designs == 1 else 's'}"
    if extent.unruled is None or extent.unruled == extent.designs:
        return designs
    return f"{designs}: {percent(extent.share)} of {short(extent.unruled)} without rules"


def _has_estimates(portions: Portions) -> bool:
    shares = [portions.extent.share, *portions.activity.values()]
    shares += [share for one in portions.removals for share in (one.forbidden, one.alone)]
    return any(share.draws for share in shares)


def percent(portion: Portion) -> str:
    """Format a fraction: ``24.2 %``, ``~24.2 %`` if estimated, ``nothing``, ``1 in 2,000,000``."""
    share, about = portion.share, "~" if portion.draws else ""
    if share == 0:
        return f"less than 1 in {portion.draws:,}" if portion.draws else "nothing"
    if share < _RARE:
        return f"{about}1 in {short(round(1 / share))}"
    digits = 3 if share < 1 - _RARE else 6  # 99.9996 % is not all
    return f"{about}{100 * share:.{digits}g} %"
