"""JSON of the front and the trials, with a stable schema and only finite numbers.

A number that is not finite is written as ``null``. ``objectives`` are in the order of the study, in
their own units and signs; the top-level ``metrics`` and ``parameters`` map each name to its unit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dse.core.objective import Objective
from dse.core.pareto import ParetoSet
from dse.core.problem import Problem
from dse.core.proof import Proof
from dse.core.trial import State, Trial
from dse.core.trials import TrialStream
from dse.report.answer import Answer, broken_limits, objective_values
from dse.report.schemas.front_schema import FrontFacts
from dse.report.schemas.trials_schema import ObjectiveFacts, TrialRow, TrialsFacts
from dse.report.words import parameter_units


def front_json(
    study: str, front: ParetoSet, trials: Sequence[Trial] = (), *, proof: Proof
) -> FrontFacts:
    """Return the front of a study as a JSON object.

    If no design is feasible, ``feasible`` is false and ``front`` holds the designs with the
    smallest violation, each with ``broken``: the text of each violated limit with the amount of the
    violation.

    Args:
        study: the study's name.
        front: the study's front.
        trials: all trials, of which the nearest to feasible are used.
        proof: for how many designs the front is proved exact, and how many have no value.
    """
    answer = Answer.of(front, trials)
    rows = zip(answer.trials, answer.values.tolist(), answer.broken, strict=True)
    point = front.reference_point
    return {
        "study": study,
        "reference_point": None if point is None else list(map(finite, point)),
        "hypervolume": finite(front.hypervolume),
        "hypervolume_share": finite(front.hypervolume_share),
        "hypervolume_estimated": not front.hypervolume_is_exact,
        "exact": proof.exact,
        "exact_over": proof.over,
        "failed": proof.valueless,
        "failure": proof.failed_words,
        "feasible": answer.feasible,
        "objectives": objectives_json(front.problem.objectives),
        "limits": _limits(front.problem),
        "metrics": _metric_units(front.problem),
        "words": _metric_words(front.problem),
        "parameters": parameter_units(front.problem),
        "knee": front.knee.number if front.knee is not None else None,
        "front": [
            {
                "trial": trial.number,
                "design": dict(trial.design),
                "metrics": _metrics(front.problem, trial),
                "spread": _finite(trial.spread),
                "objectives": list(map(finite, values)),
                "feasible": answer.feasible,
                "broken": dict(broken),
            }
            for trial, values, broken in rows
        ],
    }


def trials_json(study: str, problem: Problem, trials: Sequence[Trial]) -> TrialsFacts:
    """Return all trials of a study as a JSON object."""
    return {
        "study": study,
        "objectives": objectives_json(problem.objectives),
        "limits": _limits(problem),
        "metrics": _metric_units(problem),
        "words": _metric_words(problem),
        "parameters": parameter_units(problem),
        "trials": list(trial_rows(problem, trials)),
    }


def trial_rows(problem: Problem, trials: Sequence[Trial]) -> Iterator[TrialRow]:
    """Yield each trial as a JSON object."""
    rows = zip(
        trials,
        objective_values(problem, trials).tolist(),
        problem.feasible(trials).tolist(),
        broken_limits(problem, trials),
        strict=True,
    )
    for trial, values, feasible, broken in rows:
        yield {
            "trial": trial.number,
            "state": trial.state.value,
            "design": dict(trial.design),
            "metrics": _metrics(problem, trial),
            "spread": _finite(trial.spread),
            "objectives": list(map(finite, values)),
            "feasible": feasible,
            "broken": broken,
            "fault": None
            if trial.failure is None
            else {"kind": trial.failure.kind, "reason": trial.failure.reason},
            "cost_s": finite(trial.cost_s),
            "measured": trial.measured,
            "told": trial.told,
            "attempts": trial.attempts,
            "asked_at": trial.asked_at,
            "begun_at": trial.begun_at,
            "finished_at": trial.finished_at,
        }


def trials_json_texts(
    study: str, problem: Problem, stream: TrialStream, indent: int | None = None
) -> Iterator[str]:
    """Yield the text of :func:`trials_json` in chunks, without holding all trials.

    Args:
        study: the study's name.
        problem: the study's problem.
        stream: the study's trials, read in chunks.
        indent: as in ``json.dumps``.
    """
    encode = json.JSONEncoder(indent=indent, allow_nan=False).encode
    before, _, after = encode(trials_json(study, problem, ())).rpartition("]")
    line = "" if indent is None else "\n" + 2 * indent * " "
    separator, between = line, f",{line or ' '}"
    yield before
    for part in stream.parts:
        rows = (encode(row).replace("\n", line) for row in trial_rows(problem, part))
        yield separator + between.join(rows)
        separator = between
    yield f"{line[: -(indent or 0)] if separator == between else ''}]{after}"


def objectives_json(objectives: Iterable[Objective]) -> list[ObjectiveFacts]:
    """Return each objective of a study with its goal and unit."""
    return [
        {"name": o.name, "expression": o.text, "goal": o.goal, "unit": o.unit} for o in objectives
    ]


def finite(value: float | None) -> float | None:
    """Return the number if it is finite, else ``None``."""
    return value if value is not None and math.isfinite(value) else None


def _limits(problem: Problem) -> list[str]:
    return sorted({limit.text for limit in problem.limits})


def _metric_units(problem: Problem) -> dict[str, str]:
    return {name: metric.unit for name, metric in sorted(problem.metrics.items())}


def _metric_words(problem: Problem) -> dict[str, list[str]]:
    return {name: list(m.words) for name, m in sorted(problem.metrics.items()) if m.words}


def _metrics(problem: Problem, trial: Trial) -> dict[str, float | None]:
    """Return a trial's metrics for JSON; undefined ones of a finished trial are ``None``."""
    blank = problem.sources if trial.state is State.DONE else ()
    return {**dict.fromkeys(blank), **_finite(trial.metrics)}


def _finite(numbers: Mapping[str, float]) -> dict[str, float | None]:
    return {name: finite(value) for name, value in numbers.items()}
