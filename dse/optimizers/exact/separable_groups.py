"""Groups of parameters that no rule and no metric couples to one another."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dse.core.legal_set.component import Component
from dse.core.problem import Problem

MOST_ROWS = 10_000_000
"""Most combinations of a group: all are evaluated, and kept in memory until they are pruned."""

_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparableGroup:
    """Group of parameters that shares no rule and no metric with the other parameters.

    It is made of components, which are sets of parameters that rules couple. ``read`` is false if
    no metric, objective or limit reads the group.
    """

    components: tuple[int, ...]
    names: frozenset[str]
    """Parameters of the group, and the modelled metrics that depend on nothing else."""
    count: int
    read: bool


def groups_of(problem: Problem) -> list[SeparableGroup]:
    """Return the finest partition of parameters such that each modelled metric reads one group.

    No rule couples two groups, either. Metrics that no objective or limit reads count, too, since
    their evaluators may declare a design infeasible. Metrics that read no parameter belong to the
    first group.
    """
    components = problem.space.legal.components
    root = list(range(len(components)))

    def find(place: int) -> int:
        while root[place] != place:
            place = root[place]
        return place

    for tied in _readings(problem).values():
        for other in tied[1:]:
            root[find(other)] = find(tied[0])
    members: dict[int, list[int]] = {}
    for place in range(len(components)):
        members.setdefault(find(place), []).append(place)
    wholes = sorted(members.values())
    return [
        _group(problem, tuple(places), first=number == 0) for number, places in enumerate(wholes)
    ]


def cannot(problem: Problem) -> str:
    """Return the reason why the problem cannot be decomposed by groups; empty if it can.

    Too many combinations after pruning are detected only once the groups are evaluated.
    """
    if problem.measured:
        return f"{min(problem.measured)} has to be measured"
    legal = problem.space.legal
    if legal.reals:
        return f"{legal.reals[0].name} is a real parameter: give it steps"
    for component in legal.components:
        if component.count is None:
            return f"the combinations of {_some(component.names)} cannot be counted"
    groups = groups_of(problem)
    if len(groups) < 2:
        return _why_one(problem, legal.components)
    large = max((group for group in groups if group.read), key=_count, default=None)
    if large is not None and large.count > MOST_ROWS:
        return (
            f"{_some(large.names & problem.space.by_name.keys())} have {large.count:,} "
            f"combinations that only go together, more than {MOST_ROWS:,}"
        )
    return ""


def _count(group: SeparableGroup) -> int:
    return group.count


def _group(problem: Problem, places: tuple[int, ...], *, first: bool) -> SeparableGroup:
    components = [problem.space.legal.components[place] for place in places]
    parameters = frozenset(name for component in components for name in component.names)
    modelled = {name: s.reads for name, s in problem.sources.items() if s.kind == "modelled"}
    metrics = {
        name
        for name, reads in modelled.items()
        if reads & parameters or (first and not reads & problem.space.by_name.keys())
    }
    return SeparableGroup(
        components=places,
        names=parameters | metrics,
        count=math.prod(component.bound for component in components),
        read=bool(metrics) or bool(parameters & asked_names(problem)),
    )


def asked_names(problem: Problem) -> frozenset[str]:
    """Return the names of all metrics and parameters that an objective or a limit reads."""
    expressions = [o.expression for o in problem.objectives] + [x.slack for x in problem.limits]
    return frozenset(name for expression in expressions for name in expression.names)


def _readings(problem: Problem) -> dict[str, list[int]]:
    """Return, per modelled metric, the sorted indices of the space's components that it reads.

    A component is a set of parameters that rules couple.
    """
    place_of = {
        name: place
        for place, component in enumerate(problem.space.legal.components)
        for name in component.names
    }
    return {
        name: sorted({place_of[read] for read in source.reads if read in place_of})
        for name, source in problem.sources.items()
        if source.kind == "modelled"
    }


def _why_one(problem: Problem, components: Sequence[Component]) -> str:
    if len(components) < 2:
        return "the rules tie all parameters together"
    readings = _readings(problem)
    widest = max(readings, key=lambda name: (len(readings[name]), name))
    read = problem.reads(widest) & problem.space.by_name.keys()
    through = "" if len(readings[widest]) == len(components) else ", and other metrics tie the rest"
    return f"{widest} ties parameters together that no rule ties: {_some(read)}{through}"


def _some(names: Iterable[str]) -> str:
    every = sorted(names)
    more = f" and {len(every) - _SHOWN} more" if len(every) > _SHOWN else ""
    return ", ".join(every[:_SHOWN]) + more
