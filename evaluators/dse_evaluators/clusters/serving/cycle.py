"""Steady state of continuous batching: each finished sequence is replaced by a new prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.clusters.serving.inference_step import ServingStep, StepTokens

Stepper = Callable[[StepTokens], ServingStep]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTraffic:
    """Load of one model copy, which always serves ``places`` sequences, in n designs; each (n,)."""

    prompt: Floats
    """Tokens of a prompt."""
    answer: Floats
    """Tokens generated per prompt."""
    places: Floats
    """Sequences that one copy serves concurrently, in prefill or decode."""
    chunk: Floats
    """Prompt tokens that join a decode step; 0: prefill runs in separate steps."""
    guesses: Floats
    """Draft tokens per decode step (speculative decoding)."""
    yielded: Floats
    """Mean number of tokens that one decode step adds to a sequence."""
    copies: Floats
    prefill_copies: Floats
    """Copies that run prefill only, while ``copies`` decode only; 0: every copy does both."""
    sent_s: Floats
    """Seconds that a prefill copy's links take to send a prompt's KV cache to a decode copy."""
    received_s: Floats
    """Seconds that the decode copy's links take to receive it."""
    stages: Floats | float = 1.0
    """Pipeline stages of a copy."""
    prefill_stages: Floats | float = 1.0
    """Pipeline stages of a prefill copy."""
    in_step: bool = False
    """Whether the sequences of a copy start and end together, where prefill has its own steps."""

    @property
    def handover_s(self) -> Floats:
        """Seconds until a prompt's KV cache has moved from the prefill to the decode replica, (n,).

        The slower of the two ends decides.
        """
        return np.maximum(self.sent_s, self.received_s)

    @property
    def steps(self) -> Floats:
        """Number of decode steps of one sequence, after its first token."""
        return np.maximum(self.answer - 1.0, 1.0) / self.yielded

    @property
    def pieces(self) -> Floats:
        """Number of steps that the prefill of one prompt takes."""
        return self.prompt / self.piece

    @property
    def piece(self) -> Floats:
        """Number of prompt tokens in one prefill step."""
        return np.where(self.chunk > 0, np.minimum(self.chunk, self.prompt), self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Steady state of a model replica: iteration times, delays and rates; every field is (n,)."""

    writing: ServingStep
    """Decode step without prefill tokens."""
    draft: ServingStep
    """Step of the draft model."""
    laden: ServingStep
    """Step that contains prefill tokens, with or without decode tokens."""
    extra_s: Floats
    """Seconds that a step with prefill tokens adds to the decode time of each sequence."""
    met: Floats
    """Prefill steps of other sequences per decode step of a sequence."""
    waits: Floats
    """Prefill steps of other sequences before the first token of a sequence that is in step."""
    ttft_s: Floats
    """Seconds to the first token, without queueing behind sequences that are not in step."""
    per_s: Floats
    """Sequences per second that all copies finish."""
    reading: Floats
    """Utilization of the copies that run prefill by prefill, between 0 and 1."""
    running: Floats
    """Sequences in decode at once."""
    waves: Floats
    """Steps in flight at once, each in a different pipeline stage."""

    @property
    def together(self) -> Floats:
        """Number of sequences in one decode step, (n,)."""
        return self.running / self.waves

    def token_s(self, traffic: ServingTraffic) -> Floats:
        """Return the mean seconds between two tokens of a sequence, (n,)."""
        own_s = self.writing.total_s + traffic.guesses * self.draft.total_s
        return (own_s + self.met * self.extra_s) / traffic.yielded


def cycle(traffic: ServingTraffic, target: Stepper, draft: Stepper, reader: Stepper) -> Cycle:
    """Compute the steady state of each design's model copies.

    A copy is a replica of the model. Separate prefill steps stall all decoding sequences: a copy
    that serves N sequences prefills one prompt per finished sequence, so a sequence waits for the
    prompts of the N - 1 others. Prompt chunks that join a decode step lengthen it; a sequence
    spends ``pieces`` steps in prefill and then ``steps`` in decode, and no step contains more than
    one chunk. With separate prefill copies, whose step times are those of ``reader``, a decoding
    sequence waits for no prompt. A pipeline runs one step in each stage, with a part of the
    sequences and at most one chunk; a prompt delays the others by the time of one stage. The links
    of separate prefill copies send a prompt's KV cache while the next prompt is computed.

    Sequences of equal lengths that start together stay in step: all their prompts are computed one
    after the other, and their answers end in the same step. On average a sequence waits for half of
    the N - 1 others before its first token, and for the other half after it.

    Source:
        Patel et al.: Splitwise, 2024, section 4.3 (sending the KV cache beside the next prompt);
        Yu et al.: Orca, 2022, section 4 (iterations); Agrawal et al.: Sarathi-Serve, 2024,
        section 4.2 (chunks); Zhong et al.: DistServe, 2024, section 3 (separate prefill); Reiser,
        Lavenberg: Mean-Value Analysis of Closed Multichain Queuing Networks, 1980 (an arriving
        customer sees the network without itself).
    """
    apart = traffic.prefill_copies > 0
    joined = (traffic.chunk > 0) & ~apart
    running = _running(traffic, joined)
    waves = np.minimum(traffic.stages, running)
    together = running / waves
    context = traffic.prompt + traffic.answer / 2.0
    nothing = np.zeros_like(running)

    def tokens(sequences: Floats, queries: Floats, prompt: Floats, waves: Floats) -> StepTokens:
        return StepTokens(
            sequences=sequences,
            queries=queries,
            context=context,
            prompt=prompt,
            length=traffic.prompt,
            waves=waves,
        )

    writing = target(tokens(together, traffic.guesses + 1.0, nothing, waves))
    drafted = writing  # multiplied by the number of draft tokens
    if (traffic.guesses > 0).any():
        drafted = draft(tokens(together, np.ones_like(running), nothing, waves))
    beside = np.where(joined, together, 0.0)
    prompts = np.where(apart, traffic.prefill_stages, waves)
    laden = reader(tokens(beside, traffic.guesses + 1.0, traffic.piece, prompts))
    more_s = np.where(joined, laden.total_s - writing.total_s, laden.total_s)
    extra_s = more_s / traffic.stages
    own_s = writing.total_s + traffic.guesses * drafted.total_s
    met = np.where(apart, 0.0, _met(traffic, joined))
    read_s = traffic.pieces * laden.total_s
    written_s = traffic.steps * (own_s + met * extra_s)
    per_s, reading = _rates(traffic, read_s, written_s)
    waits = _waits(traffic, apart | joined)
    return Cycle(
        writing=writing,
        draft=drafted,
        laden=laden,
        extra_s=extra_s,
        met=met - waits / traffic.steps,
        waits=waits,
        ttft_s=read_s + waits * extra_s + np.where(apart, traffic.handover_s, 0.0),
        per_s=per_s,
        reading=reading,
        running=running,
        waves=waves,
    )


def _running(traffic: ServingTraffic, joined: Mask) -> Floats:
    """Return the number of sequences in decode at once, (n,)."""
    share = traffic.steps / (traffic.pieces + traffic.steps)
    most = traffic.stages * traffic.steps / traffic.pieces  # a step holds at most one chunk
    among = np.minimum(1.0 + (traffic.places - 1.0) * share, np.maximum(most, 1.0))
    return np.where(joined, among, traffic.places)


def _met(traffic: ServingTraffic, joined: Mask) -> Floats:
    others = traffic.places - 1.0
    pieces = others * traffic.pieces / (traffic.pieces + traffic.steps)
    return np.where(joined, np.minimum(pieces, traffic.stages), others / traffic.steps)


def _waits(traffic: ServingTraffic, beside: Mask) -> Floats:
    """Return the prompts before that of a sequence, (n,); 0 if prefill is ``beside`` decode."""
    return np.where(beside | (not traffic.in_step), 0.0, (traffic.places - 1.0) / 2.0)


def _rates(traffic: ServingTraffic, read_s: Floats, written_s: Floats) -> tuple[Floats, Floats]:
    """Return the sequences per second of all copies, and the utilization by prefill, 0 to 1."""
    apart = traffic.prefill_copies > 0
    taken_s = written_s + np.where(apart, traffic.handover_s, read_s)
    ends = traffic.copies * traffic.places / taken_s
    readers = np.where(apart, traffic.prefill_copies, traffic.copies)
    limit = np.where(apart, traffic.prefill_stages, traffic.stages) * readers / read_s
    per_s = np.minimum(ends, limit)
    if apart.any():
        links = np.minimum(
            traffic.prefill_copies / traffic.sent_s, traffic.copies / traffic.received_s
        )
        per_s = np.where(apart, np.minimum(per_s, links), per_s)
    return per_s, per_s / limit
