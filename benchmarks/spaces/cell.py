"""One cell of the table in its own process: one tool, one space, one question, one answer."""

from __future__ import annotations

import json
import resource
import signal
import statistics
import time
from collections.abc import Callable
from typing import Any

from cases import CASES
from statement import Statement
from tool import MOST, NotOfferedError, Tool

DRAWN = 10_000
MANY = 10_000_000
"""A space with more designs than this is listed only in part."""
_MEMORY = 12 * 2**30
_ENOUGH_S = 1.0
_REPEATS = 5


def run(tool: Tool, name: str, question: str, limit_s: float) -> None:
    """Answer one question and print the answer; the process is killed at the limit."""
    statement = CASES[name]
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    try:
        tool.prepare(statement)
        answer = _QUESTIONS[question](tool, statement, limit_s)
    except NotOfferedError as error:
        answer = {"verdict": str(error)}
    except MemoryError:
        answer = {"verdict": f"more than {_MEMORY >> 30} GiB"}
    print(json.dumps(answer))


def _counted(tool: Tool, statement: Statement, limit_s: float) -> dict[str, Any]:
    seconds, designs = _timed(lambda: tool.count(statement), limit_s)
    right = designs == statement.designs()
    return {"seconds": seconds, "designs": designs, "verdict": "ok" if right else "wrong count"}


def _listed(tool: Tool, statement: Statement, limit_s: float) -> dict[str, Any]:
    total = statement.designs()
    most = MOST if total > MANY else None
    seconds, designs = _timed(lambda: tool.listed(statement, most), limit_s)
    right = designs == total or (most is not None and designs >= most)
    return {"seconds": seconds, "designs": designs, "verdict": "ok" if right else "wrong number"}


def _drawn(tool: Tool, statement: Statement, limit_s: float) -> dict[str, Any]:
    from checks import verdict

    seconds, drawn = _timed(lambda: tool.sampled(statement, DRAWN, 1), limit_s)
    told = verdict(statement, tool.rows(statement, drawn), DRAWN)
    return {"seconds": seconds, "designs": DRAWN, "verdict": told}


_QUESTIONS = {"count": _counted, "list": _listed, "draw": _drawn}


def _timed(act: Callable[[], Any], limit_s: float) -> tuple[float, Any]:
    """The median time of a few calls, and what the last gave."""
    seconds: list[float] = []
    answer = None
    while not seconds or (sum(seconds) < _ENOUGH_S and len(seconds) < _REPEATS):
        signal.setitimer(signal.ITIMER_REAL, limit_s)
        started = time.perf_counter()
        answer = act()
        seconds.append(time.perf_counter() - started)
        signal.setitimer(signal.ITIMER_REAL, 0)
    return statistics.median(seconds), answer
