"""Request traces: arrival times, prompt lengths and output lengths."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import NamedTuple

from dse.errors import SpecError, nearest
from dse_evaluators.csv_records import read_rows

_FOLDER = Path(__file__).with_name("requests")

RECORDED_PER_S = 0.5
"""Arrival rate of the recorded traces, in requests per second."""


class TraceRequest(NamedTuple):
    """Request of a trace: its arrival, and the lengths of prompt and answer in tokens."""

    arrival_s: float
    prompt: int
    answer: int


def workloads() -> tuple[str, ...]:
    """Return the names of the shipped request traces."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.csv")))


def trace(workload: str, requests: int = 0) -> tuple[TraceRequest, ...]:
    """Return the first ``requests`` requests of a trace; 0 returns them all.

    Lengths are those of Llama-3.1-70B served by vLLM, arrivals a recorded Poisson process; both
    were joined by request. ``creation`` was served by one server on all devices,
    ``creation-short`` by replicas that were asked for shorter answers.

    Raises:
        SpecError: the trace is unknown, or has fewer requests.

    Source:
        microsoft/apex_plus@8769096 (MIT), traces/llama and vllm/results; the prompts are of
        LMSYS-Chat-1M and a news corpus, of which only the lengths are stored.
    """
    if workload not in workloads():
        raise SpecError(f"workload cannot be {workload!r}", hint=nearest(workload, workloads()))
    whole = _whole(workload)
    if requests > len(whole):
        raise SpecError(f"{workload} has {len(whole)} requests, not {requests}")
    return whole[: requests or None]


@cache
def _whole(workload: str) -> tuple[TraceRequest, ...]:
    return tuple(
        TraceRequest(float(row["arrival_s"]), int(row["prompt"]), int(row["answer"]))
        for row in read_rows(_FOLDER / f"{workload}.csv")
    )


def at_rate(requests: tuple[TraceRequest, ...], per_s: float) -> tuple[TraceRequest, ...]:
    """Return the requests with arrival times scaled to ``per_s`` requests per second."""
    scale = RECORDED_PER_S / per_s
    return tuple(one._replace(arrival_s=one.arrival_s * scale) for one in requests)
