"""Settings of simulated servers (scheduling policy, limits, KV cache), and an iteration's work."""

from __future__ import annotations

from dataclasses import dataclass, fields

from dse.core.values import Array, Floats, Ints, Mask

POLICIES = ("prefill_first", "mixed", "chunked")
"""Scheduling policies.

``prefill_first`` stops decode for complete prompts, ``mixed`` adds complete prompts to decode
iterations, ``chunked`` fills decode iterations with chunks of prompts up to the budget.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatorPlan:
    """Scheduler settings of n servers, each one copy of the model; every field is (n,)."""

    policy: Ints
    """Index into :data:`POLICIES`."""
    budget: Ints
    """Maximum prefill tokens of an iteration; with ``chunked``, of prefill and decode tokens."""
    slots: Ints
    """Maximum number of requests in prefill or decode."""
    blocks: Ints
    """Blocks of the KV cache."""
    block: Ints
    """Tokens in one block."""
    clients: Ints
    """Clients of a closed loop; 0: requests arrive at given times."""

    def take(self, rows: Array) -> SimulatorPlan:
        """Return the settings of the servers at the indices ``rows``."""
        return SimulatorPlan(
            **{each.name: getattr(self, each.name)[rows] for each in fields(SimulatorPlan)}
        )

    @property
    def chunked(self) -> Mask:
        return self.policy == POLICIES.index("chunked")

    @property
    def halting(self) -> Mask:
        """Mask of the servers that pause decode while prompts are prefilled."""
        return self.policy == POLICIES.index("prefill_first")


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationWork:
    """Sequences and tokens that each of n servers processes in one iteration; fields are (n,)."""

    sequences: Floats
    """Sequences in decode."""
    context: Floats
    """Total tokens of these sequences."""
    prompt: Floats
    """Prefill tokens."""
    square: Floats
    """Sum of ``c (2 p + c)`` over chunks of c tokens after a prefix of p: 2 per query-key pair."""
