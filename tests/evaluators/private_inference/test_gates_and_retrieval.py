"""Gate schedules against their lower bound and a sum, and look-ups that are counted by hand."""

from __future__ import annotations

import pytest

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.private_inference.encrypted_gates import EncryptedGates
from dse_evaluators.private_inference.private_retrieval import PrivateRetrieval


def gates(**design):
    found = EncryptedGates(launch_time=0, exchange_time=0).evaluate(Batch.of([design]))
    return {name: column[0] for name, column in found.columns.items()}


def test_product_of_two_bits_is_four_products_and_an_adder():
    # Two partial products of the lowest bit, one of the next, and the two gates of a half adder.
    assert gates(length=1, word_bits=2)["gates"] == 2 + 1 + 2


@pytest.mark.parametrize("schedule", ["level", "list"])
@pytest.mark.parametrize("slots", [1, 7, 64])
def test_no_schedule_is_faster_than_its_bound_and_one_slot_runs_all_gates(schedule, slots):
    found = gates(length=8, word_bits=6, slots=slots, schedule=schedule)
    assert found["latency"] >= found["lower_bound"] * (1 - 1e-12)
    if slots == 1:
        assert found["latency"] == pytest.approx(found["gates"] * 0.033)


def test_tree_is_less_deep_and_faster_than_a_chain():
    tree, chain = (gates(length=32, sum=kind) for kind in ("tree", "chain"))
    assert tree["depth"] < chain["depth"]
    assert tree["latency"] < chain["latency"]
    assert tree["gates"] == chain["gates"]


TRACE = "user,item\n1,1\n1,2\n2,1\n2,2\n3,1\n3,2\n4,1\n4,2\n"


def retrieve(tmp_path, **design):
    file = tmp_path / "trace.csv"
    file.write_text(TRACE)
    found = PrivateRetrieval(trace=str(file), lookups=2).evaluate(Batch.of([design]))
    return {name: column[0] for name, column in found.columns.items()}


def test_one_query_to_one_table_recovers_one_of_two_look_ups(tmp_path):
    found = retrieve(tmp_path, cold_queries=1)
    assert (found["recovered"], found["evaluations"], found["computation_gain"]) == (0.5, 2.0, 2.0)


@pytest.mark.parametrize("more", [{"cold_queries": 2}, {"bins": 2}, {"neighbours": 1}])
def test_a_second_query_a_second_bin_or_a_neighbour_recovers_the_other(tmp_path, more):
    assert retrieve(tmp_path, **{"cold_queries": 1, **more})["recovered"] == 1.0


def test_published_rates_of_a_gpu_are_17_to_22_times_those_of_a_cpu(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text(TRACE)
    for entries in (16384, 65536, 262144, 1048576):
        rated = PrivateRetrieval(trace=str(file), lookups=2, table_entries=entries)
        designs = Batch.of([{"device": "v100"}, {"device": "cpu-32-threads"}])
        gpu, cpu = rated.evaluate(designs).columns["throughput"]
        assert 16.7 <= gpu / cpu <= 22.4


def test_row_that_is_no_number_is_named_by_its_line(tmp_path):
    file = tmp_path / "trace.csv"
    file.write_text("user,item\n1,2\n1,x\n")
    with pytest.raises(SpecError, match="item is 'x'") as caught:
        PrivateRetrieval(trace=str(file)).evaluate(Batch.of([{"bins": 1}]))
    assert caught.value.where == f"{file}:3"


LOOKUPS = "user,item\n1,1\n1,2\n2,1\n2,3\n3,1\n3,2\n4,3\n4,1\n"


def test_rates_of_the_user_replace_the_published_ones(tmp_path):
    (tmp_path / "trace.csv").write_text(LOOKUPS)
    rates = tmp_path / "rates.csv"
    rates.write_text(
        "device,prf,entries,rate_per_s\nphone,aes,100,50\nphone,aes,400,10\ntablet,sha,100,80\n"
    )
    given = {"trace": str(tmp_path / "trace.csv"), "lookups": 2}
    own = PrivateRetrieval(**given, rates=str(rates), table_entries=200)
    designs = [{"device": "phone", "prf": "aes"}, {"device": "tablet", "prf": "aes"}]
    found = own.evaluate(Batch.of([{"hot_share": 0.0, **one} for one in designs]))
    assert found.columns["throughput"][0] == pytest.approx((50 * 10) ** 0.5)
    assert found.failures[1].reason == "tablet has no rates of aes"
    assert own.version != PrivateRetrieval(**given).version


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "device,prf,entries,rate\nphone,aes,100,50\n",
            "rates.csv:1: there is no column 'rate_per_s'",
        ),
        (
            "device,prf,entries,rate_per_s\nphone,aes,100,fast\n",
            "rates.csv:2: rate_per_s is 'fast'",
        ),
        ("device,prf,entries,rate_per_s\np,a,9,1\np,a,9,2\n", "rates.csv:3: a second rate"),
        ("device,prf,entries,rate_per_s\n", "rates.csv:2: there are no rows"),
    ],
)
def test_rates_that_cannot_be_read_are_named_by_their_line(tmp_path, text, problem):
    (tmp_path / "trace.csv").write_text(LOOKUPS)
    (tmp_path / "rates.csv").write_text(text)
    with pytest.raises(SpecError, match=problem):
        PrivateRetrieval(trace=str(tmp_path / "trace.csv"), rates=str(tmp_path / "rates.csv"))
