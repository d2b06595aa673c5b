"""The evaluator ``command``: a program that reads a design as JSON and prints metrics as JSON."""

from __future__ import annotations

import hashlib
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
from dse.core.metric import Failure, Metrics
from dse.core.values import Value
from dse.errors import PluginError, SpecError, nearest
from dse.evaluation.checkpoints import CurrentTrial, current_trial
from dse.evaluation.process_exit import describe_death, forwarded_signal, kind_of_death
from dse.evaluation.reporting import report
from dse.protocols import EVERYTHING
from dse.system.process_guard import Watchdog, WatchdogPool, count_memory_kills, run_mark
from dse.system.process_tree import end_marked
from dse_evaluators.generic.answer import Answer, MetricValue, columns_of
from dse_evaluators.generic.build_step import FOLDER, build_step_of, fill_in, names_in
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

_LAST_WORDS = 2_000
"""Number of trailing characters of stderr that a fault keeps."""


class Command:
    """Evaluator that runs a program once for each design, or ``repeats`` times.

    The program gets the design as one JSON object on stdin. Its stdout must end with one JSON
    object, on one line or several: ``{"power": 3.1}``, or
    ``{"power": {"value": 3.1, "spread": 0.2}}`` with the standard error, or
    ``{"infeasible": "why"}``. An earlier line that is an object with a ``step``,
    ``{"step": 3, "power": 3.4}``, is an intermediate report, after which a study may stop the
    program early. A nonzero exit status is a failure. Processes that the program leaves running are
    killed when it ends, so that they do not disturb the next measurement.

    The program's environment has ``DSE_TRIAL``, the number of the trial; ``DSE_ATTEMPT``, the
    number of earlier attempts that were abandoned; and ``DSE_TRIAL_DIR``, a folder that is kept
    until the outcome is stored, so that a later attempt finds the files of one that was killed.
    ``DSE_SEED`` is a number that depends on the design and on the repeat, for programs that draw
    random numbers. In the arguments ``run``, these names in braces, such as ``{DSE_TRIAL_DIR}``,
    are replaced by their values.

    With ``build``, a program such as a compiler runs before, once for each combination of the
    compile-time parameters: those in braces in its arguments, such as ``-DTILE={tile}``. It writes
    to the folder ``{DSE_BUILD_DIR}``, which ``run`` then names. ``run`` may name parameters in
    braces, too. An argument that names a parameter that the design does not have is left out. If
    the build fails, so does the trial, with the last lines of the compiler.

    Args:
        run: the program and its arguments; no shell interprets them.
        metrics: the unit of each metric that the program prints.
        timeout: time limit of each run: seconds, or a text such as ``5 min``.
        repeats: runs per design. The value of a metric is the median of the runs; its standard
            error is the larger of the error of the runs' mean and the combined errors that the
            program reports.
        reads: the parameters to pass to the program; by default, all of the space.
        units: the unit in which each parameter is passed; by default the coherent SI unit: Hz for
            a parameter in MHz.
        build: a program that builds what ``run`` starts: ``run``, its arguments; ``parameters``,
            the compile-time parameters, by default those in braces in its arguments; ``sources``,
            files whose change causes a new build, by default its arguments that are files; and
            ``timeout``. Builds are kept in the folder ``builds`` of the cache.
        cwd: the working directory.
        env: variables to add to the environment.
        kind: ``modelled`` for a program that is fast and deterministic. Even so it is started only
            when the study runs, not by ``dse check`` and ``dse report``.
        version: must be changed whenever the program's results change.

    Example:
        options: {run: [python3, measure.py], metrics: {area: mm2}, reads: [rows, cols]}
        parameters: {rows: [8, 16], cols: [2, 4]}
        files:
          measure.py: |
            import json, sys
            design = json.load(sys.stdin)
            print(json.dumps({"area": design["rows"] * design["cols"]}))
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
        build: Mapping[str, Any] | None = None,
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
        self._build = build_step_of(build, self._program)
        self._names = frozenset() if self._build is None else names_in(self._program.run)
        self._timeout_s = seconds_of("timeout", timeout)
        self._repeats = _repeats_of(repeats)
        self._watchdogs = WatchdogPool()

    @property
    def starts(self) -> tuple[str, ...]:
        """Description, for users, of the program that an evaluation starts.

        It is not empty, so the evaluator is not pure.
        """
        build = () if self._build is None else (self._build.program.words,)
        return (*build, self._program.words)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        """Check that the arguments name parameters of the space.

        Raises:
            SpecError: a name in braces, or of a compile-time parameter, is no parameter.
        """
        known = {base(name) for name in values}
        places = (("run", self._names), ("build", self._build.parameters if self._build else ()))
        for option, names in places:
            for name in sorted(set(names) - known) if known else ():  # else the space is wrong
                hint = nearest(name, known)
                raise SpecError(f"{option} names {name!r}, no parameter of it", hint=hint)

    def evaluate(self, batch: Batch) -> Metrics:
        with self._watchdogs.lend() as watchdog:
            answers = [self._measure_design(batch.row(row), watchdog) for row in range(len(batch))]
        return columns_of(answers, tuple(self.provides))

    def check_program(self) -> None:
        """Check that the program can be found on this machine.

        Raises:
            PluginError: the program's working directory, executable or script does not exist.
        """
        if self._build is None:
            check_program(self._program)
            return
        check_program(self._build.program)
        self._build.check()
        if FOLDER not in self._program.run[0]:
            check_program(self._program)

    def _measure_design(self, design: Mapping[str, Value], watchdog: Watchdog) -> Answer:
        given = {
            name: value
            for name, value in design.items()
            if base(name) in self.reads or EVERYTHING in self.reads
        }
        text = json.dumps(nest_members(given), allow_nan=False).encode()
        folder = self._build.build(given, watchdog) if self._build else None
        if isinstance(folder, Failure):
            return folder
        program = replace(self._program, run=fill_in(self._program.run, given, self._names))
        built = {} if folder is None else {FOLDER: str(folder)}
        answers: list[Mapping[str, MetricValue]] = []
        for repeat in range(self._repeats):
            with _trial_variables(repeat) as variables:
                seed = {"DSE_SEED": _seed_of(text, repeat)}
                answer = self._run(_with(program, {**variables, **seed, **built}), text, watchdog)
            if isinstance(answer, Failure):
                return answer
            answers.append(answer)
        return {name: _middle([answer[name] for answer in answers]) for name in self.provides}

    def _run(self, program: Program, given: bytes, watchdog: Watchdog) -> Answer:
        before = count_memory_kills()
        try:
            ended = run(
                program, given, timeout_s=self._timeout_s, watchdog=watchdog, on_line=_heard
            )
        except OSError as error:
            reason = f"{program.run[0]!r} cannot be run: {error}"
            return Failure(kind="raised", reason=reason)
        failure = _failure(ended, self._timeout_s, short=count_memory_kills() > before)
        return printed_answer(ended.stdout, tuple(self.provides)) if failure is None else failure


@contextmanager
def _trial_variables(repeat: int) -> Iterator[Mapping[str, str]]:
    """Yield the environment variables that describe a trial to the program.

    One is the path of the trial's folder, which is kept until the outcome is stored. Outside a
    study, or if that folder cannot be created, a temporary folder for this run is used.
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
    """Create and return the folder of one repeat, so that repeats do not reuse each other's files.

    A program that an earlier attempt left running there is ended first.

    Raises:
        OSError: the folder cannot be created, or there is no trial.
    """
    if trial is None:
        raise FileNotFoundError
    folder = trial.folder / str(repeat)
    if folder.exists():
        end_marked(run_mark(str(folder)))
    folder.mkdir(exist_ok=True)
    return folder


