"""Check of whether studies pose the same problem, so that their fronts are comparable."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal

from dse.analysis.runs import Run
from dse.core.inspection.diff import difference
from dse.core.problem import Problem
from dse.errors import StudyError
from dse.units import units

Unlike = Literal["space", "evaluators"]
"""Parts that may differ if the user allows it: the spaces, or the evaluators' versions."""

_PATHS = ("file", "cwd")
"""Evaluator options that depend only on the folder, and are ignored in the comparison."""

_MOST = 3


def check_alike(runs: Sequence[Run], *, references: bool, may_differ: Collection[Unlike]) -> None:
    """Raise StudyError unless all runs solve the same problem as the first one.

    Args:
        runs: at least one run.
        references: whether the reference points of the hypervolume must be the same, too.
        may_differ: the aspects of the problem (space, evaluators) that are not compared.

    Raises:
        StudyError: two runs differ; the hint states the difference.
    """
    first = runs[0]
    for other in runs[1:]:
        _check_equal("objectives", first, other, _objectives)
        _check_equal("limits", first, other, _limits)
        _check_equal("scenarios", first, other, _scenarios)
        if "space" not in may_differ:
            _check_space(first, other)
        if "evaluators" not in may_differ:
            _check_evaluators(first, other)
        if references:
            _check_equal("reference points", first, other, lambda p: p.fixed_reference)


def _check_equal(what: str, first: Run, other: Run, fact: Callable[[Problem], object]) -> None:
    mine, theirs = fact(first.problem), fact(other.problem)
    if mine != theirs:
        words = f"{first.name}: {mine or 'none'}; {other.name}: {theirs or 'none'}"
        raise _unlike(what, first, other, words)


def _check_space(first: Run, other: Run) -> None:
    mine, theirs = (_identity(run.problem).get("space") for run in (first, other))
    if first.problem.space is other.problem.space or (mine is not None and mine == theirs):
        return
    changes = difference(first.problem.space, other.problem.space, units.shown)
    if changes:
        words = f"in {other.name}, {'; '.join(changes[:_MOST])}"
        more = len(changes) - _MOST
        words += f" (and {more} more)" if more > 0 else ""
        raise _unlike("spaces", first, other, f"{words}. To compare anyway: --ignore space")


def _check_evaluators(first: Run, other: Run) -> None:
    mine, theirs = _evaluators(first.problem), _evaluators(other.problem)
    label = next((one for one in mine if mine[one] != theirs.get(one)), None)
    if mine and theirs and label is not None:
        words = f"{first.name}: {label} {mine[label]}; {other.name}: {theirs.get(label, 'none')}"
        hint = f"{words}. To compare anyway: --ignore evaluators"
        raise _unlike("evaluators", first, other, hint)


def _unlike(what: str, first: Run, other: Run, hint: str) -> StudyError:
    return StudyError(
        f"{first.name!r} and {other.name!r} cannot be compared: their {what} differ", hint=hint
    )


def _objectives(problem: Problem) -> str:
    return ", ".join(
        f"{o.goal} {''.join(o.text.split())}"
        + (f" in {o.unit}" if o.unit else "")
        + " on a log scale" * o.log
        for o in problem.objectives
    )


def _limits(problem: Problem) -> str:
    return ", ".join(sorted({"".join(limit.text.split()) for limit in problem.limits}))


def _scenarios(problem: Problem) -> str:
    weights = _identity(problem).get("scenarios", {})
    return ", ".join(f"{name} {weight}" for name, weight in sorted(weights.items()))


def _evaluators(problem: Problem) -> dict[str, str]:
    """Return the plug-in, version and options of each evaluator as one text, by evaluator label."""
    found = {}
    for label, one in _identity(problem).get("evaluators", {}).items():
        options = {key: value for key, value in one["options"].items() if key not in _PATHS}
        words = json.dumps(options, sort_keys=True) if options else ""
        found[label] = f"{one['use']} {one['version']} {words}".strip()
    return found


def _identity(problem: Problem) -> Mapping[str, Any]:
    """Return the recorded definition of a study's problem, by study-file section; else empty."""
    return _parts(problem.identity)


@lru_cache(maxsize=256)
def _parts(identity: str) -> Mapping[str, Any]:
    settings: Mapping[str, Any] = json.loads(identity) if identity else {}
    return settings
