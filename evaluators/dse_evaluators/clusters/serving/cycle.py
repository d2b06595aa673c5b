"""The steady state of continuous batching: texts that end make room for prompts, for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.clusters.serving.step import ServingStep, StepTokens

Stepper = Callable[[StepTokens], ServingStep]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingTraffic:
    """Load of one model copy: always as many sequences as it has places; all (n,)."""

    prompt: Floats
    """Tokens of a prompt."""
    answer: Floats
    """Tokens that are written for it."""
    places: Floats
    chunk: Floats
    """Tokens of a prompt that join a step of writing; 0: prompts have steps of their own."""
    guesses: Floats
    yielded: Floats
    """Tokens of each text in one step."""
    copies: Floats
    prefill_copies: Floats
    """Copies that only read prompts, for those that only write; 0: every copy does both."""
    handover_s: Floats
    """Of a prompt's keys and values, from one copy to another."""
    stages: Floats | float = 1.0
    """Of a copy's pipeline."""

    @property
    def steps(self) -> Floats:
        """Of one text, after its first token."""
        return np.maximum(self.answer - 1.0, 1.0) / self.yielded

    @property
    def pieces(self) -> Floats:
        """Steps that a prompt takes."""
        return self.prompt / self.piece

    @property
    def piece(self) -> Floats:
        return np.where(self.chunk > 0, np.minimum(self.chunk, self.prompt), self.prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cycle:
    """Steps and waits of a sequence on its way; every field is (n,)."""

    writing: ServingStep
    """A step without prompts."""
    draft: ServingStep
    laden: ServingStep
    """A step with a piece of a prompt, or of a prompt alone."""
    extra_s: Floats
    """That a laden step takes more of each text's time."""
    met: Floats
    """Laden steps of others for each step of one's own."""
    first_token_s: Floats
    """Without waiting for a place."""
    per_s: Floats
    """Texts that all copies finish in a second."""
    reading: Floats
    """The share of the time, between 0 and 1, that goes to prompts where they are read."""
    running: Floats
    """Texts that are written at once."""
    waves: Floats
    """Steps that are on their way at once, in stages of their own."""

    @property
    def together(self) -> Floats:
        """Texts in one step of writing."""
        return self.running / self.waves

    def token_s(self, traffic: ServingTraffic) -> Floats:
        """The mean time between two tokens of a text."""
        own_s = self.writing.total_s + traffic.guesses * self.draft.total_s
        return (own_s + self.met * self.extra_s) / traffic.yielded


def cycle(traffic: ServingTraffic, target: Stepper, draft: Stepper, reader: Stepper) -> Cycle:
    """The steady state of each row.

    Prompts with steps of their own hold up all texts: in its N places a copy reads one prompt for
    each text that it ends, so a text meets the prompts of the N - 1 others. Pieces that join a step
    make it longer; a text is in ``pieces`` such steps and then in ``steps`` of writing, and no step
    holds more than one piece. Where prompts are read elsewhere, by ``reader``, a text meets none.
    A pipeline has a step in each stage, each with its part of the texts and, at most, a piece of
    its own; and a prompt holds up the others by what one stage takes for it.

    Source:
        Yu et al.: Orca, 2022, section 4 (iterations); Agrawal et al.: Sarathi-Serve, 2024,
        section 4.2 (pieces); Zhong et al.: DistServe, 2024, section 3 (apart); Reiser, Lavenberg:
        Mean-Value Analysis of Closed Multichain Queuing Networks, 1980 (one sees the others alone).
    """
    apart = traffic.prefill_copies > 0
    joined = (traffic.chunk > 0) & ~apart
    running = _running(traffic, joined)
    waves = np.minimum(traffic.stages, running)
    together = running / waves
    context = traffic.prompt + traffic.answer / 2.0
    nothing = np.zeros_like(running)

    def tokens(sequences: Floats, queries: Floats, prompt: Floats) -> StepTokens:
        return StepTokens(
            sequences=sequences,
            queries=queries,
            context=context,
            prompt=prompt,
            length=traffic.prompt,
            waves=waves,
        )

    writing = target(tokens(together, traffic.guesses + 1.0, nothing))
    drafted = draft(tokens(together, np.ones_like(running), nothing))
    beside = np.where(joined, together, 0.0)
    laden = reader(tokens(beside, traffic.guesses + 1.0, traffic.piece))
    more_s = np.where(joined, laden.total_s - writing.total_s, laden.total_s)
    extra_s = more_s / traffic.stages
    own_s = writing.total_s + traffic.guesses * drafted.total_s
    met = np.where(apart, 0.0, _met(traffic, joined))
    read_s = traffic.pieces * laden.total_s
    written_s = traffic.steps * (own_s + met * extra_s)
    per_s, reading = _rates(traffic, read_s, written_s)
    return Cycle(
        writing=writing,
        draft=drafted,
        laden=laden,
        extra_s=extra_s,
        met=met,
        first_token_s=read_s + np.where(apart, traffic.handover_s, 0.0),
        per_s=per_s,
        reading=reading,
        running=running,
        waves=waves,
    )


def _running(traffic: ServingTraffic, joined: Mask) -> Floats:
    """Texts in a step of writing, one's own among them."""
    share = traffic.steps / (traffic.pieces + traffic.steps)
    most = traffic.stages * traffic.steps / traffic.pieces  # a step holds one piece of a prompt
    among = np.minimum(1.0 + (traffic.places - 1.0) * share, np.maximum(most, 1.0))
    return np.where(joined, among, traffic.places)


def _met(traffic: ServingTraffic, joined: Mask) -> Floats:
    others = traffic.places - 1.0
    pieces = others * traffic.pieces / (traffic.pieces + traffic.steps)
    return np.where(joined, np.minimum(pieces, traffic.stages), others / traffic.steps)


def _rates(traffic: ServingTraffic, read_s: Floats, written_s: Floats) -> tuple[Floats, Floats]:
    """Texts a second of all copies, and how much of the time prompts are read."""
    apart = traffic.prefill_copies > 0
    taken_s = written_s + np.where(apart, traffic.handover_s, read_s)
    ends = traffic.copies * traffic.places / taken_s
    readers = np.where(apart, traffic.prefill_copies, traffic.copies)
    limit = traffic.stages * readers / read_s
    per_s = np.minimum(ends, limit)
    return per_s, per_s / limit
