"""Simulation of continuous batching where sequences reserve KV cache and may be preempted."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, fields, replace
from functools import cache
from heapq import heappop, heappush

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.clusters.length_aware.pace import DecodingTimeModel

PARTS = ("memory", "compute", "launch", "prompt", "moving")
"""Parts of the time: memory- and GEMM-bound decoding, launches, prefill, and preemptions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Limits of admission and costs of preemption of a server: times in seconds, sizes in tokens.

    A preempted sequence's KV cache waits in host memory or is recomputed; ``moved_s`` is the cost
    per token of bringing it back.
    """

    pace: DecodingTimeModel
    room: int
    """Tokens that fit into memory."""
    most_running: int
    prompt: int
    longest: int
    look_ahead: int
    """Waiting sequences, of which the largest that fits is admitted."""
    moved_s: float


class Batching:
    """Simulation of continuous batching for an endless stream of sequences.

    The stream repeats a list of lengths. Waiting sequences are sorted by ``(reservation,
    -number)``: the largest that fits into memory is admitted first, ties in order of arrival.

    Source:
        Jin et al.: S3: Increasing GPU Utilization during Generative Inference for Higher
        Throughput, 2023: batches by first fit decreasing, preemption and doubling;
        Yu et al.: Orca, 2022 (sequences join and leave between two steps).
    """

    def __init__(self, rules: Rules, tokens: list[int], reserved: list[int]) -> None:
        """Prepare a run; ``tokens`` are true lengths, ``reserved`` initial reservations."""
        self._rules = rules
        self._tokens = tokens
        self._resolve_argument = reserved
        self._reserved = list[int]()
        self._done = list[int]()
        self._begun = list[float]()
        self._waiting = list[tuple[int, int]]()
        self._running = list[tuple[int, int]]()  # (step at which it ends or overflows, sequence)
        self._free = rules.room
        self._base = 0  # context: this plus step x running sequences
        self.sums = Tally()
        self.answers_s = list[float]()
        """Seconds from the first token to the last of each finished sequence."""
        self.most = 0
        self.slowest_s = 0.0

    def run(self, texts: int) -> Tally:
        """Simulate a server; return the totals over at least ``texts`` sequences, after a warm-up.

        The warm-up lasts until as many sequences have finished as can run at once; the totals cover
        at least three times that number.
        """
        before, warm = Tally(), False
        self._admit()
        while self.sums.finished < max(texts, 3 * self.most) + self.most:
            if not warm and self.sums.finished >= self.most:
                before, warm = self.sums.copy(), True
            self._advance(self._running[0][0] - self.sums.steps)
            while self._running and self._running[0][0] == self.sums.steps:
                self._leave(heappop(self._running)[1])
            self._admit()
        return self.sums.since(before)

    def _admit(self) -> None:
        rules = self._rules
        while len(self._running) < rules.most_running:
            self._come()
            place = bisect_right(self._waiting, (self._free, 1)) - 1
            if place < 0:
                break
            room, text = self._waiting.pop(place)
            self._free -= room
            self._enter(-text)
        self.most = max(self.most, len(self._running))

    def _come(self) -> None:
        """Add sequences to the waiting list until it has ``look_ahead`` of them."""
        while len(self._waiting) < self._rules.look_ahead:
            text = len(self._done)
            self._reserved.append(self._resolve_argument[text % len(self._resolve_argument)])
            self._done.append(0)
            self._begun.append(-1.0)
            self._wait(text)

    def _wait(self, text: int) -> None:
        insort(self._waiting, (self._reserved[text] + self._rules.prompt, -text))

    def _needs(self, text: int) -> int:
        return min(self._tokens[text % len(self._tokens)], self._reserved[text])

    def _enter(self, text: int) -> None:
        rules, tally = self._rules, self.sums
        done = self._done[text]
        if self._begun[text] < 0.0:
            self._begun[text] = tally.total_s
            tally.prompt_s += rules.prompt * rules.pace.text_s
        else:
            tally.moving_s += (done + rules.prompt) * rules.moved_s
        heappush(self._running, (tally.steps + self._needs(text) - done, text))
        self._base += rules.prompt + done - tally.steps

    def _advance(self, count: int) -> None:
        tally, texts = self.sums, len(self._running)
        context = self._base + texts * tally.steps
        spent = self._rules.pace.steps(texts, context, count)
        tally.memory_s += spent.memory_s
        tally.compute_s += spent.compute_s
        tally.launch_s += count * self._rules.pace.launch_s
        tally.steps += count
        tally.written += count * texts
        tally.reserved += count * (self._rules.room - self._free)
        tally.used += count * context + texts * count * (count + 1) // 2
        last_s = self._rules.pace.step_s(texts, context + texts * (count - 1))
        self.slowest_s = max(self.slowest_s, last_s)

    def _leave(self, text: int) -> None:
        rules, tally = self._rules, self.sums
        done = self._needs(text)
        self._free += self._reserved[text] + rules.prompt
        self._base -= rules.prompt + done - tally.steps
        self._done[text] = done
        if done == self._tokens[text % len(self._tokens)]:
            tally.finished += 1
            self.answers_s.append(tally.total_s - self._begun[text])
            return
        tally.preempted += 1
        self._reserved[text] = min(2 * self._reserved[text], rules.longest)
        self._wait(text)


@dataclass(slots=True)
class Tally:
    """Running totals of a serving simulation.

    ``reserved`` and ``used`` are in tokens times steps.
    """

    memory_s: float = 0.0
    compute_s: float = 0.0
    launch_s: float = 0.0
    prompt_s: float = 0.0
    moving_s: float = 0.0
    steps: int = 0
    written: int = 0
    reserved: int = 0
    used: int = 0
    finished: int = 0
    preempted: int = 0

    @property
    def total_s(self) -> float:
        return self.memory_s + self.compute_s + self.launch_s + self.prompt_s + self.moving_s

    def copy(self) -> Tally:
        return replace(self)

    def since(self, before: Tally) -> Tally:
        """Return the totals since an earlier copy of the totals of the same simulation."""
        names = [one.name for one in fields(self)]
        return Tally(**{name: getattr(self, name) - getattr(before, name) for name in names})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """Stream of sequences with lognormal output lengths; ``spread`` is the log's deviation."""

    count: int
    median: float
    spread: float
    longest: int
    seed: int


