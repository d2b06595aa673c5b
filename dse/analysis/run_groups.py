"""Runs that differ in their seed alone: what a statement about an optimizer stands on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from dse.analysis.runs import Run


class RunGroup(NamedTuple):
    """Runs of one kind."""

    name: str
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """The seed of each run."""
        return tuple(run.problem.seed for run in self.runs)


def alone(runs: Sequence[Run]) -> list[RunGroup]:
    """Every run for itself."""
    return [RunGroup(run.name, (run,)) for run in runs]


def by_kind(runs: Sequence[Run]) -> list[RunGroup]:
    """The runs in groups that differ in nothing but the seed, in the order of their first ones.

    A group is called by what the names have in common before the seed, ``study.nsga2`` for
    ``study.nsga2.0`` and ``study.nsga2.1``; else by its optimizer, and else by its first run.
    """
    kinds: dict[str, list[Run]] = {}
    for run in runs:
        kinds.setdefault(_kind(run), []).append(run)
    names: list[str] = []
    for members in kinds.values():
        offered = (_stem(members), _optimizer(members[0]), members[0].name)
        names.append(next((n for n in offered if n and n not in names), members[0].name))
    return [
        RunGroup(name, tuple(members)) for name, members in zip(names, kinds.values(), strict=True)
    ]


def _kind(run: Run) -> str:
    """Return the run's settings but its seed, as JSON; its name where none are recorded."""
    if not run.problem.identity:
        return run.name
    told = {**json.loads(run.problem.identity), "seed": None}
    return json.dumps(told, sort_keys=True)


def _stem(runs: Sequence[Run]) -> str:
    stems = {run.name.removesuffix(str(run.problem.seed)).rstrip(".-_ ") for run in runs}
    return stems.pop() if len(stems) == 1 else ""


def _optimizer(run: Run) -> str:
    told = json.loads(run.problem.identity) if run.problem.identity else {}
    return str(told.get("optimizer", {}).get("use", ""))
