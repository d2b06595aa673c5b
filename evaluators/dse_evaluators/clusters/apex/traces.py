"""The requests that a served model gets: when, how long, and how much it answers."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dse.errors import SpecError, nearest

_FOLDER = Path(__file__).with_name("requests")

RECORDED_PER_S = 0.5
"""Requests a second of the recorded arrivals."""


class TraceRequest(NamedTuple):
    """One request; lengths are in tokens."""

    arrival_s: float
    prompt: int
    answer: int


def workloads() -> tuple[str, ...]:
    """The names of the traces."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.csv")))


def trace(workload: str, requests: int = 0) -> tuple[TraceRequest, ...]:
    """The first so many requests of a trace; 0 is all of them.

    Lengths are those that vLLM served of Llama-3.1-70B, arrivals a recorded Poisson process. They
    were joined by request: ``creation`` is what one server of all devices got, ``creation-short``
    what replicas got, who were asked for shorter answers.

    Raises:
        SpecError: there is no such trace, or it has fewer requests.

    Source:
        microsoft/apex_plus@8769096 (MIT), traces/llama and vllm/results; the prompts are of
        LMSYS-Chat-1M and of a news corpus, of which only lengths are here.
    """
    if workload not in workloads():
        raise SpecError(f"workload cannot be {workload!r}", hint=nearest(workload, workloads()))
    whole = _whole(workload)
    if requests > len(whole):
        raise SpecError(f"{workload} has {len(whole)} requests, not {requests}")
    return whole[: requests or None]


@cache
def _whole(workload: str) -> tuple[TraceRequest, ...]:
    with (_FOLDER / f"{workload}.csv").open(encoding="utf-8", newline="") as file:
        return tuple(
            TraceRequest(float(row["arrival_s"]), int(row["prompt"]), int(row["answer"]))
            for row in csv.DictReader(file)
        )


def at_rate(requests: tuple[TraceRequest, ...], per_s: float) -> tuple[TraceRequest, ...]:
    """The same requests, so many a second: their arrivals are stretched."""
    scale = RECORDED_PER_S / per_s
    return tuple(one._replace(arrival_s=one.arrival_s * scale) for one in requests)
