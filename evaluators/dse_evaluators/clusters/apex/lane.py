"""Scheduling of the sequences of one lane: one micro-batch on one attention replica."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from dse_evaluators.clusters.apex.traces import TraceRequest

MOST_NEW_TOKENS = 65_536
"""Most new tokens in one step: APEX's value."""


class LaneLimits(NamedTuple):
    """Limits of one micro-batch on one attention replica (a lane).

    They are the most cached tokens, sequences, and new tokens per step.
    """

    capacity: int
    """Most cached tokens."""
    texts: int
    new_tokens: int


class Begun(NamedTuple):
    """Work of one step: sequences in decode, and prompt tokens in prefill."""

    writing: int
    prompts: int
    """Total tokens of the prompts."""
    squares: int
    """Sum of the squared lengths of the prompts."""


class Lane:
    """Running, preempted and waiting sequences of one micro-batch on one attention replica.

    A running sequence grows by one token per step and ends at the length of its request.

    Source:
        Yu et al.: Orca, 2022, section 4 (iteration-level batching); Kwon et al.: PagedAttention,
        2023, section 4.5 (the newest sequence is preempted); microsoft/apex_plus@8769096,
        simulator.py (priority: running, then preempted, then waiting sequences).
    """

    __slots__ = (
        "_ends",
        "_heap",
        "_left",
        "_limits",
        "_next",
        "_requests",
        "_step",
        "_stopped",
        "cached",
        "evictions",
        "first_s",
        "fresh",
        "last_s",
        "most_texts",
        "next_s",
    )

    def __init__(self, requests: Sequence[TraceRequest], limits: LaneLimits) -> None:
        self.first_s = [0.0] * len(requests)
        self.last_s = [0.0] * len(requests)
        self.cached = 0
        """Cached tokens, including those that the current step adds."""
        self.evictions = self.most_texts = 0
        self.next_s = requests[0].arrival_s if requests else math.inf
        """Arrival time of the next request."""
        self.fresh: list[int] = []
        """Sequences whose prompt is in the current step."""
        self._requests, self._limits = requests, limits
        self._next = self._step = 0
        self._ends: dict[int, int] = {}  # last step of each running sequence, oldest first
        self._heap: list[tuple[int, int]] = []  # the same as a heap by step; entries may be stale
        self._stopped: list[int] = []
        self._left: dict[int, int] = {}  # remaining tokens of each preempted sequence

    @property
    def texts(self) -> int:
        """Number of running sequences of the lane (one micro-batch on one attention replica)."""
        return len(self._ends)

    def begin(self, clock_s: float) -> Begun:
        """Begin the next step of a lane: preempt, resume and admit sequences; return its work."""
        self.fresh = []
        limits, running = self._limits, len(self._ends)
        calm = not self._stopped and self.next_s > clock_s
        if calm and self.cached + running <= limits.capacity:
            self.cached += running
            return Begun(running, 0, 0)
        while self.cached + len(self._ends) > limits.capacity:
            self._stop()
        self.cached += len(self._ends)
        while self._stopped and self._try_resume(self._stopped[0]):
            del self._stopped[0]
        writing = len(self._ends)
        prompts = squares = 0
        while not self._stopped and self.next_s <= clock_s and len(self._ends) < limits.texts:
            prompt = self._requests[self._next].prompt
            if self.cached + prompt > limits.capacity:
                break
            if writing + prompts + prompt > limits.new_tokens and self._ends:
                break
            self._admit()
            prompts += prompt
            squares += prompt * prompt
        self.most_texts = max(self.most_texts, len(self._ends))
        return Begun(writing, prompts, squares)

    def steps(self) -> int:
        """Return the number of steps until some sequence of the lane ends or is preempted."""
        while self._ends.get(self._heap[0][1]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        room = 1 + (self._limits.capacity - self.cached) // len(self._ends)
        return min(self._heap[0][0] - self._step, room)

    def advance(self, steps: int, clock_s: float) -> None:
        """Complete ``steps`` steps of a lane, the last of which ends at ``clock_s``."""
        self.cached += (steps - 1) * len(self._ends)
        self._step += steps
        for text in self.fresh:
            self.first_s[text] = clock_s
        while self._heap and self._heap[0][0] <= self._step:
            end, text = heapq.heappop(self._heap)
            if self._ends.get(text) == end:
                del self._ends[text]
                self.last_s[text] = clock_s
                self.cached -= self._requests[text].prompt + self._requests[text].answer - 1

    def _admit(self) -> None:
        text = self._next
        self.cached += self._requests[text].prompt
        self._run(text, self._requests[text].answer)
        self.fresh.append(text)
        self._next += 1
        more = self._next < len(self._requests)
        self.next_s = self._requests[self._next].arrival_s if more else math.inf

    def _run(self, text: int, tokens: int) -> None:
        self._ends[text] = self._step + tokens
        heapq.heappush(self._heap, (self._step + tokens, text))

    def _stop(self) -> None:
        text, end = self._ends.popitem()
        self._left[text] = end - self._step
        self._stopped = sorted([*self._stopped, text])
        self.cached -= self._length(text)
        self.evictions += 1

    def _try_resume(self, text: int) -> bool:
        """Resume a preempted sequence if it fits, and return whether it runs again.

        Its cached tokens are restored at no cost.
        """
        if self.cached + self._length(text) + 1 > self._limits.capacity:
            return False
        if len(self._ends) >= self._limits.texts:
            return False
        self.cached += self._length(text) + 1
        self._run(text, self._left[text])
        return True

    def _length(self, text: int) -> int:
        """Return the cached tokens of a preempted sequence before its next step."""
        one = self._requests[text]
        return one.prompt + one.answer - self._left[text] - 1
