"""Full and fractional factorial designs, for characterisation rather than optimisation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from dse.core.design import Design
from dse.core.expressions.printer import whole_text
from dse.core.parameter import Choice, Ordinal, Parameter, Real
from dse.core.problem import Problem
from dse.core.proof import Coverage
from dse.core.space import DesignSpace
from dse.core.trial import Event, Trial
from dse.core.values import Value
from dse.errors import StudyError
from dse.optimizers.support.fractional_factorial import fraction
from dse.protocols import OptimizerTraits

LEVELS = 3
"""Default number of levels of a real parameter."""

MOST = 10_000
"""Default limit on the number of designs."""

_HINT = "name fewer levels, such as 'optimizer: {use: factorial, levels: 2}', or a 'resolution'"


class Factorial:
    """Optimizer that suggests every legal combination of levels, in a seeded random order.

    The random order keeps drift of the measurements from looking like an effect. Combinations
    that break a rule of the space are left out.

    Args:
        problem: problem to characterise.
        levels: maximum number of values of each numeric parameter, evenly spaced from the first to
            the last; by default all of them (three of a real parameter).
        resolution: use two levels and a regular fraction of their combinations, in which no main
            effect is aliased with another (3), nor with a two-parameter interaction (4), nor
            two such interactions with each other (5). By default all combinations.
        most: maximum number of designs; a larger study is refused.

    Raises:
        StudyError: there are too many combinations, or the space does not allow the fraction.
    """

    traits = OptimizerTraits(batch=1_024, exhaustive=True, designed_experiment=True)

    def __init__(
        self,
        problem: Problem,
        *,
        levels: int | None = None,
        resolution: int | None = None,
        most: int = MOST,
    ) -> None:
        self._problem = problem
        if levels is not None and levels < 2:
            raise StudyError(f"{levels} levels show no effect", hint="levels: 2 or more")
        if resolution is None:
            self._designs, self._text = _full(problem.space, levels, most)
        else:
            self._designs, self._text = _part(problem.space, resolution, levels)
        whole = problem.space.count()
        self._exact = resolution is None and whole == len(self._designs)
        order = problem.rng(0).permutation(len(self._designs))
        self._designs = [self._designs[place] for place in order]
        self._finished_designs: set[Design] = set()
        self._outcomes: list[Trial] = []
        self._reported = False

    def ask(self, count: int, pending: Sequence[Design] = ()) -> list[Design]:
        taken = self._finished_designs.union(pending)
        return [design for design in self._designs if design not in taken][:count]

    def tell(self, finished: Sequence[Trial]) -> None:
        self._finished_designs.update(trial.design for trial in finished)
        self._outcomes += finished

    def events(self) -> list[Event]:
        if self._reported or not self._finished_designs.issuperset(self._designs):
            return []
        self._reported = True
        finished = len(self._finished_designs)
        found = [Event(kind="characterised", text=self._text, told=finished)]
        if self._exact:
            found.append(self._coverage.event(finished))
        return found

    @property
    def ended(self) -> str:
        """Reason to end the study, once all planned designs are finished; empty until then.

        The reason states the number of designs covered, and is empty if the plan leaves out legal
        designs.
        """
        whole = self._exact and self._finished_designs.issuperset(self._designs)
        return self._coverage.text if whole else ""

    @property
    def _coverage(self) -> Coverage:
        return Coverage.of(self._problem, self._outcomes, len(self._designs))


def _full(space: DesignSpace, levels: int | None, most: int) -> tuple[list[Design], str]:
    """Return all legal combinations of parameter levels, and a text on their number and levels."""
    parameters = tuple(_limit_levels(one, levels) for one in space.parameters)
    if any(getattr(one, "simplex", None) for one in space.lists.values()):
        raise StudyError(
            "shares without a step have no levels", hint="give the simplex a step, such as 0.25"
        )
    grid = replace(space, parameters=parameters)
    count = grid.count()
    if count is None or count > most:
        many = "more legal combinations than can be counted" if count is None else whole_text(count)
        raise StudyError(
            f"{many} are more than the {most:,} of a full factorial", hint=f"{_HINT}, or 'most'"
        )
    found = [design for batch in grid.enumerate() for design in batch.designs()]
    if count:
        found = space.batch(found).designs()  # 1 and 1.0 are one value
    sizes = " x ".join(str(len(_values(one))) for one in parameters)
    return found, f"{whole_text(count)} legal designs of {sizes} levels"


def _part(space: DesignSpace, resolution: int, levels: int | None) -> tuple[list[Design], str]:
    """Return the legal runs of a two-level fractional factorial design, and its description."""
    if resolution not in (3, 4, 5):
        raise StudyError(f"there is no fraction of resolution {resolution}", hint="3, 4 or 5")
    if levels not in (None, 2):
        raise StudyError("a fraction has two levels", hint="leave 'levels' out")
    if space.conditions:
        name = next(iter(space.conditions))
        raise StudyError(
            f"{name} exists only in some designs; a fraction needs parameters that always exist",
            hint="leave 'resolution' out",
        )
    ends = [_ends(parameter) for parameter in space.parameters]
    varied = [place for place, values in enumerate(ends) if len(values) == 2]
    signs = fraction(len(varied), resolution)
    runs = [dict(_run(space, ends, dict(zip(varied, row, strict=True)))) for row in signs.tolist()]
    legal = [run for run in runs if run in space]
    if not legal:
        raise StudyError("every run of the fraction breaks a rule", hint="leave 'resolution' out")
    lost = len(runs) - len(legal)
    gone = f"; {lost} of its {len(runs)} runs break a rule and are left out" if lost else ""
    text = f"a fraction of resolution {resolution}: {len(legal)} of 2^{len(varied)} designs{gone}"
    return space.batch(legal).designs(), text


def _run(
    space: DesignSpace, ends: Sequence[Sequence[Value]], high: dict[int, int]
) -> Iterator[tuple[str, Value]]:
    for place, parameter in enumerate(space.parameters):
        yield parameter.name, ends[place][high.get(place, 0)]


def _ends(parameter: Parameter) -> tuple[Value, ...]:
    """Return the two levels of a parameter in a fractional factorial; one if it is fixed."""
    values = _values(_limit_levels(parameter, 2))
    if len(values) > 2:
        raise StudyError(
            f"{parameter.name} has {len(values)} choices, and a fraction has two levels",
            hint="narrow it to two, or leave 'resolution' out",
        )
    return values


def _limit_levels(parameter: Parameter, levels: int | None) -> Parameter:
    """Return the parameter reduced to at most ``levels`` evenly spaced values.

    A choice keeps all its values.
    """
    match parameter:
        case Real():
            shares = np.linspace(0, 1, levels or LEVELS)
            values = tuple(dict.fromkeys(parameter.at(shares).tolist()))
            return Ordinal(name=parameter.name, values=values, unit=parameter.unit)
        case Choice():
            return parameter
        case _:
            every = _values(parameter)
            if levels is None or len(every) <= levels:
                return parameter
            places = np.linspace(0, len(every) - 1, levels).round().astype(int)
            kept = tuple(every[place] for place in places)
            return Ordinal(name=parameter.name, values=kept, unit=parameter.unit)


def _values(parameter: Parameter) -> tuple[Value, ...]:
    assert not isinstance(parameter, Real)
    return tuple(parameter.values)
