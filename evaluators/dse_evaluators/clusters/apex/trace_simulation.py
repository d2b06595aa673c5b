"""Simulation of a plan on a request trace: makespan, and latencies of each request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.apex.batching import Costs, TimeBreakdown, play
from dse_evaluators.clusters.apex.lane import MOST_NEW_TOKENS, Lane, LaneLimits
from dse_evaluators.clusters.apex.stage import PipelineStage
from dse_evaluators.clusters.apex.traces import TraceRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class ApexResult:
    """Latencies of r simulated requests, and a breakdown of the makespan by cause.

    The breakdown is that of the data-parallel copy that ends last.
    """

    makespan_s: float
    slowest: TimeBreakdown
    """Time of the copy that ends last; its parts sum to the makespan."""
    busy_s: float
    """Sum over all copies."""
    first_s: Floats
    """(r,), seconds from a request's arrival to its first token."""
    writing_s: Floats
    """(r,), seconds from a request's first token to its last."""
    answers: Floats
    """(r,), output tokens."""
    evictions: int
    most_texts: int
    """Most sequences in one step of one lane."""

    @property
    def tpot_s(self) -> float:
        """Mean time per output token after the first, over the tokens of all requests [s]."""
        later = float(np.sum(self.answers - 1.0))
        return float(np.sum(self.writing_s)) / later if later else 0.0

    @property
    def gaps_s(self) -> Floats:
        """Mean seconds per output token after the first of each of r requests, (r,); 0 with one."""
        return self.writing_s / np.maximum(self.answers - 1.0, 1.0)


def run(stage: PipelineStage, requests: Sequence[TraceRequest], most_texts: int) -> ApexResult:
    """Simulate a plan on the requests; return latencies, makespan and counts.

    Requests are distributed round-robin to the data-parallel copies, then to the micro-batches of a
    copy and to the attention replicas. ``most_texts`` limits the sequences of a micro-batch on one
    attention replica.

    Source:
        microsoft/apex_plus@8769096, simulator.py (round robin at each level).
    """
    plan = stage.plan
    limits = LaneLimits(plan.capacity, most_texts, MOST_NEW_TOKENS // plan.attn_replicas)
    costs = Costs(stage)
    ends, lanes, served = [], [], []
    for copy in range(plan.dp):
        mine = requests[copy :: plan.dp]
        batches = [
            [
                mine[batch :: plan.pp][replica :: plan.attn_replicas]
                for replica in range(plan.attn_replicas)
            ]
            for batch in range(plan.pp)
        ]
        there = [[Lane(some, limits) for some in batch] for batch in batches]
        ends.append(play(costs, there))
        lanes += [lane for batch in there for lane in batch]
        served += [one for batch in batches for some in batch for one in some]
    makespan_s, slowest = max(ends, key=lambda end: end[0])
    first = np.array([at for lane in lanes for at in lane.first_s])
    last = np.array([at for lane in lanes for at in lane.last_s])
    return ApexResult(
        makespan_s=makespan_s,
        slowest=slowest,
        busy_s=sum(spent.busy_s for _, spent in ends),
        first_s=first - np.array([one.arrival_s for one in served]),
        writing_s=last - first,
        answers=np.array([float(one.answer) for one in served]),
        evictions=sum(lane.evictions for lane in lanes),
        most_texts=max(lane.most_texts for lane in lanes),
    )
