"""Python environments of the external models, and the choice of a worker's interpreter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from dse.resources.environment import Environment
from dse_evaluators.csv_files.csv_records import read_rows, record_of

_FOLDER = Path(__file__).parent

ENVIRONMENTS: Mapping[str, Environment] = {
    row["name"]: record_of(row, Environment, requirements=_FOLDER / "pins" / f"{row['name']}.txt")
    for row in read_rows(_FOLDER / "environments.csv")
}


def python_of(name: str, chosen: str | None, module: str) -> str:
    """Return the Python interpreter for an external model's worker process.

    The interpreter is ``chosen``, else that of the environment ``name``, else the running one.

    Args:
        name: the environment.
        chosen: the interpreter that an option gives, if any; it is not checked.
        module: the module that the running Python must have to be used, if the environment is not
            installed.

    Raises:
        PluginError: there is no suitable Python.
    """
    environment = ENVIRONMENTS[name]
    if chosen is not None:
        return chosen
    if not environment.installed and find_spec(module) is not None:
        return sys.executable
    environment.check_installed()
    return str(environment.python)
