"""Metrics, results of evaluators for a batch, and failures: why a design has no metrics."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal, get_args

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse.system.deprecation import UNTIL
from dse.system.former_fields import accept_former_field

Goal = Literal["minimize", "maximize"]
Kind = Literal["modelled", "measured"]
FailureKind = Literal["infeasible", "raised", "timeout", "crashed", "invalid", "memory", "lost"]


@dataclass(frozen=True, slots=True)
class Metric:
    """Named quantity with its unit and, if there is an obvious one, its goal (min or max).

    A metric with ``words`` is categorical: its value is an index into ``words``, such as
    ``("compute", "memory")`` for ``bottleneck``. ``part_of`` names the metric of which this metric
    is a summand. ``written`` is the unit in which the user of a study writes the metric, if it
    differs from ``unit``.
    """

    name: str
    unit: str = ""
    _: KW_ONLY
    goal: Goal | None = None
    words: tuple[str, ...] = ()
    part_of: str = ""
    written: str = ""

    def __post_init__(self) -> None:
        """Raise SpecError unless the goal is valid."""
        if self.goal is not None and self.goal not in get_args(Goal):
            problem = f"the goal of {self.name!r} cannot be {self.goal!r}"
            raise SpecError(problem, hint=nearest(self.goal, get_args(Goal)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Reason that a design has no metrics: infeasibility or a failed evaluation.

    ``infeasible``: the design cannot exist. For the other kinds the evaluation failed: the
    evaluator ``raised`` an exception, exceeded its ``timeout``, its process ``crashed``, its output
    was ``invalid`` (NaN, a missing metric, not JSON), it ran out of ``memory``, or the process or
    machine that ran it was ``lost``.
    """

    kind: FailureKind
    reason: str


@accept_former_field("faults", "failures")
@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """Results for a batch of n designs; columns of failed or infeasible designs have no meaning.

    ``failures`` maps the index of a failed or infeasible design to the reason. A metric that is
    undefined for a design is NaN or infinite there; ``undefined`` may give the reason, by metric
    and index. The study decides whether the design then counts as failed.
    """

    columns: Mapping[str, Floats]  # each (n,)
    spread: Mapping[str, Floats] = field(default_factory=dict)  # (n,) standard errors, same unit
    failures: Mapping[int, Failure] = field(default_factory=dict)
    undefined: Mapping[str, Mapping[int, str]] = field(default_factory=dict)


def __getattr__(name: str) -> object:
    """Return a class by its former name, with a warning."""
    if name not in _FORMER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    present = _FORMER[name]
    text = f"{__name__}.{name} is {present} now; it is found until {UNTIL}"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    return globals()[present]


_FORMER = {"Fault": "Failure", "FaultKind": "FailureKind"}