@dataclass(frozen=True, slots=True)
class Texts:
    """Output tokens of each sequence, and the random draws that decide its prediction, (count,)."""

    tokens: Ints
    luck: Floats
    side: Floats


@cache
def texts_of(stream: Stream) -> Texts:
    """Return the sequences of a stream, cached so that all designs have the same ones."""
    rng = np.random.default_rng(stream.seed)
    drawn = stream.median * np.exp(stream.spread * rng.standard_normal(stream.count))
    tokens = np.clip(np.ceil(drawn), 1, stream.longest).astype(np.int64)
    return Texts(tokens, rng.random(stream.count), rng.random(stream.count))


def edges(buckets: int, kind: str, stream: Stream) -> Ints:
    """Return the upper bound of each length bucket in tokens, (buckets,).

    Buckets have equal width (``linear``) or equally many sequences.
    """
    shares = np.arange(1, buckets + 1) / buckets
    if kind == "linear":
        found = np.ceil(shares * stream.longest)
    else:
        found = np.ceil(np.quantile(texts_of(stream).tokens, shares))
        found[-1] = stream.longest
    return found.astype(np.int64)


def guess_lengths(texts: Texts, most: Ints, accuracy: float) -> Ints:
    """Return the output length that a bucket classifier predicts for each sequence, (count,).

    The prediction is the upper bound of a bucket: the right one, or an adjacent one where the
    classifier is wrong. A sequence that is predicted right at some accuracy is predicted right at
    every higher accuracy.

    Args:
        texts: the sequences with their random draws.
        most: upper bound of each bucket in tokens, (buckets,).
        accuracy: share of sequences whose bucket is predicted right.
    """
    right = np.searchsorted(most, texts.tokens)
    wrong = np.where(texts.side < 0.5, right - 1, right + 1)
    last = len(most) - 1
    # At the ends a bucket has only one neighbour, or none if it is the only bucket.
    wrong = np.where(wrong < 0, min(1, last), np.where(wrong > last, max(last - 1, 0), wrong))
    predicted: Ints = most[np.where(texts.luck < accuracy, right, wrong)]
    return predicted
