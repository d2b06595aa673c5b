"""The evaluator ``recommenders.operator-time``: operators by hand, models of the user, mistakes."""

from __future__ import annotations

import json

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.recommenders.model_operators import MODELS, read_model
from dse_evaluators.recommenders.operator_time import OperatorTime

SLOW_BYTES = {
    "rate": 1e30,
    "bandwidth": 1.0,
    "row_bandwidth": 0.5,
    "call_time": 0,
    "memory": "1 TB",
}
CALLS = {**SLOW_BYTES, "bandwidth": 1e30, "row_bandwidth": 1e30, "call_time": 1.0}
SMALL = {
    "model_type": "dlrm",
    "arch_mlp_bot": "4-8",
    "arch_mlp_top": "16-1",
    "arch_embedding_size": "100*3",
    "arch_sparse_feature_size": 8,
    "num_indices_per_lookup": 5,
    "arch_interaction_op": "cat",
}


def metrics_of(platform, sizes=SMALL, **design):
    evaluator = OperatorTime(platforms={"one": platform}, models={"mine": sizes})
    got = evaluator.evaluate(Batch.of([{"model": "mine", "batch": 1, **design}]))
    assert not got.failures
    return {name: column.item() for name, column in got.columns.items()}


def test_bytes_are_those_that_one_counts_by_hand():
    found = metrics_of(SLOW_BYTES, batch=10)
    assert found["lookup_time"] == pytest.approx(4 * (3 * 5 * 8 * 10 / 0.5 + 3 * 8 * 10))
    weights = 4 * 8 + (8 + 3 * 8) * 16 + 16 * 1
    activations = (4 + 3 * 8) + (32 + 3 * 16) + (16 + 3 * 1)
    assert found["linear_time"] == pytest.approx(4 * (weights + 10 * activations))
    assert found["other_time"] == pytest.approx(4 * 2 * 32 * 10)
    assert found["memory"] == 4 * (3 * 100 * 8 + weights)


def test_calls_are_those_of_layers_with_activations_and_of_tables():
    found = metrics_of(CALLS)
    assert (found["linear_time"], found["lookup_time"], found["other_time"]) == (6, 3, 1)


def test_a_product_of_all_pairs_has_fewer_inputs_than_joined_vectors():
    found = read_model({**SMALL, "arch_interaction_op": "dot"}, "net")
    (top,) = [one for one in found.operators if one.kind == "linear"][1:2]
    assert top.macs == (8 + 4 * 3 // 2) * 16


def test_inputs_arrive_over_a_link():
    found = metrics_of({**SLOW_BYTES, "bandwidth": 1e30, "row_bandwidth": 1e30, "link": 2.0})
    assert found["transfer_time"] == pytest.approx((4 * 4 + 8 * 3 * 5) / 2)


@pytest.mark.parametrize(
    ("name", "tables"),
    # Rows of all tables in the published files, times the width of a row.
    [
        ("rm1", 32_000_000 * 32),
        ("rm2", 16_000_000 * 64),
        ("rm3", 20_000_000 * 32),
        ("wnd", 26_000_000 * 32),
        ("mt-wnd", 30_500_000 * 32),
        ("ncf", 336_000 * 64),
        ("din", (21_100_000 + 250 * 100_000) * 32),
        ("dien", 30_500_000 * 32),
    ],
)
def test_published_models_have_their_tables(name, tables):
    assert read_model(MODELS[name], name).table_numbers == tables


@pytest.mark.parametrize(
    ("name", "kind"),
    [("din", "attention"), ("dien", "recurrent"), ("rm3", "linear"), ("rm2", "lookup")],
)
def test_the_calls_of_a_model_are_mostly_those_of_its_kind(name, kind):
    calls = {
        one: sum(
            each.calls for each in read_model(MODELS[name], name).operators if each.kind == one
        )
        for one in ("linear", "lookup", "attention", "recurrent")
    }
    assert max(calls, key=calls.__getitem__) == kind


def test_a_file_of_the_user_is_read(tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({**SMALL, "model_name": "mine"}))
    assert metrics_of(SLOW_BYTES, str(path)) == metrics_of(SLOW_BYTES)


def test_tables_that_do_not_fit_are_infeasible():
    evaluator = OperatorTime(platforms={"one": {**SLOW_BYTES, "memory": "1 GB"}}, model="rm1")
    got = evaluator.evaluate(Batch.of([{"batch": 1}]))
    assert got.failures[0].reason == "rm1 takes 4.1 GB, and one has 1 GB"


WRONG = [
    ({"platforms": {}}, "platforms cannot be"),
    ({"platforms": {"one": {**SLOW_BYTES, "rat": 1}}}, "did you mean 'rate'"),
    ({"platforms": {"one": {"rate": 1e12}}}, "has no bandwidth"),
    ({"platforms": {"one": {**SLOW_BYTES, "rate": 0}}}, "rate is 0"),
    ({"platforms": {"one": {**SLOW_BYTES, "rate": "fast"}}}, "platform 'one': rate is 'fast'"),
    ({"models": {"mine": "nowhere.json"}}, "there is no file nowhere.json"),
    ({"models": {"mine": 7}}, "cannot be 7"),
    ({"models": {"mine": {**SMALL, "model_type": "dlmr"}}}, "did you mean 'dlrm'"),
    ({"models": {"mine": {**SMALL, "arch_mlp_tob": "1"}}}, "did you mean 'arch_mlp_top'"),
    ({"models": {"mine": {**SMALL, "arch_mlp_top": "16,1"}}}, "as in '1024-512-1'"),
    ({"models": {"mine": {**SMALL, "arch_mlp_top": "0-1"}}}, "arch_mlp_top cannot be"),
    ({"models": {"mine": {**SMALL, "arch_interaction_op": "dott"}}}, "did you mean 'dot'"),
    ({"models": {"mine": {**SMALL, "model_type": "din"}}}, "at least 4"),
    ({"model": "rm4"}, "rm"),
]


@pytest.mark.parametrize(("options", "message"), WRONG)
def test_a_mistake_is_named_with_its_mend(options, message):
    with pytest.raises(SpecError) as refused:
        OperatorTime(**{"platforms": {"one": SLOW_BYTES}, **options})
    assert message in f"{refused.value.problem} {refused.value.hint}"
