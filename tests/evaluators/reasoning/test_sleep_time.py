"""Cost of thinking before queries arrive, against sums by hand."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse_evaluators.reasoning.sleep_time import SleepTime

ANSWERS = {"tokens_after_sleep": 250, "tokens_without_sleep": 1000}


def sleep(**design):
    return SleepTime().evaluate(Batch.of([{**ANSWERS, **design}]))


@pytest.mark.parametrize(
    ("tokens", "queries", "saving"), [(6000, 10, 3.2258), (15000, 10, 2.5), (15000, 1, 0.5714)]
)
def test_the_saving_is_the_ratio_of_both_sums(tokens, queries, saving):
    found = sleep(sleep_tokens=tokens, queries=queries).columns
    assert found["saving"][0] == pytest.approx(saving, abs=5e-5)


def test_both_ways_cost_the_same_at_break_even():
    queries = sleep(sleep_tokens=15000, queries=10).columns["break_even_queries"][0]
    assert queries == 2
    assert sleep(sleep_tokens=15000, queries=queries).columns["saving"][0] == 1


def test_answers_that_are_not_shorter_never_break_even():
    found = sleep(sleep_tokens=100, queries=5, tokens_after_sleep=1000)
    assert "must be below" in found.failures[0].reason
