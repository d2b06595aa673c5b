"""A worker of ours in the environment of its tool, started when it is first needed."""

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
"""A study fills the cores itself, and nobody looks at figures."""


class Tool:
    """The service of one outside model.

    Args:
        name: of its environment, and of its worker.
        options: what the worker is told when it starts.
        limits: how long it may take.
        python: the Python to run it with, in place of the environment's.
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
        """The Python that is started, in words."""
        return (f"{self._python or f'the Python of the environment {self._name!r}'}, for a worker",)

    def service(self) -> ExternalService:
        """The program that answers.

        Raises:
            PluginError: its environment is not installed.
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
    """The command line of one of our workers.

    Raises:
        PluginError: its environment is not installed.
    """
    plain = serving(python_of(name, python, name), _WORKERS / f"{name}_worker.py")
    return replace(plain, env=_ONE_THREAD)


def serving(python: str, file: Path | str) -> Program:
    """A Python file as a program that speaks the protocol, by any Python from 3.9."""
    return Program(run=(python, str(_WORKERS / "serving.py"), str(file)))
