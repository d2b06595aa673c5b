"""Designs that are alike are told once, or together, and every row gets what is its own."""

from __future__ import annotations

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Metrics
from dse_evaluators.alike import evaluate_distinct, fix_columns, gather_parts, groups, row_by_row

CODES = np.array([0, 1, 0, 1, 0])


def coded(values: tuple[object, ...] = ("a100", "h100")) -> Batch:
    return Batch({"device": Column.coded(values, CODES)}, len(CODES))


def test_designs_that_agree_are_evaluate_distinct():
    asked = []

    def told(batch: Batch) -> Metrics:
        asked.append(len(batch))
        failure = Failure(kind="infeasible", reason="too large")
        at = int(np.flatnonzero(batch["device"] == "h100")[0])
        return Metrics(columns={"size": np.arange(2.0)}, failures={at: failure})

    found = evaluate_distinct(coded(), {"device"}, told)
    assert asked == [2]
    assert len(set(found.columns["size"][[0, 2, 4]])) == 1
    assert sorted(found.failures) == [1, 3]


def test_equal_designs_are_played_once_and_those_that_cannot_be_say_why():
    asked = []

    def told(design):
        asked.append(design["tp"])
        return {"time": 2.0 * design["tp"]} if design["tp"] < 8 else "more than 8"

    found = row_by_row([{"tp": 4.0}, {"tp": 8.0}, {"tp": 4.0}], ["time"], told)
    assert asked == [4.0, 8.0]
    assert found.columns["time"][[0, 2]].tolist() == [8.0, 8.0]
    assert found.failures == {1: Failure(kind="infeasible", reason="more than 8")}


def test_groups_are_the_rows_that_have_the_same_words():
    batch = coded().with_columns({"format": Column.of(["fp8", "fp8", "bf16", "fp8", None])})
    found = {words: rows.tolist() for words, rows in groups(batch, {"device": "", "format": "x"})}
    assert found == {
        ("a100", "fp8"): [0],
        ("h100", "fp8"): [1, 3],
        ("a100", "bf16"): [2],
        ("a100", "x"): [4],
    }


def test_what_an_option_settles_stands_above_what_the_batch_has():
    batch = fix_columns(coded(), {"device": "b200"})
    assert [words for words, _ in groups(batch, {"device": ""})] == [("b200",)]


def test_parts_fill_their_own_rows_and_their_faults_move_with_them():
    failure = Failure(kind="infeasible", reason="too large")
    parts = [
        (np.array([0, 2]), Metrics(columns={"time": np.array([1.0, 2.0])})),
        (np.array([1, 3]), Metrics(columns={}, failures={1: failure})),
    ]
    found = gather_parts(4, ["time"], parts)
    assert found.columns["time"][[0, 2]].tolist() == [1.0, 2.0]
    assert np.isnan(found.columns["time"][[1, 3]]).all()
    assert found.failures == {3: failure}
