"""Classes of problems with their difficulty, gathered from the curves of a file of pass@k."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.reasoning.difficulty import fit_difficulty
from dse_evaluators.reasoning.pass_counts import PassCurve, is_number
from dse_evaluators.reasoning.problem_classes import MeasuredClass, ProblemClasses


def gather_classes(
    curves: Sequence[PassCurve],
    asked: Mapping[str, float] | None,
    distribution: str,
    path: Path,
) -> ProblemClasses:
    """Fit the difficulty of each class for each model of a file of pass@k.

    Args:
        curves: the rows of the file.
        asked: shares of the classes among the queries; ``None``: all classes, by their problems.
        distribution: distribution of the success probability: ``beta``, ``mixture`` or ``auto``.
        path: the file, for messages.

    Raises:
        SpecError: a class is unknown, a model lacks one, or a fit fails.
    """
    groups = list(dict.fromkeys(one.group for one in curves))
    shares = _find_shares(curves, groups, asked, path)
    chosen = [one for one in curves if one.group in shares]
    models = {name: at for at, name in enumerate(dict.fromkeys(one.model for one in chosen))}
    temperatures = _find_temperatures(chosen)
    lengths = {one.tokens > 0 for one in chosen}
    places: dict[float | None, int] = {value: at for at, value in enumerate(temperatures)}
    found: dict[tuple[str, int, int], list[PassCurve]] = {}
    for one in chosen:
        at = places.get(one.temperature, 0)
        found.setdefault((one.group, models[one.model], at), []).append(one)
    _check_classes(chosen, found, path)
    measured = {}
    for key, own in found.items():
        own.sort(key=lambda one: one.tokens)
        measured[key] = MeasuredClass(
            tokens=np.array([one.tokens for one in own]),
            fits=tuple(fit_difficulty(one, distribution) for one in own),
            curves=tuple(own),
        )
    return ProblemClasses(
        shares=shares,
        models=models,
        temperatures=temperatures,
        measured=measured,
        inputs=_name_inputs(list(shares), path),
        has_lengths=lengths == {True},
        source=path.name,
    )


def _find_temperatures(curves: Sequence[PassCurve]) -> tuple[float, ...]:
    """Return the temperatures of the curves if a class of a model has several, and else none.

    Raises:
        SpecError: some rows of a class and a model state a temperature, and others none.
    """
    own: dict[tuple[str, str], set[float | None]] = {}
    for one in curves:
        stated = own.setdefault((one.group, one.model), set())
        stated.add(one.temperature)
        if len(stated) > 1 and None in stated:
            problem = f"{one.group} of {one.model} has rows with a temperature and without one"
            raise SpecError(problem, where=one.where, hint="fill all cells of temperature, or none")
    if all(len(stated) == 1 for stated in own.values()):
        return ()
    return tuple(sorted({one.temperature for one in curves if one.temperature is not None}))


def _check_classes(
    curves: Sequence[PassCurve], found: Mapping[tuple[str, int, int], object], path: Path
) -> None:
    """Check that each model has all classes at each temperature that it has any class at.

    Raises:
        SpecError: a class lacks rows.
    """
    models = list(dict.fromkeys(one.model for one in curves))
    sources = dict.fromkeys((model, at) for _, model, at in found)
    for group in dict.fromkeys(one.group for one in curves):
        for model, at in sources:
            if (group, model, at) not in found:
                own = ", ".join(one.name for one in curves if one.model == models[model])
                problem = f"{path} has no rows of class {group} for {models[model]}, only {own}"
                hint = "add them, or state the classes of the queries: classes: {CLASS: 1}"
                raise SpecError(problem, hint=hint, part=["classes"])


def _find_shares(
    curves: Sequence[PassCurve],
    groups: Sequence[str],
    asked: Mapping[str, float] | None,
    path: Path,
) -> dict[str, float]:
    if asked is None:
        known = {group: next(o.problems for o in curves if o.group == group) for group in groups}
        asked = known if all(known.values()) else dict.fromkeys(groups, 1.0)
    for group, share in asked.items():
        if group not in groups:
            problem = f"classes names {group!r}, which is no class of {path}"
            raise SpecError(problem, hint=nearest(group, groups), part=["classes"])
        if not is_number(share) or not share > 0:
            problem = f"the share of class {group} is {share!r}"
            raise SpecError(problem, hint="a positive number", part=["classes"])
    total = sum(asked.values())
    if not total:
        raise SpecError("classes is empty", hint=f"classes: {{{groups[0]}: 1}}", part=["classes"])
    return {group: share / total for group, share in asked.items()}


def _name_inputs(groups: Sequence[str], path: Path) -> dict[str, str]:
    """Return the input that sets the number of answers of each class."""
    named: dict[str, str] = {}
    for group in groups:
        name = "samples_" + re.sub(r"\W+", "_", group.lower())
        for other, taken in named.items():
            if taken == name:
                problem = f"{path} has classes {other!r} and {group!r}, both with the input {name}"
                raise SpecError(problem, hint="rename one", part=["file"])
        named[group] = name
    return named
