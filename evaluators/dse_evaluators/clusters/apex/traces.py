"""Request traces: arrival times, prompt lengths and output lengths."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dse.errors import SpecError, nearest
from dse_evaluators.clusters.simulator.traffic import trace as read_trace
from dse_evaluators.csv_files.csv_records import read_rows

_FOLDER = Path(__file__).with_name("requests")

RECORDED_PER_S = 0.5
"""Arrival rate of the shipped traces, in requests per second."""

_MOST_REQUESTS = 1_000_000
"""Most requests that are read of a trace of the user."""


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

    In the shipped traces, lengths are those of Llama-3.1-70B served by vLLM, arrivals a recorded
    Poisson process; both were joined by request. ``creation`` was served by one server on all
    devices, ``creation-short`` by replicas that were asked for shorter answers.

    Args:
        workload: name of a shipped trace, or the path of a CSV file with the columns arrival [s],
            prompt and answer [tokens].
        requests: number of requests; 0: all.

    Raises:
        SpecError: the trace is unknown, cannot be read, or has fewer requests.

    Source:
        microsoft/apex_plus@8769096 (MIT), traces/llama and vllm/results; the prompts are of
        LMSYS-Chat-1M and a news corpus, of which only the lengths are stored.
    """
    if not _is_path(workload) and workload not in workloads():
        raise SpecError(f"workload cannot be {workload!r}", hint=nearest(workload, workloads()))
    whole = _read(Path(workload)) if _is_path(workload) else _whole(workload)
    if requests > len(whole):
        name = label_of_trace(workload)
        raise SpecError(f"{name} has {len(whole)} requests, not {requests}", hint="requests: 0")
    return whole[: requests or None]


@cache
def _whole(workload: str) -> tuple[TraceRequest, ...]:
    return tuple(
        TraceRequest(float(row["arrival_s"]), int(row["prompt"]), int(row["answer"]))
        for row in read_rows(_FOLDER / f"{workload}.csv")
    )


def _read(path: Path) -> tuple[TraceRequest, ...]:
    found = read_trace(path, _MOST_REQUESTS)
    rows = zip(found.arrival.tolist(), found.prompt.tolist(), found.answer.tolist(), strict=True)
    return tuple(TraceRequest(*row) for row in rows)


def _is_path(workload: str) -> bool:
    return "/" in workload or "\\" in workload or workload.endswith(".csv")


def label_of_trace(workload: str) -> str:
    """Return the name of a trace in a space: a shipped one, or a file's without its ending."""
    return Path(workload).stem if _is_path(workload) else workload


def hash_trace(workload: str, requests: tuple[TraceRequest, ...]) -> str:
    """Return a hash of the requests of a user's trace, or an empty text for a shipped one."""
    if not _is_path(workload):
        return ""
    return hashlib.sha256(repr(requests).encode()).hexdigest()[:12]


def recorded_rate(workload: str, requests: tuple[TraceRequest, ...]) -> float:
    """Return the arrivals per second of a trace: of a user's, the mean over its requests.

    A trace whose requests all arrive at once has a nominal rate of one per second.
    """
    if not _is_path(workload):
        return RECORDED_PER_S
    span_s = requests[-1].arrival_s - requests[0].arrival_s
    return (len(requests) - 1) / span_s if span_s > 0.0 else 1.0


def scale_arrivals(requests: tuple[TraceRequest, ...], speedup: float) -> tuple[TraceRequest, ...]:
    """Return the requests with arrivals ``speedup`` times as fast as recorded."""
    return tuple(one._replace(arrival_s=one.arrival_s / speedup) for one in requests)
