"""Client of a worker program that evaluates one design at a time; restarted on failure.

The protocol is lines of JSON, described in ``docs/outside.md``.
"""

from __future__ import annotations

import json
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dse.core.metric import Failure
from dse.errors import EvaluationError
from dse.evaluation.process_exit import describe_death, kind_of_death
from dse_evaluators.generic.answer import Answer, invalid, readings, shown
from dse_evaluators.generic.process import Program
from dse_evaluators.outside.running import ProcessExitError, Running, TimedOut


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeLimits:
    """Time limits of a worker program in seconds: for its start, and for each design."""

    start_s: float = 120.0
    design_s: float = 600.0


class ExternalService:
    """Worker program that evaluates designs, started at the first request.

    After a failure on a design, the program is started again. It keeps running between designs and
    batches, because the start of a simulator often takes most of the time. A copy of this object in
    another process starts its own program.

    Args:
        program: the program's command line.
        options: options that are sent to the program once, when it starts.
        limits: time limits for the program's start and for each design.
        wanted: package versions that the program must report, such as ``{"scalesim": "3.0.0"}``.
    """

    def __init__(
        self,
        program: Program,
        options: Mapping[str, Any],
        limits: TimeLimits,
        wanted: Mapping[str, str] | None = None,
    ) -> None:
        self._program = program
        self._options = dict(options)
        self._limits = limits
        self._wanted = dict(wanted or {})
        self._running: Running | None = None
        self._finalizer: weakref.finalize[..., ExternalService] | None = None
        self._number = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return ExternalService, (self._program, self._options, self._limits, self._wanted)

    def answer(self, design: Mapping[str, Any], names: Sequence[str]) -> Answer:
        """Send one design to the program; return its metrics, or the reason of a failure."""
        self._number += 1
        request = {"id": self._number, "design": design}
        try:
            reply = self._exchange(request, self._ready(), self._limits.design_s)
        except EvaluationError as error:
            self.close()
            return Failure(kind="raised", reason=error.problem)
        except _Broken as broken:
            self.close()
            return broken.failure
        except BaseException:
            self.close()  # an interrupted exchange may have left half a line in a pipe
            raise
        return _answer(reply, names)

    def close(self) -> None:
        """End the worker program; the next request starts it again."""
        finalizer, self._finalizer, self._running = self._finalizer, None, None
        if finalizer is not None:
            finalizer()

    def _ready(self) -> Running:
        """Return the running program, started first if it is not ready for a request.

        Raises:
            EvaluationError: the program cannot be started, or has another version than wanted.
        """
        if self._running is not None and self._running.waits:
            return self._running
        self.close()
        try:
            running = Running(self._program)
        except OSError as error:
            name = self._program.run[0]
            raise EvaluationError(f"{name!r} cannot be started: {error}") from error
        self._running = running
        self._finalizer = weakref.finalize(self, running.close)
        try:
            reply = self._exchange({"options": self._options}, running, self._limits.start_s)
        except _Broken as broken:
            raise EvaluationError(f"while it started: {broken.failure.reason}") from broken
        _check_ready(reply, self._wanted)
        return running

    def _exchange(
        self, request: Mapping[str, Any], running: Running, timeout_s: float
    ) -> dict[str, Any]:
        """Send a JSON object to the program and return the object that it sends back.

        Raises:
            _Broken: the program does not respond, or its response is invalid.
        """
        line = json.dumps(request, allow_nan=False).encode()
        try:
            answer = running.exchange(line, timeout_s)
            reply = json.loads(answer, parse_constant=_refuse_constant)
        except TimedOut:
            words = _last_words(running)
            failure = Failure(kind="timeout", reason=f"took more than {timeout_s:g} s{words}")
            raise _Broken(failure) from None
        except ProcessExitError as end:
            raise _Broken(_crash(end.status, _last_words(running))) from None
        except (ValueError, RecursionError) as error:
            raise _Broken(invalid(f"did not answer with a line of JSON ({error})")) from error
        if not isinstance(reply, dict) or reply.get("id") != request.get("id"):
            wanted = f" with the id {request['id']}" if "id" in request else ""
            raise _Broken(invalid(f"must answer with one object{wanted}, got {shown(reply)}"))
        return reply


class _Broken(Exception):  # noqa: N818 - it is the program that is
    """Raised if the worker program failed and must be restarted before the next request."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


def _last_words(running: Running) -> str:
    running.close()  # before reading, to include output written while it ends
    return f": {running.words}" if running.words else ", with nothing on stderr"


def _check_ready(reply: Mapping[str, Any], wanted: Mapping[str, str]) -> None:
    if "failed" in reply:
        raise EvaluationError(f"it is not ready: {shown(reply['failed'])}")
    if "ready" not in reply:
        raise EvaluationError(f"it must report that it is ready, got {shown(reply)}")
    is_ = reply["ready"] if isinstance(reply["ready"], dict) else {}
    for name, version in wanted.items():
        if is_.get(name) != version:
            raise EvaluationError(f"{name} {version} is required, got {is_.get(name)}")


def _answer(reply: Mapping[str, Any], names: Sequence[str]) -> Answer:
    if "infeasible" in reply:
        return Failure(kind="infeasible", reason=str(reply["infeasible"]))
    if "failed" in reply:
        return Failure(kind="raised", reason=str(reply["failed"]))
    return readings(reply.get("metrics"), names)


def _crash(status: int | None, words: str) -> Failure:
    """Return the fault of a program that exited; one killed from outside may be tried again."""
    if status is not None and status < 0:
        reason = f"was killed by {describe_death(-status)}{words}"
        return Failure(kind=kind_of_death(-status), reason=reason)
    how = "closed its stdout" if status is None else f"ended with the exit status {status}"
    return Failure(kind="crashed", reason=f"{how}{words}")


def _refuse_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is no number of JSON")
