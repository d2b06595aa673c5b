"""Results of an evaluator: metrics, and the outcomes of one batch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, get_args

from dse.core.values import Floats
from dse.errors import SpecError, nearest

Goal = Literal["minimize", "maximize"]
Kind = Literal["modelled", "measured"]
FaultKind = Literal["infeasible", "raised", "timeout", "crashed", "invalid", "memory", "lost"]


@dataclass(frozen=True, slots=True)
class Metric:
    """A named quantity with its unit and, where there is an obvious one, its goal.

    With ``words`` a value is the place of one of them: ``bottleneck`` is ``compute`` or ``memory``.
    The metrics that are ``part_of`` another one sum to it. ``written`` is the unit in which the
    user of a study writes it, where that is another one.
    """

    name: str
    unit: str = ""
    _: KW_ONLY
    goal: Goal | None = None
    words: tuple[str, ...] = ()
    part_of: str = ""
    written: str = ""

    def __post_init__(self) -> None:
        """Refuse a goal that is none. Raises SpecError."""
        if self.goal is not None and self.goal not in get_args(Goal):
            problem = f"the goal of {self.name!r} cannot be {self.goal!r}"
            raise SpecError(problem, hint=nearest(self.goal, get_args(Goal)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Reason that a row has no metrics.

    ``infeasible``: the design cannot exist. The rest could not be measured: the evaluator
    ``raised``, ran into its ``timeout``, its process ``crashed``, what it said was ``invalid``
    (NaN, a missing metric, no JSON), it ran out of ``memory``, or who ran it was ``lost``: the
    driver, or the machine.
    """

    kind: FaultKind
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The outcomes of one batch of n rows; a row in ``faults`` has no meaning in the columns.

    A metric without a value in a row is NaN there, or infinite; ``undefined`` may say why, by
    metric and row. Whether that costs the design its place is for the study to decide.
    """

    columns: Mapping[str, Floats]  # each (n,)
    spread: Mapping[str, Floats] = field(default_factory=dict)  # (n,) standard errors, same unit
    faults: Mapping[int, Fault] = field(default_factory=dict)
    undefined: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
