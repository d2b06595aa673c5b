"""Groups of runs that differ only in their seed: the samples that significance tests compare."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from dse.analysis.runs import Run


class RunGroup(NamedTuple):
    """Named group of runs that differ only in their seed."""

    name: str
    runs: tuple[Run, ...]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Random seed of each run of the group."""
        return tuple(run.problem.seed for run in self.runs)


def alone(runs: Sequence[Run]) -> list[RunGroup]:
    """Return one group for each run, with this run as its only member."""
    return [RunGroup(run.name, (run,)) for run in runs]


def by_kind(runs: Sequence[Run]) -> list[RunGroup]:
    """Group the runs that differ only in the seed, in the order of their first runs.

    A group is named after the common prefix of its runs' names before the seed, such as
    ``study.nsga2`` for ``study.nsga2.0`` and ``study.nsga2.1``. Without such a prefix it is named
    after its optimizer, or else after its first run.
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
    """Return a key that is equal for runs of one group: settings without the seed, as JSON.

    Without recorded settings the key is the run's name.
    """
    if not run.problem.identity:
        return run.name
    settings = {**json.loads(run.problem.identity), "seed": None}
    return json.dumps(settings, sort_keys=True)


def _stem(runs: Sequence[Run]) -> str:
    stems = {run.name.removesuffix(str(run.problem.seed)).rstrip(".-_ ") for run in runs}
    return stems.pop() if len(stems) == 1 else ""


def _optimizer(run: Run) -> str:
    settings = json.loads(run.problem.identity) if run.problem.identity else {}
    return str(settings.get("optimizer", {}).get("use", ""))
