"""Level of each parameter in each trial, as input of the effect analysis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dse.core.parameter import Choice
from dse.core.problem import Problem
from dse.core.trials import Trials
from dse.core.values import Floats, Ints, Value

MOST_LEVELS = 24
GROUPS = 8
"""A numeric parameter of more than ``MOST_LEVELS`` values is binned into ``GROUPS`` levels."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Factor:
    """Parameter as a factor: the index of each trial's level, and each level's value range."""

    name: str
    codes: Ints  # (n,)
    levels: tuple[tuple[Value | None, Value | None], ...]

    @property
    def coding(self) -> Floats:
        """Sum-to-zero (effect) coding of the levels, (levels, levels - 1); the last row is -1."""
        free = len(self.levels) - 1
        return np.vstack([np.eye(free), -np.ones(free)])


def factors_of(problem: Problem, trials: Trials) -> list[Factor]:
    """Return every parameter of the space as a factor with its levels in these trials."""
    found = []
    designs = list(trials.iter_designs())
    for parameter in problem.space.parameters:
        told = [design.get(parameter.name) for design in designs]
        groups = _groups(told, words=isinstance(parameter, Choice))
        code = {value: place for place, group in enumerate(groups) for value in group}
        levels = tuple((group[0], group[-1]) for group in groups)
        codes = np.array([code[value] for value in told])
        found.append(Factor(name=parameter.name, codes=codes, levels=levels))
    return found


def _groups(told: Sequence[Any], *, words: bool) -> list[list[Any]]:  # values of one parameter
    """Group the distinct values into levels: one each, or bins if there are many numbers.

    If the parameter is inactive in a trial, the last level is ``[None]``.
    """
    known = list(dict.fromkeys(value for value in told if value is not None))
    known = known if words else sorted(known)
    cut = len(known) > MOST_LEVELS and not words
    places = np.array_split(np.arange(len(known)), GROUPS if cut else max(len(known), 1))
    groups = [[known[place] for place in one] for one in places if len(one)]
    return [*groups, [None]] if None in told else groups
