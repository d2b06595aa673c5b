"""Metrics of a served traffic: waits, rates and memory, as medians over repeats."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dse.core.metric import Failure, Metric
from dse.core.values import Value
from dse.errors import PluginError
from dse_evaluators.generic.answer import Answer, MetricValue
from dse_evaluators.outside.servers.request_draws import Requests
from dse_evaluators.outside.servers.server_process import ServerProcess
from dse_evaluators.outside.servers.streaming_client import (
    Answered,
    Endpoint,
    RequestError,
    send_all,
)

_WAITS = ("ttft", "tpot", "total_time")
_QUANTILES = {"_p50": 50, "_p95": 95, "_p99": 99}

METRICS = (
    *(
        Metric(name=f"{name}{what}", unit="s", goal="minimize")
        for name in _WAITS
        for what in ("", *_QUANTILES)
    ),
    Metric(name="request_rate", unit="1/s", goal="maximize"),
    Metric(name="prompt_throughput", unit="1/s", goal="maximize"),
    Metric(name="throughput", unit="1/s", goal="maximize"),
    Metric(name="memory", unit="B", goal="minimize"),
)


def measure(
    endpoint: Endpoint,
    requests: Requests,
    *,
    clients: int,
    rate: float,
    repeats: int,
    timeout_s: float,
    server: ServerProcess | None,
) -> Answer:
    """Send requests to a server in repeated rounds; return medians of their metrics.

    A warm-up round comes first. The standard error of a metric is that of the repeats' mean; with
    one repeat it is unknown.

    Args:
        endpoint: the server.
        requests: the traffic.
        clients: number of concurrent clients.
        rate: requests per second that arrive (a Poisson process); 0: without pauses.
        repeats: number of measured repeats.
        timeout_s: time limit of each repeat.
        server: the server's process, if it was started for the measurement.
    """
    columns: list[Mapping[str, float]] = []
    for repeat in range(repeats + 1):
        arrivals = requests.arrivals_s(repeat, rate) if rate > 0.0 and repeat else None
        try:
            answers = send_all(
                endpoint,
                requests.draw(repeat)[: None if repeat else clients],
                clients=clients,
                arrivals_s=arrivals,
                deadline=time.monotonic() + timeout_s,
            )
        except TimeoutError:
            words = f": {server.words}" if server is not None and server.words else ""
            reason = f"the requests took more than {timeout_s:g} s{words}"
            return Failure(kind="timeout", reason=reason)
        except RequestError as error:
            return Failure(kind="invalid", reason=str(error))
        except OSError as error:
            return _lost(endpoint, server, error)
        if repeat:
            memory = math.nan if server is None else server.memory_bytes()
            columns.append({**summarize(answers), "memory": memory})
    return {metric.name: _middle([one[metric.name] for one in columns]) for metric in METRICS}


def summarize(answers: Sequence[Answered]) -> dict[str, float]:
    """Return mean and quantiles of the latencies [s] and rates per second of n answers.

    ``ttft`` is the time from a request to its first token; ``tpot`` the time per further
    token; ``total_time`` the time to the last token.
    """
    sent = np.array([one.sent_s for one in answers])
    first = np.array([one.first_s for one in answers])
    last = np.array([one.last_s for one in answers])
    tokens = np.array([one.output_tokens for one in answers])
    several = tokens > 1
    waits = {
        "ttft": first - sent,
        "tpot": (last - first)[several] / (tokens[several] - 1),
        "total_time": last - sent,
    }
    found: dict[str, float] = {}
    for name, seconds in waits.items():
        found[name] = float(seconds.mean()) if seconds.size else math.nan
        for what, percent in _QUANTILES.items():
            found[name + what] = (
                float(np.percentile(seconds, percent)) if seconds.size else math.nan
            )
    span = float(last.max() - sent.min())
    found["request_rate"] = len(answers) / span
    found["prompt_throughput"] = sum(one.prompt_tokens for one in answers) / span
    found["throughput"] = float(tokens.sum()) / span
    return found


def repeats_of(repeats: Any) -> int:
    """Return the number of repeats if it is valid.

    Raises:
        PluginError: it is not a positive integer.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise PluginError(f"repeats is {repeats!r}", hint="it must be an integer of at least 1")
    return repeats


def check_load(load: Mapping[str, Value]) -> str:
    """Return why the load (``clients`` or ``rate``) is invalid; empty if it is valid."""
    clients, rate = float(load["clients"]), float(load["rate"])
    if clients != int(clients) or clients < 1:
        return f"clients is {load['clients']}: it must be an integer of at least 1"
    return "" if 0.0 <= rate < math.inf else f"rate is {load['rate']}: it must be 0 or above"


def _lost(endpoint: Endpoint, server: ServerProcess | None, error: OSError) -> Failure:
    """Return the fault of a connection that failed; the cause is often that the server ended."""
    if server is not None:
        time.sleep(0.2)  # a server that crashes closes its sockets before it can be waited for
        if not server.runs:
            return server.ended()
    return Failure(kind="raised", reason=f"the connection to {endpoint.url} failed: {error}")


def _middle(values: Sequence[float]) -> MetricValue:
    known = [value for value in values if math.isfinite(value)]
    if not known:
        return MetricValue(value=math.nan, why="it cannot be measured on this server or traffic")
    spread = float(np.std(known, ddof=1)) / math.sqrt(len(known)) if len(known) > 1 else None
    return MetricValue(value=float(np.median(known)), spread=spread)
