"""Runs of iterations against a server that is played request by request, token by token."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse_evaluators.clusters.simulator.fleet import Queue, play
from dse_evaluators.clusters.simulator.server_iteration import IterationCost
from dse_evaluators.clusters.simulator.server_settings import POLICIES, SimulatorPlan

BASE_S, TOKEN_S, CONTEXT_S, SQUARE_S = 5e-3, 1e-5, 2e-7, 3e-10
"""Of an iteration; a token in it; a token of the texts' contexts; of ``c (2 p + c)``."""


def prices(_rows):
    return cost


def cost(work):
    tokens = work.sequences + work.prompt
    seconds = BASE_S + TOKEN_S * tokens + CONTEXT_S * work.context + SQUARE_S * work.square
    return IterationCost(seconds=seconds, compute_j=2.0 * seconds, memory_j=seconds)


class Text:
    """One request of the reference."""

    def __init__(self, number, arrival, prompt, answer):
        self.number, self.arrival, self.prompt, self.answer = number, arrival, prompt, answer
        self.read = self.written = 0
        self.need = prompt
        self.first = self.finish = None
        self.tokens_at = []


class Reference:
    """A server that does one iteration after the other."""

    def __init__(self, design, texts):
        self.design, self.texts, self.now = design, texts, 0.0
        self.waiting = [] if design["clients"] else list(texts)
        self.unasked = list(texts) if design["clients"] else []
        self.running, self.reading = [], []
        self.evictions = 0
        for _ in range(design["clients"]):
            self.ask()

    def ask(self):
        if self.unasked:
            text = self.unasked.pop(0)
            text.arrival = self.now
            self.waiting.append(text)

    def blocks(self, tokens):
        return -(-tokens // self.design["block"])

    def held(self, more):
        texts = sum(self.blocks(one.prompt + one.written - 1 + more) for one in self.running)
        return texts + sum(self.blocks(one.need) for one in self.reading)

    def play(self):
        while self.waiting or self.running or self.reading:
            self.iterate()
        return self

    def iterate(self):
        if not self.running and not self.reading and self.waiting[0].arrival > self.now:
            self.now = self.waiting[0].arrival
        evicted = self.evict()
        pieces = self.pieces(evicted)
        writers = list(self.running)
        if self.design["policy"] == "prefill_first" and pieces:
            writers = []
        prompt = sum(piece for _, piece in pieces)
        square = sum(piece * (2 * text.read + piece) for text, piece in pieces)
        context = sum(one.prompt + one.written for one in writers)
        tokens = len(writers) + prompt
        self.now += BASE_S + TOKEN_S * tokens + CONTEXT_S * context + SQUARE_S * square
        for text in writers:
            self.write(text)
        for text, piece in pieces:
            text.read += piece
            if text.read == text.need:
                self.reading.remove(text)
                self.running.append(text)
                text.first = self.now if text.first is None else text.first
                self.write(text)
        for text in [one for one in self.running if one.written == one.answer]:
            text.finish = self.now
            self.running.remove(text)
            self.ask()

    def write(self, text):
        text.written += 1
        text.tokens_at.append(self.now)

    def evict(self):
        evicted = False
        while self.running and self.held(1) > self.design["blocks"]:
            text = max(self.running + self.reading, key=lambda one: one.number)
            (self.reading if text in self.reading else self.running).remove(text)
            text.need, text.read = text.prompt + text.written, 0
            self.waiting.insert(0, text)
            self.evictions += 1
            evicted = True
        return evicted

    def pieces(self, evicted):
        chunked = self.design["policy"] == "chunked"
        room = self.design["budget"] - (len(self.running) if chunked else 0)
        found = []
        for text in self.reading:
            found.append((text, min(text.need - text.read, room)))
            room -= found[-1][1]
        if any(text.need - text.read > piece for text, piece in found):
            return found
        while not evicted and self.waiting and room > 0:
            text = self.waiting[0]
            slots = self.design["slots"] - len(self.running) - len(self.reading)
            fits = self.held(1) + self.blocks(text.need) <= self.design["blocks"]
            fits &= text.arrival <= self.now and slots > 0
            if not fits or (not chunked and text.need > room):
                break
            self.waiting.pop(0)
            self.reading.append(text)
            found.append((text, min(text.need, room)))
            room -= found[-1][1]
        return found


def reference(design, requests):
    texts = [Text(number, *request) for number, request in enumerate(requests)]
    return Reference(design, texts).play()


def simulated(designs, requests):
    """The states of designs, one row each, that meet the same requests."""
    n = len(designs)
    arrival, prompt, answer = (np.tile(column, (n, 1)) for column in zip(*requests, strict=True))
    plan = SimulatorPlan(
        policy=np.array([POLICIES.index(one["policy"]) for one in designs]),
        **{
            name: np.array([one[name] for one in designs])
            for name in ("budget", "slots", "blocks", "block", "clients")
        },
    )
    queue = Queue(arrival=arrival.astype(float), prompt=prompt, answer=answer)
    return play(plan, queue, prices, weight=0.1)


@st.composite
def cases(draw):
    """Designs that can serve the requests, and the requests."""
    count = draw(st.integers(1, 14))
    gaps = draw(st.lists(st.sampled_from([0.0, 0.003, 0.05, 0.4]), min_size=count, max_size=count))
    lengths = st.tuples(st.integers(1, 300), st.integers(1, 40))
    sizes = draw(st.lists(lengths, min_size=count, max_size=count))
    arrivals = np.cumsum(gaps).tolist()
    requests = [(at, *size) for at, size in zip(arrivals, sizes, strict=True)]
    longest = max(prompt + answer for prompt, answer in sizes)
    policy = draw(st.sampled_from(POLICIES))
    slots = draw(st.integers(1, 8))
    least = slots if policy == "chunked" else longest
    block = draw(st.sampled_from([1, 4, 16]))
    design = {
        "policy": policy,
        "slots": slots,
        "budget": least + draw(st.integers(0, 300)),
        "block": block,
        "blocks": -(-longest // block) + draw(st.sampled_from([0, 3, 40, 4000])),
        "clients": draw(st.sampled_from([0, 0, 1, 4])),
    }
    return design, requests


@settings(max_examples=30, deadline=None)
@given(cases())
def test_a_run_of_iterations_is_what_a_server_does_one_by_one(case):
    design, requests = case
    want = reference(design, requests)
    state, _ = simulated([design], requests)
    assert state.first[0] == pytest.approx([one.first for one in want.texts], rel=1e-9)
    assert state.finish[0] == pytest.approx([one.finish for one in want.texts], rel=1e-9)
    assert state.evictions[0] == want.evictions


@settings(max_examples=25, deadline=None)
@given(cases())
def test_every_token_has_its_gap(case):
    design, requests = case
    design = {**design, "blocks": 10**6}
    want = reference(design, requests)
    _, gaps = simulated([design], requests)
    assert gaps.tokens.sum() == sum(len(one.tokens_at) - 1 for one in want.texts)


def paces(text, weight):
    """The moving average of a text's gaps, gap by gap."""
    gaps = np.diff(text.tokens_at)
    pace = [gaps[0]] if len(gaps) else [0.0]
    for gap in gaps[1:]:
        pace.append(pace[-1] + weight * (gap - pace[-1]))
    return max(pace)


@settings(max_examples=25, deadline=None)
@given(cases())
def test_the_slowest_pace_is_that_of_the_tokens_one_by_one(case):
    design, requests = case
    design = {**design, "blocks": 10**6}
    want = [paces(text, 0.1) for text in reference(design, requests).texts]
    _, gaps = simulated([design], requests)
    assert gaps.slowest[0] == pytest.approx(want, rel=2e-3, abs=1e-9)


def test_a_row_does_not_look_at_the_others():
    requests = [(0.01 * k, 50 + 37 * k % 200, 5 + 11 * k % 30) for k in range(20)]
    usual = {"budget": 400, "slots": 6, "blocks": 40, "block": 16, "clients": 0}
    designs = [{**usual, "policy": name, "slots": slots} for name in POLICIES for slots in (2, 6)]
    together, _ = simulated(designs, requests)
    alone = [simulated([one], requests)[0] for one in designs]
    assert (together.finish == np.concatenate([one.finish for one in alone])).all()
    assert (together.memory_j == np.concatenate([one.memory_j for one in alone])).all()


def test_a_text_alone_takes_one_iteration_for_each_token():
    design = {"budget": 64, "slots": 4, "blocks": 99, "block": 16, "clients": 0}
    state, _ = simulated([{**design, "policy": "chunked"}], [(1.5, 64, 3)])
    read_s = BASE_S + TOKEN_S * 64 + SQUARE_S * 64**2
    written_s = math.fsum(BASE_S + TOKEN_S + CONTEXT_S * kept for kept in (65, 66))
    assert state.first[0, 0] - 1.5 == pytest.approx(read_s, rel=1e-12)
    assert state.finish[0, 0] - state.first[0, 0] == pytest.approx(written_s, rel=1e-12)
    assert state.busy[0] == pytest.approx(read_s + written_s, rel=1e-12)