def _seed_of(design: bytes, repeat: int) -> str:
    """Return a number below 2^32, the same for a design and a repeat in every run."""
    digest = hashlib.sha256(design + str(repeat).encode()).digest()
    return str(int.from_bytes(digest[:4], "big"))


def _with(program: Program, variables: Mapping[str, str]) -> Program:
    """Return the program with variables added to its environment and filled into its arguments."""
    words = list(program.run)
    for name, value in variables.items():
        words = [word.replace(f"{{{name}}}", value) for word in words]
    return replace(program, run=tuple(words), env={**program.env, **variables})


def _heard(line: bytes) -> None:
    """Parse a line of the program's stdout; forward it if it is an intermediate report."""
    if b'"step"' not in line:
        return
    try:
        report_line = json.loads(line, parse_constant=refuse_constant)
    except (ValueError, RecursionError):
        return
    step = report_line.pop("step", None) if isinstance(report_line, dict) else None
    if isinstance(step, int) and not isinstance(step, bool):
        numbers = {name: value for name, value in report_line.items() if _is_number(value)}
        report(step, numbers)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _failure(ended: ProcessResult, timeout_s: float, *, short: bool) -> Failure | None:
    """Return the fault of a failed run, with the end of its stderr; ``None`` if it succeeded.

    The fault of a run killed by an external signal is ``lost``: it gives no information on the
    design.

    Args:
        ended: exit status and output of the run.
        timeout_s: time limit of the run.
        short: whether the kernel killed a process for lack of memory during the run.
    """
    words = ended.stderr.strip()[-_LAST_WORDS:]
    stderr_note = f": {words}" if words else ", with nothing on stderr"
    if ended.timed_out:
        return Failure(kind="timeout", reason=f"ran for more than {timeout_s:g} s{stderr_note}")
    number = -ended.status if ended.status < 0 else forwarded_signal(ended.status)
    if number:
        status = f"exit status {ended.status}: a process of it was " if ended.status > 0 else ""
        death = f"{status}killed by {describe_death(number, short=short)}"
        return Failure(kind=kind_of_death(number, short=short), reason=f"{death}{stderr_note}")
    if ended.status > 0:
        return Failure(kind="raised", reason=f"exit status {ended.status}{stderr_note}")
    return None


def _middle(repeats: Sequence[MetricValue]) -> MetricValue:
    """Return the median of a metric over repeated runs, with its standard error.

    The error is the larger of the standard error of the runs' mean and the combined errors that the
    program reports. If a run has no value of the metric, the result has no value either, for the
    same reason.
    """
    without = next((reading for reading in repeats if reading.why), None)
    if without is not None:
        return without
    value = median(reading.value for reading in repeats)
    errors = [reading.spread for reading in repeats if reading.spread is not None]
    own = [math.hypot(*errors) / len(errors)] if errors else []
    seen = [stdev(r.value for r in repeats) / math.sqrt(len(repeats))] if len(repeats) > 1 else []
    return MetricValue(value=value, spread=max(own + seen, default=None))


def _run_of(run: Sequence[str]) -> tuple[str, ...]:
    words = texts_of("run", run)
    if not words or not words[0]:
        raise PluginError("run is empty", hint="write run: [python, bench.py]")
    if any("\0" in word for word in words):
        raise PluginError("run contains a NUL character", hint="remove it")
    return words


def _env_of(env: Any) -> dict[str, str]:
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str) or not name or "=" in name:
            raise PluginError(
                f"env sets {name!r} to {value!r}", hint='both must be texts: env: {THREADS: "1"}'
            )
    return dict(env or {})


def _repeats_of(repeats: Any) -> int:
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise PluginError(f"repeats is {repeats!r}", hint="it must be an integer of at least 1")
    return repeats
