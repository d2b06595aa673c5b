"""Any program that measures a design: JSON on its stdin, JSON at the end of its stdout."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, stdev
from tempfile import TemporaryDirectory
from typing import Any

from dse.core.batch import Batch
from dse.core.design import base, nest_members
from dse.core.metric import Fault, Metrics
from dse.core.values import Value
from dse.errors import PluginError
from dse.evaluation.checkpoints import CurrentTrial, current_trial
from dse.evaluation.process_exit import (
    count_memory_kills,
    describe_death,
    forwarded_signal,
    kind_of_death,
)
from dse.evaluation.reporting import report
from dse.protocols import EVERYTHING
from dse.system.process_marks import end_marked, run_mark
from dse_evaluators.generic.answer import Answer, MetricValue, columns_of
from dse_evaluators.generic.options import (
    kind_of,
    metrics_of,
    reads_of,
    seconds_of,
    texts_of,
    units_of,
)
from dse_evaluators.generic.printed import printed_answer, refuse_constant
from dse_evaluators.generic.process import ProcessResult, Program, run
from dse_evaluators.generic.program_files import check_program
from dse_evaluators.generic.warden import Warden

_LAST_WORDS = 2_000
"""How many of the last characters of stderr a fault keeps."""


class Command:
    """Runs a program once for each design, or ``repeats`` times.

    The program gets the design as one JSON object on stdin. Its stdout ends with one JSON object,
    on one line or on several: ``{"power": 3.1}``, or ``{"power": {"value": 3.1, "spread": 0.2}}``
    with the standard error, or ``{"infeasible": "why"}``. A line before it that is an object with
    a ``step``, ``{"step": 3, "power": 3.4}``, is a report: a study may end the program there.
    Another exit status than 0 is a failure. What it started and left running is killed when it
    ends, so that nothing disturbs the next measurement.

    ``DSE_TRIAL`` in its environment is the number of its trial, ``DSE_ATTEMPT`` how often that was
    given up before, and ``DSE_TRIAL_DIR`` a folder that stays until the outcome is stored: what a
    run that was killed has left there, the next one finds. ``{DSE_TRIAL_DIR}`` in a word of ``run``
    is replaced by it, and so are the other two.

    Args:
        run: the program and its arguments; no shell reads them.
        metrics: the unit of each metric that the program tells.
        timeout: for each run; seconds, or a text such as ``5 min``.
        repeats: runs per design. The median is told, and as spread the larger of the standard
            error of the runs' mean and of what the program itself says of its errors.
        reads: the parameters that the program is shown; all of the space where not given.
        units: the unit in which a parameter is wanted; without one, in that of the space, which
            is the coherent one: Hz for MHz.
        cwd: the folder to run in.
        env: what is added to the environment.
        kind: ``modelled`` for a program that is free and exact. Still, only what runs the study
            starts it: ``dse check`` and ``dse report`` do not.
        version: to be changed whenever the program's numbers change.
    """

    optional: frozenset[str] = frozenset()

    def __init__(  # noqa: PLR0913 - each is a word of the YAML
        self,
        *,
        run: Sequence[str],
        metrics: Mapping[str, str],
        timeout: float | str = "10 min",
        repeats: int = 1,
        reads: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        kind: str = "measured",
        version: str = "1",
    ) -> None:
        self.provides = metrics_of(metrics)
        self.reads = reads_of(reads)
        self.units = units_of(units, self.reads)
        self.kind = kind_of(kind)
        self.version = str(version)
        self._program = Program(run=_run_of(run), cwd=cwd, env=_env_of(env))
        self._timeout_s = seconds_of("timeout", timeout)
        self._repeats = _repeats_of(repeats)

    @property
    def starts(self) -> tuple[str, ...]:
        """The program, which is why it is not pure whatever its ``kind``."""
        return (self._program.words,)

    def evaluate(self, batch: Batch) -> Metrics:
        with Warden() as warden:
            answers = [self._measure_design(batch.row(row), warden) for row in range(len(batch))]
        return columns_of(answers, tuple(self.provides))

    def check_program(self) -> None:
        """Check that the program is on this machine.

        Raises:
            PluginError: its folder, itself or its script is not there.
        """
        check_program(self._program)

    def _measure_design(self, design: Mapping[str, Value], warden: Warden) -> Answer:
        given = {
            name: value
            for name, value in design.items()
            if base(name) in self.reads or EVERYTHING in self.reads
        }
        text = json.dumps(nest_members(given), allow_nan=False).encode()
        answers: list[Mapping[str, MetricValue]] = []
        for repeat in range(self._repeats):
            with _trial_variables(repeat) as variables:
                answer = self._run(_with(self._program, variables), text, warden)
            if isinstance(answer, Fault):
                return answer
            answers.append(answer)
        return {name: _middle([answer[name] for answer in answers]) for name in self.provides}

    def _run(self, program: Program, given: bytes, warden: Warden) -> Answer:
        before = count_memory_kills()
        try:
            ended = run(program, given, timeout_s=self._timeout_s, warden=warden, on_line=_heard)
        except OSError as error:
            reason = f"{program.run[0]!r} cannot be run: {error}"
            return Fault(kind="raised", reason=reason)
        fault = _failure(ended, self._timeout_s, short=count_memory_kills() > before)
        return printed_answer(ended.stdout, tuple(self.provides)) if fault is None else fault


@contextmanager
def _trial_variables(repeat: int) -> Iterator[Mapping[str, str]]:
    """Give the variables by which a program learns for which trial it runs.

    Its folder stays until the trial's outcome is stored. Outside of a study, and where that folder
    cannot be made, it has one for this run alone.
    """
    trial = current_trial()
    with ExitStack() as stack:
        try:
            folder = str(_repeat_folder(trial, repeat))
        except OSError:
            made = TemporaryDirectory(prefix="dse-trial-", ignore_cleanup_errors=True)
            folder = stack.enter_context(made)
        yield {
            "DSE_TRIAL": "" if trial is None else str(trial.number),
            "DSE_ATTEMPT": "0" if trial is None else str(trial.attempt),
            "DSE_TRIAL_DIR": folder,
            run_mark(folder): "1",
        }


def _repeat_folder(trial: CurrentTrial | None, repeat: int) -> Path:
    """Make the folder of one of the runs: a second one is to measure as much as the first.

    A program that an attempt before has left there is ended first.

    Raises:
        OSError: it cannot be made, or there is no trial.
    """
    if trial is None:
        raise FileNotFoundError
    folder = trial.folder / str(repeat)
    if folder.exists():
        end_marked(run_mark(str(folder)))
    folder.mkdir(exist_ok=True)
    return folder


def _with(program: Program, variables: Mapping[str, str]) -> Program:
    """Return the program with the variables in its environment and in braces in its words."""
    words = list(program.run)
    for name, value in variables.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return replace(program, run=tuple(words), env={**program.env, **variables})


def _heard(line: bytes) -> None:
    """Report a line that is a report; whatever else a program prints is its own affair."""
    if b'"step"' not in line:
        return
    try:
        said = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return
    step = said.pop("step", None) if isinstance(said, dict) else None
    if isinstance(step, int) and not isinstance(step, bool):
        told = {name: value for name, value in said.items() if _is_number(value)}
        report(step, told)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _failure(ended: ProcessResult, timeout_s: float, *, short: bool) -> Fault | None:
    """Return why a run has no answer, with the program's last words; ``None`` where it went well.

    A signal from outside says nothing of the design: that run was ``lost``.

    Args:
        ended: how the run ended.
        timeout_s: its limit.
        short: the kernel ended a process for want of memory meanwhile.
    """
    words = ended.stderr.strip()[-_LAST_WORDS:]
    said = f": {words}" if words else ", without a word on stderr"
    if ended.timed_out:
        return Fault(kind="timeout", reason=f"ran for more than {timeout_s:g} s{said}")
    number = -ended.status if ended.status < 0 else forwarded_signal(ended.status)
    if number:
        status = f"exit status {ended.status}: a process of it was " if ended.status > 0 else ""
        death = f"{status}killed by {describe_death(number, short=short)}"
        return Fault(kind=kind_of_death(number, short=short), reason=f"{death}{said}")
    if ended.status > 0:
        return Fault(kind="raised", reason=f"exit status {ended.status}{said}")
    return None


def _middle(told: Sequence[MetricValue]) -> MetricValue:
    """The median of independent runs, with the standard error of their mean.

    Where one run has no value there is none, for the reason of that run.
    """
    without = next((reading for reading in told if reading.why), None)
    if without is not None:
        return without
    value = median(reading.value for reading in told)
    errors = [reading.spread for reading in told if reading.spread is not None]
    own = [math.hypot(*errors) / len(errors)] if errors else []
    seen = [stdev(r.value for r in told) / math.sqrt(len(told))] if len(told) > 1 else []
    return MetricValue(value=value, spread=max(own + seen, default=None))


def _run_of(run: Sequence[str]) -> tuple[str, ...]:
    words = texts_of("run", run)
    if not words or not words[0]:
        raise PluginError("run is empty", hint="write run: [python, bench.py]")
    if any("\0" in word for word in words):
        raise PluginError("run holds a NUL character", hint="take it out")
    return words


def _env_of(env: Any) -> dict[str, str]:
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name:
            raise PluginError(
                f"env sets {name!r} to {value!r}", hint='both are texts: env: {THREADS: "1"}'
            )
    return dict(env or {})


def _repeats_of(repeats: Any) -> int:
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise PluginError(f"repeats is {repeats!r}", hint="it is a whole number from 1")
    return repeats
