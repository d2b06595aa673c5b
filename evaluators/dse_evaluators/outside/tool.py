"""Worker process of an external model, run in the model's Python environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse_evaluators.generic.process import Program
from dse_evaluators.outside.environments import ENVIRONMENTS, python_of
from dse_evaluators.outside.service import ExternalService, TimeLimits

_WORKERS = Path(__file__).parent / "workers"
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
"""One thread, since studies parallelize over designs; no display, since plots are not shown."""


class Tool:
    """Worker process that runs an external model, such as SCALE-Sim; started on first use.

    Args:
        name: name of the model's environment and worker script.
        options: the options sent to the worker when it starts.
        limits: time limits for the worker's start and for each design.
        python: the Python interpreter to run the worker with, instead of the environment's.
    """

    def __init__(
        self, name: str, options: Mapping[str, Any], limits: TimeLimits, python: str | None = None
    ) -> None:
        self._name = name
        self._options = options
        self._limits = limits
        self._python = python
        self._service: ExternalService | None = None

    @property
    def starts(self) -> tuple[str, ...]:
        """Description, for users, of the Python interpreter that an evaluation starts."""
        return (f"{self._python or f'the Python of the environment {self._name!r}'}, for a worker",)

    def service(self) -> ExternalService:
        """Return the client of the worker process; both are created on first use.

        Raises:
            PluginError: the worker's environment is not installed.
        """
        if self._service is None:
            self._service = ExternalService(
                worker(self._name, self._python),
                self._options,
                self._limits,
                {self._name: ENVIRONMENTS[self._name].version},
            )
        return self._service


def worker(name: str, python: str | None = None) -> Program:
    """Return the command line that starts the worker script ``name`` in its environment.

    Raises:
        PluginError: the worker's environment is not installed.
    """
    plain = serving(python_of(name, python, name), _WORKERS / f"{name}_worker.py")
    return replace(plain, env=_ONE_THREAD)


def serving(python: str, file: Path | str) -> Program:
    """Return the command line that runs a Python file as a worker program.

    The interpreter must be Python 3.9 or later.
    """
    return Program(run=(python, str(_WORKERS / "request_loop.py"), str(file)))
