"""Laws of ``clusters.serving``: limits that are exact, and what may never go the other way."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.serving.model_memory import CACHE_BYTES
from dse_evaluators.clusters.serving.run import count_tokens
from dse_evaluators.clusters.serving.serving import Serving

USUAL = {"tp": 4, "batch": 32, "weight_format": "fp8", "kv_format": "fp8"}

plans = st.fixed_dictionaries(
    {
        "tp": st.sampled_from([1, 2, 4, 8]),
        "batch": st.integers(1, 256),
        "replicas": st.integers(1, 16),
        "chunk": st.sampled_from([0, 128, 512, 4096]),
        "weight_format": st.sampled_from(["bf16", "fp8", "fp8_block"]),
        "kv_format": st.sampled_from(["bf16", "fp8", "nvfp4"]),
    }
)


def outcome(*designs, **options):
    usual = {"model": "llama3-8b", "device": "h200-sxm", "isl": 2048, "osl": 256}
    return Serving(**{**usual, **options}).evaluate(Batch.of(designs))


def told(design, **options):
    """The metrics of one design."""
    return {name: column[0] for name, column in outcome(design, **options).columns.items()}


def column(name, *designs, **options):
    """One metric of designs that differ from the usual one."""
    return outcome(*({**USUAL, **each} for each in designs), **options).columns[name]


def test_one_text_on_one_device_waits_for_nobody():
    alone = told({"tp": 1, "batch": 1})
    assert alone["collectives_time"] == 0
    assert alone["prefill_time"] == 0
    assert alone["draft_time"] == 0


def test_one_text_takes_its_prompt_and_then_its_tokens():
    alone = told({"tp": 1, "batch": 1})
    taken_s = alone["ttft"] + 255 * alone["tpot"]
    assert alone["throughput"] == pytest.approx(256 / taken_s, rel=1e-12)


def test_texts_of_a_full_replica_go_by_as_often_as_they_end():
    full = told(USUAL)
    taken_s = full["ttft"] + 255 * full["tpot"]
    assert full["throughput"] == pytest.approx(32 * 256 / taken_s, rel=1e-12)


@given(plans)
def test_parts_sum_and_no_time_is_negative(plan):
    metrics = told(plan)
    parts = [name for name in metrics if name.endswith("_time")]
    assert all(metrics[name] >= 0 for name in parts)
    assert sum(metrics[name] for name in parts) == pytest.approx(metrics["tpot"])


@given(plans)
def test_prompts_are_read_no_more_than_all_the_time(plan):
    assert 0 < told(plan)["reading"] <= 1 + 1e-12


@given(plans, st.sampled_from(["h100-sxm", "h200-sxm"]))
def test_more_texts_at_once_never_shorten_the_time_of_a_token(plan, device):
    more = {**plan, "batch": plan["batch"] + 1}
    first, second = outcome(plan, more, device=device).columns["tpot"]
    assert second >= first * (1 - 1e-12)


@given(plans)
def test_longer_answers_never_take_less_cache(plan):
    short, long = (told(plan, osl=answer)["cache_memory"] for answer in (128, 129))
    assert long > short


def test_narrower_weights_never_take_more_memory():
    formats = sorted(["bf16", "fp8", "nvfp4"], key=lambda text: RECIPES[text].operand_bytes)
    sizes = column(
        "weights_memory", *({"weight_format": one} for one in formats), device="b200-sxm"
    )
    assert all(small < large for small, large in pairwise(sizes))


def test_narrower_caches_never_take_more_memory():
    formats = sorted(CACHE_BYTES, key=lambda text: CACHE_BYTES[text])
    sizes = column("cache_memory", *({"kv_format": one} for one in formats))
    assert all(small <= large for small, large in pairwise(sizes))


def test_a_token_of_thirteen_billion_weights_keeps_800_kilobytes():
    """Kwon et al., 2023, section 3: OPT-13B, whose layers and width Llama-2-13B has as well."""
    one = told({"tp": 1, "batch": 1}, model="llama2-13b", isl=1000, osl=24)
    assert one["cache_memory"] / 1024 == 800 * 1024


@pytest.mark.parametrize(
    "change",
    [
        {"tp": 8},
        {"batch": 33},
        {"replicas": 2},
        {"prefill_replicas": 1},
        {"chunk": 256},
        {"draft_tokens": 2},
        {"weight_format": "bf16"},
        {"kv_format": "bf16"},
    ],
)
def test_every_knob_moves_a_metric(change):
    columns = outcome(USUAL, {**USUAL, **change}, draft_model="llama3-8b").columns
    assert any(values[0] != values[1] for values in columns.values())


def test_smaller_pieces_of_prompts_shorten_the_longest_gap():
    gaps = column("token_gap", {"chunk": 256}, {"chunk": 1024}, {"chunk": 0})
    assert all(small < large for small, large in pairwise(gaps))


def test_prompts_that_are_read_elsewhere_hold_up_no_text():
    together, apart = column("prefill_time", {}, {"prefill_replicas": 1})
    assert together > 0
    assert apart == 0


def test_readers_may_be_of_another_size_than_writers():
    apart = {"replicas": 4, "prefill_replicas": 4}
    devices = column("devices", apart, {**apart, "prefill_tp": 1})
    assert devices.tolist() == [32.0, 20.0]
    tokens = column("tpot", apart, {**apart, "prefill_tp": 1})
    assert tokens[0] == tokens[1]
    reads = column("ttft", apart, {**apart, "prefill_tp": 1})
    assert reads[1] > reads[0]


def test_a_reader_that_cannot_hold_the_model_is_infeasible():
    plan = {"tp": 8, "batch": 1, "prefill_replicas": 1, "prefill_tp": 1}
    assert "GiB short" in outcome(plan, model="llama3-70b").failures[0].reason


def test_too_few_readers_of_prompts_hold_up_the_others():
    rates = column("throughput", *({"replicas": 8, "prefill_replicas": n} for n in (1, 2, 64)))
    assert rates[1] == pytest.approx(2 * rates[0])
    assert rates[2] < 64 * rates[0]


def test_replicas_multiply_the_rate_and_nothing_of_a_text():
    one, four = outcome(USUAL, {**USUAL, "replicas": 4}).columns["throughput"]
    assert four == pytest.approx(4 * one)
    tokens = column("tpot", {}, {"replicas": 4})
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize(("acceptance", "tokens"), [(0.0, 1.0), (0.5, 1.75), (1.0, 3.0)])
def test_two_guesses_yield_one_to_three_tokens(acceptance, tokens):
    """Leviathan et al., 2023, equation 1."""
    assert count_tokens(np.array([2.0]), acceptance)[0] == pytest.approx(tokens)


def test_guesses_that_are_never_right_cost_time():
    without, with_guesses = column(
        "tpot", {}, {"draft_tokens": 3}, model="llama3-70b", draft_model="llama3-8b", acceptance=0.0
    )
    assert with_guesses > without


def test_guesses_that_are_mostly_right_save_time_where_few_texts_run():
    without, with_guesses = column(
        "tpot",
        {"batch": 1},
        {"batch": 1, "draft_tokens": 3},
        model="llama3-70b",
        draft_model="llama3-8b",
        acceptance=0.9,
    )
    assert with_guesses < without


def test_what_does_not_fit_is_told_with_what_is_short():
    failures = outcome({"tp": 1, "batch": 8}, model="llama3-70b").failures
    assert failures[0].kind == "infeasible"
    assert "GiB short" in failures[0].reason


def test_plans_that_lack_the_same_share_one_fault():
    failures = outcome(*[{"tp": 1, "batch": 8}] * 50, model="llama3-70b").failures
    assert len(failures) == 50
    assert len({id(failure) for failure in failures.values()}) == 1


def test_texts_without_room_wait_where_they_may():
    found = outcome({"tp": 1, "batch": 4096}, waiting=True)
    assert not found.failures
    assert found.columns["running"][0] < 4096
    assert found.columns["headroom"][0] >= 0


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ({"tp": 3}, "heads over tensor parallel devices: 32 in 3"),
        ({"tp": 12}, "tensor parallel over 12 devices, but a node has 8"),
        ({"chunk": 64, "prefill_replicas": 2}, "chunks of 64 tokens"),
    ],
)
def test_a_plan_that_there_cannot_be_says_why(plan, words):
    assert words in outcome({**USUAL, **plan}).failures[0].reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "llama3-80b"}, "model cannot be"),
        ({"device": "h1000"}, "device cannot be"),
        ({"device": "mi300x"}, "no measured fabric for device mi300x"),
        ({"draft_model": "llama"}, "model cannot be"),
        ({"acceptance": 2.0}, "acceptance cannot be"),
        ({"osl": 1}, "osl cannot be"),
    ],
)
def test_options_that_there_cannot_be_are_refused(options, words):
    with pytest.raises(SpecError, match=words):
        Serving(**{"model": "llama3-8b", **options})


@pytest.mark.parametrize(
    "ask",
    [
        lambda: Serving(model="llama3-8b", device="l40s"),
        lambda: Serving(model="llama3-8b", device=None).check_values({"device": ["l40s"]}),
    ],
    ids=["option", "parameter"],
)
def test_a_device_without_a_fabric_is_answered_with_a_system_that_has_it(ask):
    with pytest.raises(SpecError, match="no measured fabric for device l40s") as refused:
        ask()
    assert refused.value.hint == "system: l40s-pcie, in place of device"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"weight_format": ["nvfp4"]}, "no units for nvfp4"),
        ({"weight_format": ["int3"]}, "weight_format cannot be"),
        ({"kv_format": ["int3"]}, "kv_format cannot be"),
        ({"tp": [0]}, "tp cannot be"),
    ],
)
def test_values_that_there_cannot_be_are_refused(values, words):
    with pytest.raises(SpecError, match=words):
        Serving(model="llama3-8b").check_values(values)


def test_a_borrowed_fabric_is_told_where_it_is_used():
    flags = column("extrapolated", {"tp": 1}, {"tp": 4}, device="b200-sxm")
    assert flags.tolist() == [0.0, 1.0]


def test_equal_lengths_wait_as_in_a_simulated_queue_of_prompts_first():
    usual, equal = told(USUAL), told(USUAL, equal_lengths=True)
    prompt_s = usual["ttft"]
    decode_s = usual["tpot"] - usual["prefill_time"]
    firsts = prompt_s * np.arange(1, 33)  # all prompts come at 0, one is computed after another
    end = firsts[-1] + 255 * decode_s  # then all decode in the same steps
    assert equal["ttft"] == pytest.approx(np.mean(firsts), rel=1e-12)
    assert equal["tpot"] == pytest.approx(np.mean(end - firsts) / 255, rel=1e-12)
    assert equal["token_gap"] == pytest.approx(firsts[-1] - firsts[0] + decode_s, rel=1e-12)
    assert equal["throughput"] == pytest.approx(32 * 256 / end, rel=1e-12)
    assert equal["throughput"] == pytest.approx(usual["throughput"], rel=1e-12)


def test_equal_lengths_without_an_effect_are_refused():
    served = Serving(model="llama3-8b", device="h200-sxm", equal_lengths=True)
    with pytest.raises(SpecError, match="no effect on chunks"):
        served.check_values({"chunk": [128, 512]})
    served.check_values({"chunk": [0, 512]})
