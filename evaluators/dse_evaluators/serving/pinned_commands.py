"""The evaluator ``schedules.pinned-commands``: commands that run at once on cores of their own."""

from __future__ import annotations

import hashlib
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError
from dse.evaluation.timing.median_interval import median_error
from dse.system.process_guard import WatchdogPool
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.options import seconds_of, texts_of
from dse_evaluators.generic.process import Program, run
from dse_evaluators.generic.program_files import check_program
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Readings, one_of
from dse_evaluators.serving.core_shares import SUFFIX

_PLACEMENTS = ("disjoint", "shared", "free")
_THREADS = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
"""Variables from which numerical libraries take their number of threads."""

_PIN = (
    "import os, sys; os.sched_setaffinity(0, map(int, sys.argv[1].split(','))); "
    "os.execvp(sys.argv[2], sys.argv[2:])"
)
"""Program that binds itself to processors and becomes the command."""

_PYTHON = {"{python}": sys.executable}
_MOST_TASKS = 64
_LAST_WORDS = 500
_METRICS = (
    Metric(name="makespan", unit="s", goal="minimize"),
    Metric(name="first_end", unit="s", goal="minimize"),
    Metric(name="idle_share", goal="minimize"),
)


class PinnedCommands(
    DeclaredEvaluator, reads={}, provides=_METRICS, version="1", kind="measured", pure=False
):
    """Makespan of commands that are started together, with a number of threads and cores each.

    All commands start at the same time, once for each repeat. ``makespan`` is the time until the
    last one ends, ``first_end`` until the first one ends: medians of the repeats, with standard
    errors. ``idle_share`` is the share of the given core-seconds in which a command has ended
    already; cores of several commands count for each. The time includes the start of a program, so
    let it work for seconds. A command that fails, or exceeds the time limit, fails the design.

    Each command has an input such as ``first_cores``: its number of threads, which it finds in
    ``OMP_NUM_THREADS`` and similar variables, and of the cores that it is bound to.

    Args:
        run: the commands by the names of their tasks, each a program and its arguments; no shell
            interprets them. ``{cores}`` in an argument is replaced by the number of cores, and the
            word ``{python}`` by the interpreter that runs the study.
        repeats: how often all commands run together.
        timeout: time limit of each command: seconds, or a text such as ``5 min``.
        warmup: number of runs that are not counted.
        cwd: the working directory.

    Inputs:
        placement: ``disjoint`` binds each command to cores of its own; ``shared`` binds each to
            the first cores of the machine; ``free`` binds none.

    Limits:
        Linux only. Libraries in one process, as Virtual Library Contexts separate them, are not
        separated here: each command is a process.

    Error:
        The standard error is that of the median of the repeats; other load is not noticed.

    Source:
        pecos/Virtual-Library-Context: the question. Linux, sched_setaffinity(2).

    Example:
        options:
          run:
            first: ["{python}", -c, "sum(range(100000))"]
            second: ["{python}", -c, "sum(range(200000))"]
          repeats: 1
          warmup: 0
        parameters: {first_cores: [1, 2], second_cores: [1, 2], placement: [shared, free]}

    Raises:
        PluginError: an option is invalid.
    """

    run: Mapping[str, Any]
    repeats: int = 3
    warmup: int = 1
    timeout: float | str = "5 min"
    cwd: str | None = None

    def __post_init__(self) -> None:
        given: object = self.run
        if not isinstance(given, Mapping) or not given or len(given) > _MOST_TASKS:
            hint = "write commands by name: run: {first: [python, a.py], second: [./b]}"
            raise PluginError(f"run is {self.run!r}", hint=hint, part=["run"])
        for task in given:
            if not str(task).isidentifier():
                hint = "write letters, digits and underscores, such as solver"
                raise PluginError(f"a task is named {task!r}", hint=hint, part=["run"])
        self._commands = {
            task: tuple(_PYTHON.get(word, word) for word in texts_of("run", words))
            for task, words in self.run.items()
        }
        empty = next((task for task, words in self._commands.items() if not words), None)
        if empty is not None:
            hint = "write the program and its arguments"
            raise PluginError(f"the command of {empty} is empty", hint=hint, part=["run"])
        check_count("repeats", self.repeats, least=1)
        check_count("warmup", self.warmup, least=0)
        self._timeout_s = seconds_of("timeout", self.timeout)
        self._watchdogs = WatchdogPool()
        words = json.dumps([sorted(self.run.items()), self.cwd])
        self.version = f"{type(self).version}-{hashlib.sha256(words.encode()).hexdigest()[:12]}"
        inputs = {f"{task}{SUFFIX}": NumberInput(1, 4096, whole=True) for task in self._commands}
        self.declare(Readings.of({**inputs, "placement": one_of(_PLACEMENTS, "disjoint")}, self))

    @property
    def missing(self) -> str:
        """Reason why commands cannot be bound to cores on this machine; empty if they can."""
        if hasattr(os, "sched_setaffinity"):
            return ""
        return "this system cannot bind a process to cores (sched_setaffinity)"

    @property
    def starts(self) -> tuple[str, ...]:
        """Description, for users, of the commands that an evaluation starts."""
        return tuple(Program(run=words, cwd=self.cwd).words for words in self._commands.values())

    def check_program(self) -> None:
        """Check that the commands can be found on this machine.

        Raises:
            PluginError: a program or the working directory does not exist.
        """
        for words in self._commands.values():
            check_program(Program(run=words, cwd=self.cwd))

    def evaluate(self, batch: Batch) -> Metrics:
        """Run the commands of n designs, one design at a time; return metrics, (n,)."""
        uncertain = ("makespan", "first_end")
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=uncertain)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        counts = {task: int(design[f"{task}{SUFFIX}"]) for task in self._commands}
        places = place_cores(counts, str(design.get("placement", "disjoint")))
        for _ in range(self.warmup):
            self._run_together(counts, places)
        rounds = [self._run_together(counts, places) for _ in range(self.repeats)]
        ends = np.array([[one[task] for task in counts] for one in rounds])  # (repeats, tasks)
        last, first = ends.max(axis=1), ends.min(axis=1)
        shares = np.array(list(counts.values()))
        idle = 1 - (ends * shares).sum(axis=1) / (shares.sum() * last)
        errors = {}
        if self.repeats > 1:
            errors = {"makespan": median_error(last), "first_end": median_error(first)}
        return Found(
            values={
                "makespan": float(np.median(last)),
                "first_end": float(np.median(first)),
                "idle_share": float(np.median(idle)),
            },
            errors=errors,
        )

    def _run_together(
        self, counts: Mapping[str, int], places: Mapping[str, Sequence[int]]
    ) -> Mapping[str, float]:
        """Start all commands; return the seconds until each ended.

        Raises:
            EvaluationError: a command fails, or exceeds the time limit.
        """
        start_s = time.perf_counter()
        with ThreadPoolExecutor(len(counts)) as pool:
            running = {
                task: pool.submit(self._run_one, task, counts[task], places[task], start_s)
                for task in counts
            }
        return {task: one.result() for task, one in running.items()}

    def _run_one(self, task: str, count: int, cores: Sequence[int], start_s: float) -> float:
        words = [word.replace("{cores}", str(count)) for word in self._commands[task]]
        pin = (sys.executable, "-I", "-S", "-c", _PIN, ",".join(map(str, cores))) if cores else ()
        threads = dict.fromkeys(_THREADS, str(count))
        program = Program(run=(*pin, *words), cwd=self.cwd, env=threads)
        with self._watchdogs.lend() as watchdog:
            try:
                ended = run(program, b"", timeout_s=self._timeout_s, watchdog=watchdog)
            except OSError as error:
                raise EvaluationError(f"{task}: {words[0]!r} cannot be run: {error}") from error
        spent_s = time.perf_counter() - start_s
        if ended.timed_out:
            raise EvaluationError(f"{task} ran for more than {self._timeout_s:g} s")
        if ended.status:
            said = ended.stderr.strip()[-_LAST_WORDS:] or "with nothing on stderr"
            raise EvaluationError(f"{task} ended with the status {ended.status}: {said}")
        return spent_s


def place_cores(counts: Mapping[str, int], placement: str) -> dict[str, Sequence[int]]:
    """Return the processors of each task by its name; none where it is not bound.

    Args:
        counts: cores of each task.
        placement: ``disjoint``, ``shared`` or ``free``.

    Raises:
        InfeasibleError: there are fewer processors than the tasks need.
    """
    if placement == "free":
        return dict.fromkeys(counts, ())
    processors = sorted(os.sched_getaffinity(0))
    needed = sum(counts.values()) if placement == "disjoint" else max(counts.values())
    if needed > len(processors):
        raise InfeasibleError(f"{needed} cores are needed, and {len(processors)} can be used")
    if placement == "shared":
        return {task: processors[:count] for task, count in counts.items()}
    ends = np.cumsum(list(counts.values())).tolist()
    spans = zip(counts, [0, *ends[:-1]], ends, strict=True)
    return {task: processors[start:end] for task, start, end in spans}
