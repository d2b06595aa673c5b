"""Result of evaluating one design, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from dse.core.design import Design
from dse.core.metric import Metric
from dse.core.problem import Problem
from dse.core.trial import Outcome, Trial
from dse.report.answer import broken_limits
from dse.report.json.front_json import finite
from dse.report.schemas.evaluation import Evaluated, MetricFacts
from dse.report.text.space_words import setting_text
from dse.report.words import metric_text, word_of


def json(problem: Problem, design: Design, outcome: Outcome) -> Evaluated:
    """Return a design with its metrics as JSON."""
    return {
        "design": dict(design),
        "state": outcome.state.value,
        "reason": outcome.failure.reason if outcome.failure else None,
        "metrics": {
            name: _metric(value, outcome.spread.get(name), problem.metrics[name])
            for name, value in outcome.metrics.items()
        },
        "broken_limits": _broken(problem, design, outcome),
        "cost_s": finite(outcome.cost_s),
    }


def lines(problem: Problem, design: Design, outcome: Outcome) -> Iterator[str]:
    """Yield a design with its metrics as lines of text."""
    for name, value in design.items():
        yield f"  {setting_text(problem.space.by_name[name], value)}"
    for name, number in outcome.metrics.items():
        yield f"{name}: {metric_text(number, problem.metrics[name])}"
    for limit in _broken(problem, design, outcome):
        yield f"outside the limit: {limit}"
    if outcome.failure is not None:
        named = (n for n in problem.metrics if "." in n and n not in outcome.metrics)
        by = dict.fromkeys(name.partition(".")[0] for name in named)
        if by:
            yield f"no metrics of {', '.join(by)}"
        yield f"{outcome.state.value} ({outcome.failure.kind}): {outcome.failure.reason}"


def _metric(value: float, spread: float | None, metric: Metric) -> MetricFacts:
    return {
        "value": finite(value),
        "unit": metric.unit,
        "spread": finite(spread),
        "word": word_of(value, metric),
    }


def _broken(problem: Problem, design: Design, outcome: Outcome) -> list[str]:
    """Return the limits of the study that the design's metrics violate, as strings."""
    return list(broken_limits(problem, [Trial(number=0, design=design).finished(outcome)])[0])
