"""Texts by guessed lengths: against a run step by step, sums in closed form, and limits."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.accelerators.devices.devices import device_of
from dse_evaluators.clusters.length_aware.length_aware_batching import LengthAwareBatching
from dse_evaluators.clusters.length_aware.pace import DecodingTimeModel, ServedModel
from dse_evaluators.clusters.length_aware.reserved_batching import (
    Batching,
    Rules,
    Stream,
    edges,
    guess_lengths,
    texts_of,
)
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

PACE = DecodingTimeModel(weights_s=5e-3, token_read_s=1e-6, text_s=2e-4, launch_s=1e-3)
RULES = Rules(
    pace=PACE, room=700, most_running=50, prompt=5, longest=200, look_ahead=12, moved_s=1e-5
)
STREAM = Stream(count=300, median=40.0, spread=1.0, longest=200, seed=2)
GUESSED = {
    "model": "opt-30b",
    "policy": "guessed",
    "devices": 2,
    "buckets": 10,
    "boundaries": "linear",
    "accuracy": 0.7,
    "margin": 0.0,
    "preemption": "swap",
    "batch": 200,
    "cache_bits": 16,
}
HOMES = [("gpt-j-6b", 1), ("llama2-13b", 1), ("opt-30b", 1), ("gpt3-175b", 6)]


def told(design, **options):
    got = LengthAwareBatching(**{"texts": 400, **options}).evaluate(Batch.of([design]))
    assert not got.failures
    return {name: float(values[0]) for name, values in got.columns.items()}


def home(model, devices=1, cache_bits=16.0):
    return ServedModel(
        model=TRANSFORMERS[model],
        device=device_of("a100-sxm-80gb"),
        devices=devices,
        cache_bits=cache_bits,
        launch_s=2e-3,
        kept_share=0.95,
        host_bytes_per_s=25e9,
    )


@dataclass(eq=False)
class Text:
    """One that waits or runs."""

    number: int
    reserved: int
    needs: int
    done: int = 0
    again: bool = False


class Stepwise:
    """The same run, one step at a time, with nothing kept that could be added up anew."""

    def __init__(self, rules, tokens, reserved):
        self.rules, self.stream = rules, list(zip(reserved, tokens, strict=True))
        self.waiting, self.running = [], []
        self.come = self.steps = self.finished = self.preempted = 0
        self.seconds = 0.0

    def fitting(self):
        if len(self.running) == self.rules.most_running:
            return None
        while len(self.waiting) < self.rules.look_ahead:
            self.waiting.append(Text(self.come, *self.stream[self.come % len(self.stream)]))
            self.come += 1
        room = self.rules.room - sum(one.reserved + self.rules.prompt for one in self.running)
        fits = [one for one in self.waiting if one.reserved + self.rules.prompt <= room]
        return max(fits, key=lambda one: (one.reserved, -one.number), default=None)

    def admit(self):
        while (text := self.fitting()) is not None:
            self.waiting.remove(text)
            self.running.append(text)
            moved = (text.done + self.rules.prompt) * self.rules.moved_s
            self.seconds += moved if text.again else self.rules.prompt * self.rules.pace.text_s

    def step(self):
        context = sum(one.done + self.rules.prompt for one in self.running)
        self.seconds += self.rules.pace.step_s(len(self.running), context)
        self.steps += 1
        for text in tuple(self.running):
            text.done += 1
            if text.done in (text.needs, text.reserved):
                self.running.remove(text)
                self.leave(text)

    def leave(self, text):
        if text.done == text.needs:
            self.finished += 1
            return
        self.preempted += 1
        text.reserved, text.again = min(2 * text.reserved, self.rules.longest), True
        self.waiting.append(text)

    def run(self, texts):
        self.admit()
        while self.finished < texts:
            self.step()
            self.admit()
        return self


@pytest.mark.parametrize("accuracy", [1.0, 0.5])
@pytest.mark.parametrize("rules", [RULES, replace(RULES, most_running=4)])
def test_events_are_those_of_a_run_step_by_step(accuracy, rules):
    texts = texts_of(STREAM)
    given_tokens = guess_lengths(texts, edges(8, "linear", STREAM), accuracy)
    tokens, reserved = texts.tokens.tolist(), given_tokens.tolist()
    run = Batching(rules, tokens, reserved)
    run.run(120)
    slow = Stepwise(rules, tokens, reserved).run(len(run.answers_s))
    assert (run.sums.steps, run.sums.preempted) == (slow.steps, slow.preempted)
    assert run.sums.total_s == pytest.approx(slow.seconds, rel=1e-9)


@settings(deadline=None, max_examples=30)
@given(texts=st.integers(1, 300), context=st.integers(0, 30_000), count=st.integers(1, 400))
def test_many_steps_take_the_sum_of_their_times(texts, context, count):
    steps = [PACE.step_s(texts, context + texts * step) for step in range(count)]
    spent = PACE.steps(texts, context, count)
    total_s = spent.memory_s + spent.compute_s + count * PACE.launch_s
    assert total_s == pytest.approx(sum(steps), rel=1e-12)


@pytest.mark.parametrize(("model", "devices"), HOMES)
def test_guesses_write_more_than_the_worst_case_and_less_than_who_knows(model, devices):
    worst, guesses, known = (
        told({"model": model, "devices": devices, "policy": policy})["throughput"]
        for policy in ("worst-case", "guessed", "known")
    )
    assert worst < guesses < known


@pytest.mark.parametrize(("model", "devices"), HOMES)
def test_as_many_longest_texts_run_at_once_as_find_room(model, devices):
    got = told({"model": model, "devices": devices, "policy": "worst-case"}, texts=50)
    assert got["most_running"] == home(model, devices).room // 2048
    assert got["running"] == got["most_running"]


@settings(deadline=None, max_examples=30)
@given(
    model=st.sampled_from(["gpt-j-6b", "llama2-13b", "opt-30b"]),
    devices=st.integers(1, 16),
    bits=st.integers(2, 16),
)
def test_more_memory_and_fewer_bits_never_leave_less_room(model, devices, bits):
    here = home(model, devices, bits)
    assert home(model, devices + 1, bits).room >= here.room
    assert home(model, devices, bits - 1).room >= here.room


def test_one_text_at_a_time_takes_what_its_steps_take():
    design = {"model": "opt-30b", "devices": 2, "policy": "known", "batch": 1}
    got = told(design, median=100.0, spread=0.0, texts=20)
    pace = home("opt-30b", 2).pace
    read_s = sum(pace.weights_s + (48 + step) * pace.token_read_s for step in range(100))
    assert got["text_time"] == pytest.approx(read_s + 100 * 2e-3 + 48 * pace.text_s, rel=1e-9)
    assert got["answer_p99"] == pytest.approx(got["text_time"], rel=1e-9)


def test_right_guesses_put_nobody_out_and_wrong_ones_some():
    right, wrong = (told({**GUESSED, "accuracy": x})["preempted_share"] for x in (1.0, 0.0))
    assert right == 0.0
    assert wrong > 0.02


@pytest.mark.parametrize("kind", ["linear", "quantile"])
@pytest.mark.parametrize("buckets", [1, 2, 7, 40])
def test_who_always_guesses_right_reserves_enough_and_no_bucket_too_many(kind, buckets):
    texts, most = texts_of(STREAM), edges(buckets, kind, STREAM)
    given_tokens = guess_lengths(texts, most, 1.0)
    below = np.concatenate([[0], most])[np.searchsorted(most, given_tokens)]
    assert (given_tokens >= texts.tokens).all()
    assert (below < texts.tokens).all()
    assert most[-1] == STREAM.longest


@pytest.mark.parametrize("accuracy", [0.0, 0.3, 0.9])
def test_wrong_guesses_are_one_bucket_off(accuracy):
    texts, most = texts_of(STREAM), edges(8, "linear", STREAM)
    off = np.searchsorted(most, guess_lengths(texts, most, accuracy)) - np.searchsorted(
        most, texts.tokens
    )
    assert (np.abs(off) == (texts.luck >= accuracy)).all()


@pytest.mark.parametrize(
    ("model", "published"),
    [
        # Of the published files: biases and norms are not counted here.
        ("gpt-j-6b", 6_053_381_344),
        ("opt-30b", 29_974_540_288),
        ("gpt3-175b", 174_600_000_000),
    ],
)
def test_weights_are_two_bytes_for_each_published_one(model, published):
    assert home(model).weight_bytes == pytest.approx(2 * published, rel=5e-3)


@pytest.mark.parametrize(
    "change",
    [
        {"model": "llama2-13b"},
        {"policy": "known"},
        {"devices": 4},
        {"buckets": 5},
        {"boundaries": "quantile"},
        {"accuracy": 0.9},
        {"margin": 0.5},
        {"preemption": "recompute"},
        {"batch": 20},
        {"cache_bits": 8},
    ],
    ids=lambda change: next(iter(change)),
)
def test_no_reading_is_inert(change):
    assert told({**GUESSED, **change})["throughput"] != told(GUESSED)["throughput"]


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"model": "gpt3-175b", "devices": 4}, "B short"),
        ({"model": "opt-30b", "devices": 1, "cache_bits": 64}, "B short"),
    ],
)
def test_a_server_without_room_for_the_longest_text_says_how_much_it_lacks(design, reason):
    got = LengthAwareBatching(longest=4000).evaluate(Batch.of([{**design, "policy": "known"}]))
    assert got.failures[0].kind == "infeasible"
    assert reason in got.failures[0].reason


@pytest.mark.parametrize(
    "options", [{"device": "tpu-v4"}, {"model": "gpt-5"}, {"texts": 0}, {"kept_share": 2.0}]
)
def test_an_option_that_is_none_is_refused(options):
    with pytest.raises(SpecError):
        LengthAwareBatching(**options)
