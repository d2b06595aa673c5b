"""The evaluator ``outside.worker``: a persistent program that evaluates one design at a time."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from dse.core.batch import Batch
from dse.core.design import base
from dse.core.metric import Metrics
from dse.core.values import Value
from dse.errors import PluginError
from dse.protocols import EVERYTHING
from dse_evaluators.generic.options import (
    kind_of,
    metrics_of,
    reads_of,
    seconds_of,
    texts_of,
    units_of,
)
from dse_evaluators.generic.process import Program
from dse_evaluators.outside.asking import evaluate_designs
from dse_evaluators.outside.service import ExternalService, TimeLimits
from dse_evaluators.outside.tool import serving


class Worker:
    """Evaluator that starts a program once and sends it one design after the other as JSON lines.

    Start-up costs, such as a simulator's imports or a solver's licence, are paid once. A design
    that makes the program crash, hang or answer with invalid data fails alone: the program is
    restarted. The protocol is in ``docs/outside.md``.

    Args:
        metrics: the unit of each metric that the program returns.
        run: a program that implements the protocol, and its arguments; no shell interprets them.
        worker: instead, a Python file with ``prepared(options)``, which returns a function from a
            design to its metrics.
        python: the Python that runs ``worker``, such as that of another environment; by default
            the running one.
        options: options sent once, when the program starts.
        timeout: time limit of each design: seconds, or a text such as ``5 min``.
        start: time limit until the program is ready, in the same form.
        reads: the parameters to send; by default all of the space.
        units: the unit in which each parameter is sent.
        kind: ``modelled`` only for a program that is cheap enough for a million calls.
        version: must be changed whenever the program's results change.

    Example:
        options: {worker: worker.py, metrics: {area: mm2}, reads: [rows, cols]}
        parameters: {rows: [8, 16], cols: [2, 4]}
        files:
          worker.py: |
            def prepared(options):
                return lambda design: {"area": design["rows"] * design["cols"]}
    """

    optional: frozenset[str] = frozenset()

    def __init__(  # noqa: PLR0913 - each is a word of the YAML
        self,
        *,
        metrics: Mapping[str, str],
        run: Sequence[str] | None = None,
        worker: str | None = None,
        python: str | None = None,
        options: Mapping[str, Any] | None = None,
        timeout: float | str = "10 min",
        start: float | str = "2 min",
        reads: Sequence[str] | None = None,
        units: Mapping[str, str] | None = None,
        kind: str = "measured",
        version: str = "1",
    ) -> None:
        self.provides = metrics_of(metrics)
        self.reads = reads_of(reads)
        self.units = units_of(units, self.reads)
        self.kind = kind_of(kind)
        self.version = str(version)
        limits = TimeLimits(
            start_s=seconds_of("start", start), design_s=seconds_of("timeout", timeout)
        )
        program = Program(run=_run_of(run, worker, python))
        self.starts = (program.words,)
        self._service = ExternalService(program, _options_of(options), limits)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name, as the program returns them.

        Designs are sent to the program one at a time.
        """
        return evaluate_designs(batch, self._service, tuple(self.provides), self._shown)

    def _shown(self, design: Mapping[str, Value]) -> Mapping[str, Any]:
        return {
            name: value
            for name, value in design.items()
            if base(name) in self.reads or EVERYTHING in self.reads
        }


def _run_of(run: Any, worker: Any, python: Any) -> tuple[str, ...]:
    if (run is None) == (worker is None):
        raise PluginError(
            "a worker is either a program or a Python file",
            hint="write run: [./simulate], or worker: simulate.py",
        )
    if run is not None:
        words = texts_of("run", run)
        if not words or not words[0]:
            raise PluginError("run is empty", hint="write run: [./simulate]")
        if python is not None:
            raise PluginError("python runs a worker, not a program", hint="put it into run")
        return words
    if not isinstance(worker, str) or not isinstance(python, str | None):
        raise PluginError(f"worker is {worker!r}, python {python!r}", hint="each is a path")
    return serving(python or sys.executable, worker).run


def _options_of(options: Any) -> Mapping[str, Any]:
    if not isinstance(options, Mapping | None):
        raise PluginError(f"options is {options!r}", hint="write options: {seed: 1}")
    return options or {}
