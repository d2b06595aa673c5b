"""The open problems: other people's measurements and published functions, as cases."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from case import Case, done

from dse.core.design import Design
from dse.core.expressions.expression import Expression
from dse.core.expressions.parser import parse
from dse.core.expressions.syntax import Listed, Logic, Member, Name, Number, Text
from dse.core.metric import Failure, Metric
from dse.core.objective import Limit, Objective
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, State, Trial
from dse.core.values import Value

_BENCHMARKS = Path(__file__).resolve().parents[1]
DATA = _BENCHMARKS.parents[1] / "shared/data/open"
"""Where the data and their loader, ``openbench.py``, lie unless another folder is named."""

NAMES = (
    "vp8_encoder",
    "kt_gemm_port",
    "tx2_dvfs",
    "spector_sobel",
    "hwgpt_s",
    "rcm14_clutch",
    "vehicle_safety",
)


def case(name: str, data: Path = DATA) -> Case:
    """The problem of that name, from the loader beside its data."""
    given = _loader(data).load(name)
    return Case(
        name=name,
        problem=_problem(given),
        evaluate=lambda design: _outcome(given, design),
        judge=lambda trials: _share(given, trials),
    )


def check_data(data: Path) -> None:
    """End the program with status 2 if a folder is without the data and their loader."""
    if str(_BENCHMARKS) not in sys.path:
        sys.path.append(str(_BENCHMARKS))
    importlib.import_module("reference_tables").find_table(data, "openbench.py")


def _loader(data: Path) -> Any:
    check_data(data)
    if str(data) not in sys.path:
        sys.path.append(str(data))
    return importlib.import_module("openbench")


def _problem(given: Any) -> Problem:
    space = DesignSpace(
        parameters=tuple(map(_parameter, given.params)),
        conditions={p.name: _condition(p.active) for p in given.params if p.active is not None},
        constraints=_pool(given),
    )
    reads = frozenset(space.by_name)
    metrics = [Metric(name=name, unit=unit) for name, unit, _ in given.objectives]
    metrics += [Metric(name=name) for name in given.constraints]
    return Problem(
        space=space,
        sources={m.name: Source(metric=m, kind="measured", reads=reads) for m in metrics},
        objectives=tuple(
            Objective(expression=parse(name), goal="minimize" if goal == "min" else "maximize")
            for name, _, goal in given.objectives
        ),
        limits=tuple(
            Limit(text=f"{name} <= 0", slack=parse(f"-{name}")) for name in given.constraints
        ),
    )


def _parameter(given: Any) -> Parameter:
    match given.type:
        case "float":
            return Real(name=given.name, low=given.low, high=given.high, scale=_scale(given))
        case "int":
            return Integer(name=given.name, low=given.low, high=given.high, scale=_scale(given))
        case "ord":
            return Ordinal(name=given.name, values=tuple(given.values))
        case _:
            return Choice(name=given.name, values=tuple(given.values))


def _scale(given: Any) -> Any:
    return "log" if given.log else "linear"


def _condition(active: Mapping[str, Sequence[Value]]) -> Expression:
    parts = tuple(
        Member(Name(parent), tuple(map(_literal, values))) for parent, values in active.items()
    )
    text = " and ".join(f"{parent} in {list(values)}" for parent, values in active.items())
    return Expression(text, parts[0] if len(parts) == 1 else Logic("and", parts))


def _literal(value: Value) -> Any:
    return Text(value) if isinstance(value, str) else Number(value)


def _pool(given: Any) -> tuple[Expression, ...]:
    """That the design is one of the published ones, where the problem is a table."""
    pool = given.pool()
    if pool is None:
        return ()
    names = [p.name for p in given.params]
    rows = tuple(tuple(design.get(name) for name in names) for design in pool)
    return (Expression("the design was measured", Listed(tuple(map(Name, names)), rows)),)


def _outcome(given: Any, design: Design) -> Outcome:
    answer = given.evaluate(dict(design))
    if answer is None:
        failure = Failure(kind="raised", reason="its build or run failed")
        return Outcome(state=State.FAILED, failure=failure, measured=1)
    return done(answer)


def _share(given: Any, trials: Sequence[Trial]) -> float:
    return float(given.hv_ratio([dict(t.metrics) for t in trials if t.state is State.DONE]))
