"""Laws of ``clusters.serving-simulator``: exact limits, what is conserved, what may never rise."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.clusters.simulator.request_metrics import TIMES
from dse_evaluators.clusters.simulator.server_settings import POLICIES
from dse_evaluators.clusters.simulator.serving_simulator import ServingSimulator

USUAL = {"tp": 2, "max_num_seqs": 16, "policy": "chunked", "budget": 2048, "rate": 8.0}
LOAD = {"isl": 600, "osl": 60, "isl_spread": 0.6, "osl_spread": 0.6, "requests": 24}


def simulator(**options):
    return ServingSimulator(**{"model": "llama3-8b", **LOAD, **options})


def outcome(*designs, **options):
    return simulator(**options).evaluate(Batch.of([{**USUAL, **one} for one in designs]))


def column(name, *designs, **options):
    """One metric of designs that differ from the usual one."""
    found = outcome(*designs, **options)
    assert not found.failures
    return found.columns[name]


def reason(design, **options):
    return outcome(design, **options).failures[0].reason


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("model", ["llama3-8b", "llama3-70b"])
def test_without_others_the_first_token_takes_the_time_of_its_prompt(policy, model):
    alone = {"model": model, "isl": 1000, "osl": 50}
    design = {"tp": 4, "policy": policy, "rate": 1.0}
    options = {**alone, "isl_spread": 0.0, "osl_spread": 0.0, "requests": 1}
    want = Serving(**alone).evaluate(Batch.of([{"tp": 4, "batch": 1}])).columns
    assert column("ttft", design, **options)[0] == pytest.approx(want["ttft"][0], rel=1e-12)
    assert column("tpot", design, **options)[0] == pytest.approx(want["tpot"][0], rel=1e-3)


def test_full_places_write_as_fast_as_the_steady_state_says():
    """Within the 8 % between a mean and a play; prompts come while others are written."""
    load = {"isl": 1024, "osl": 256, "isl_spread": 0.3, "osl_spread": 0.3, "requests": 200}
    design = {"policy": "prefill_first", "budget": 16384, "max_num_seqs": 32, "concurrency": 32}
    played = column("tpot", design, arrivals="closed", **load)[0]
    steady = Serving(model="llama3-8b", isl=1024, osl=256)
    assert played == pytest.approx(
        steady.evaluate(Batch.of([{"tp": 2, "batch": 32}])).columns["tpot"][0], rel=0.08
    )


designs = st.fixed_dictionaries(
    {
        "policy": st.sampled_from(POLICIES),
        "budget": st.sampled_from([4096, 16384]),
        "max_num_seqs": st.sampled_from([1, 7, 64]),
        "rate": st.sampled_from([0.5, 8.0, 200.0]),
        "replicas": st.sampled_from([1, 3]),
    }
)


@settings(max_examples=5, deadline=None)
@given(st.lists(designs, min_size=1, max_size=5))
def test_parts_sum_and_every_request_is_answered(some):
    told = outcome(*some).columns
    parts = sum(told[f"{name}_time"] for name in TIMES)
    assert parts == pytest.approx(told["total_time"])
    assert (told["request_rate"] > 0).all()
    assert (told["attainment"] == 1).all()
    joules = sum(told[f"{name}_energy"] for name in ("base", "compute", "memory"))
    assert joules == pytest.approx(told["energy_per_token"])
    assert (told["utilization"] <= 1 + 1e-12).all()
    assert (told["waiting_time"] >= 0).all()


@settings(max_examples=3, deadline=None)
@given(st.lists(designs, min_size=2, max_size=6))
def test_a_design_alone_is_that_design_among_others(some):
    together = outcome(*some).columns
    last = outcome(some[-1]).columns
    assert {name: values[-1] for name, values in together.items()} == {
        name: values[0] for name, values in last.items()
    }


SHARES = [0.23, 0.24, 0.25, 0.26, 0.28, 0.3, 0.33, 0.6]


def test_more_room_for_the_cache_takes_less_away():
    """In this load: no law, for a cache that is tiny lets few in, who take less from each other."""
    shares = [{"tp": 1, "memory_share": share, "max_num_seqs": 64, "rate": 1e3} for share in SHARES]
    preemptions = column("preemptions", *shares, isl=1500, osl=1500, block_size=64)
    assert preemptions[0] > 10
    assert preemptions[-1] == 0
    assert (np.diff(preemptions) <= 0).all()


@pytest.mark.parametrize("limit", ["ttft_limit", "tpot_limit", "pace_limit"])
def test_a_tighter_limit_never_lets_more_pass(limit):
    busy = {"rate": 60.0, "policy": "prefill_first", "budget": 16384}
    limits_s = [1e-4, 0.012, 0.1, 60.0]
    found = [column("goodput", busy, **{limit: seconds})[0] for seconds in limits_s]
    assert found == sorted(found)
    assert found[0] == 0
    assert found[-1] == column("request_rate", busy)[0]


def test_sixteen_replicas_for_as_many_times_the_clients_do_sixteen_times_as_much():
    one, sixteen = {"concurrency": 2}, {"concurrency": 32, "replicas": 16}
    alike = {"isl": 200, "osl": 8, "isl_spread": 0.0, "osl_spread": 0.0, "requests": 160}
    rates = column("throughput", one, sixteen, arrivals="closed", **alike)
    assert rates[1] / rates[0] == pytest.approx(16, rel=1e-9)


def test_clients_that_ask_again_never_run_more_at_once():
    running = column("running", {"concurrency": 5}, arrivals="closed")
    assert 4 < running[0] <= 5


def test_a_trace_is_played_as_it_is_told(tmp_path):
    file = tmp_path / "trace.csv"
    rows = "arrival,prompt,answer\n10,500,2\n14,900,3\n30,700,4\n"
    file.write_text(rows, encoding="utf-8-sig")  # with a mark of the order of bytes
    told = outcome({}, arrivals="trace", file=str(file)).columns
    assert told["throughput"][0] == pytest.approx(9 / 20, rel=0.01)
    faster = outcome({"speedup": 2.0}, arrivals="trace", file=str(file)).columns
    assert faster["throughput"][0] == pytest.approx(9 / 10, rel=0.01)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arrival,prompt\n1,2\n", "trace.csv:1: there is no column 'answer'"),
        ("arrival,prompt,answer\n1,x,2\n", "trace.csv:2: prompt is 'x'"),
        ("arrival,prompt,answer\n1,3,2\nnan,3,2\n", "trace.csv:3: arrival is 'nan'"),
        ("arrival;prompt;answer\n1;3;2\n", "trace.csv:1: columns are separated by semicolons"),
        ("arrival,prompt,answer\n1,3,\n", "trace.csv:2: the cell of 'answer' is blank"),
        ("arrival,prompt,answer\n", "trace.csv:2: there are no rows"),
        ("arrival,prompt,answer\n2,5,5\n1,5,5\n", "trace.csv:3: arrivals are not ascending"),
        ("arrival,prompt,answer\n1,5,0\n", "trace.csv:2: answer is '0'"),
    ],
)
def test_a_trace_that_is_none_is_refused(tmp_path, text, said):
    file = tmp_path / "trace.csv"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match=said):
        simulator(arrivals="trace", file=str(file))


def test_a_trace_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SpecError, match="there is no file"):
        simulator(arrivals="trace", file=str(tmp_path / "none.csv"))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "lama"}, "model cannot be"),
        ({"requests": 0}, "requests cannot be 0"),
        ({"arrivals": "trace"}, "no file"),
        ({"arrivals": "never"}, "arrivals cannot be"),
        ({"isl_spread": -1.0}, "isl_spread"),
        ({"device": "abacus"}, "abacus"),
        ({"pace_weight": 2.0}, "pace_weight"),
        ({"ttft_limit": "3 m"}, "m is no s"),
    ],
)
def test_options_that_mean_nothing_are_refused(options, said):
    with pytest.raises(SpecError, match=said):
        simulator(**options)


@pytest.mark.parametrize(
    ("design", "options", "said"),
    [
        ({"tp": 3}, {}, "heads over tensor parallel"),
        ({"budget": 8}, {}, "16 sequences at once, but an iteration has a budget of 8"),
        ({"policy": "mixed", "budget": 700}, {}, "in one step, but the budget is 700"),
        ({"replicas": 40}, {}, "40 replicas, but 24 clients or requests: 16 would be idle"),
        ({"tp": 1}, {"model": "llama3-70b"}, "GiB short"),
        ({"memory_share": 0.1}, {}, "GiB short"),
    ],
)
def test_plans_that_cannot_be_say_why(design, options, said):
    assert said in reason(design, **options)


def test_words_that_nobody_knows_are_refused():
    with pytest.raises(SpecError, match="policy"):
        simulator().check_values({"policy": ["random"]})


def test_the_same_seed_meets_the_same_requests():
    again = [column("ttft", {}, seed=seed)[0] for seed in (3, 3, 4)]
    assert again[0] == again[1] != again[2]


def test_a_device_can_be_a_reading():
    found = column("tpot", {"device": "h100-sxm"}, {"device": "a100-sxm-80gb"}, device=None)
    fixed = column("tpot", {}, device="a100-sxm-80gb")
    assert found[1] == fixed[0] > found[0]


def test_formats_have_the_names_that_number_formats_have():
    short, long = ({"weight_format": name, "kv_format": name} for name in ("fp8", "fp8_e4m3"))
    for evaluator in (simulator(), Serving(model="llama3-8b")):
        evaluator.check_values({"weight_format": ["fp8_e4m3"], "kv_format": ["fp8_e5m2"]})
        usual = {"tp": 2, "batch": 16} if isinstance(evaluator, Serving) else USUAL
        found = evaluator.evaluate(Batch.of([{**usual, **one} for one in (short, long)]))
        assert not found.failures
        assert all(one[0] == one[1] for one in found.columns.values())
