"""Plan of a simulated server, row by row: a policy, its limits, and its cache."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dse.core.values import Array, Floats, Ints, Mask

POLICIES = ("prefill_first", "mixed", "chunked")
"""Prompts hold up the texts; whole prompts join them; pieces of prompts fill them up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPlan:
    """n copies of a model, one of a design's each; every field is (n,)."""

    policy: Ints
    """A place of :data:`POLICIES`."""
    budget: Ints
    """Tokens in an iteration: of prompts, and of texts as well where prompts come in pieces."""
    seats: Ints
    """Requests that are read or written at once."""
    blocks: Ints
    """Of the cache."""
    block: Ints
    """Tokens in one."""
    clients: Ints
    """That ask again when they are answered; 0: requests come by themselves."""

    def take(self, rows: Array) -> SimulatorPlan:
        """The plans of some rows."""
        return SimulatorPlan(
            **{each.name: getattr(self, each.name)[rows] for each in fields(SimulatorPlan)}
        )

    @property
    def chunked(self) -> Mask:
        return self.policy == POLICIES.index("chunked")

    @property
    def halting(self) -> Mask:
        """Mask of the rows whose sequences pause while prompts are read."""
        return self.policy == POLICIES.index("prefill_first")


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationWork:
    """Work of one iteration of each row; every field is (n,)."""

    sequences: Floats
    """Texts that get a token."""
    context: Floats
    """Tokens of all of them together."""
    prompt: Floats
    """Tokens of prompts."""
    square: Floats
    """``c (2 p + c)`` of every piece of c tokens after p others, summed."""
