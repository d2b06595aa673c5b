"""Evaluator ``reasoning.sleep``: thinking about a context before its queries arrive."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dse.core.metric import Failure, Metric, Metrics
from dse.core.values import Floats
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.reading_table import NumberInput, Reading

_TOKENS = NumberInput(0, 1e12)
_INPUTS: Mapping[str, Reading] = {
    "sleep_tokens": _TOKENS,
    "queries": NumberInput(1, 1e9),
    "tokens_after_sleep": _TOKENS,
    "tokens_without_sleep": NumberInput(1, 1e12),
    "latency_weight": NumberInput(1, 1e6, default=10.0),
}
_METRICS = (
    Metric(name="cost_per_query", goal="minimize"),
    Metric(name="saving", goal="maximize"),
    Metric(name="break_even_queries", goal="minimize"),
    Metric(name="tokens_per_query", goal="minimize"),
)


class SleepTime(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1"):
    """Cost of queries about one context, with thinking about the context before they arrive.

    ``cost_per_query`` is in tokens written before the queries arrive: a token that a user waits for
    costs ``latency_weight`` of them. ``saving`` is the cost without such thinking over the cost
    with it; ``break_even_queries`` is the number of queries about the context at which both are
    equal. ``tokens_per_query`` counts all tokens alike.

    Inputs:
        sleep_tokens: tokens of thinking about the context before its queries arrive.
        queries: queries about one context.
        tokens_after_sleep: tokens of an answer of some quality after that thinking.
        tokens_without_sleep: tokens of an answer of the same quality without it.
        latency_weight: cost of a token that a user waits for over that of one before.

    Limits:
        The tokens of answers of equal quality are inputs: measure both with your model and queries.
        How well queries can be foreseen is part of them. A design without break-even, whose answers
        are not shorter after the thinking, is infeasible.

    Error:
        Not validated: it is a sum. The paper's 2.5 at ten queries comes out if the thinking takes
        60 answers' tokens after it, which it does not print.

    Example:
        parameters:
          sleep_tokens: [6000, 15000]
          queries: [1, 2, 5, 10]
          tokens_after_sleep: [250]
          tokens_without_sleep: [1000]

    Source:
        Lin et al.: Sleep-time Compute: Beyond Inference Scaling at Test-time, 2025.
    """

    latency_weight: float | None = None

    def compute(self, inputs: Mapping[str, Floats]) -> Metrics:
        """Return the costs of n designs."""
        sleep, queries, weight = (
            inputs[one] for one in ("sleep_tokens", "queries", "latency_weight")
        )
        after, without = inputs["tokens_after_sleep"], inputs["tokens_without_sleep"]
        cost = sleep / queries + weight * after
        shorter = without - after
        possible = shorter > 0
        columns = {
            "cost_per_query": cost,
            "saving": np.divide(weight * without, cost, out=np.zeros_like(cost), where=cost > 0),
            "break_even_queries": np.divide(
                sleep, weight * shorter, out=np.zeros_like(cost), where=possible
            ),
            "tokens_per_query": sleep / queries + after,
        }
        reason = "tokens_after_sleep must be below tokens_without_sleep"
        never = Failure(kind="infeasible", reason=reason)
        rows = np.flatnonzero(~possible | (cost <= 0)).tolist()
        return Metrics(columns=columns, failures=dict.fromkeys(rows, never))
