"""Python environments of the external models, and the choice of a worker's interpreter."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from dse.resources.environment import Environment

_PINS = Path(__file__).parent / "pins"

ENVIRONMENTS: Mapping[str, Environment] = {
    one.name: one
    for one in (
        Environment(
            name="scalesim",
            package="scalesim",
            version="3.0.0",
            requirements=_PINS / "scalesim.txt",
            size_bytes=515_000_000,
            licence="MIT",
            used_by=("outside.scalesim",),
            purpose="the simulator SCALE-Sim, which needs numpy < 2.4",
        ),
        Environment(
            name="zigzag",
            package="zigzag-dse",
            version="3.9.1",
            requirements=_PINS / "zigzag.txt",
            size_bytes=440_000_000,
            licence="MIT",
            used_by=("outside.zigzag",),
            purpose="ZigZag, a search for loop orders",
        ),
        Environment(
            name="mlsysim",
            package="mlsysim",
            version="0.3.0",
            requirements=_PINS / "mlsysim.txt",
            size_bytes=125_000_000,
            licence="Apache-2.0",
            used_by=("outside.mlsysim",),
            purpose="the rooflines of mlsysim",
        ),
    )
}


def python_of(name: str, chosen: str | None, module: str) -> str:
    """Return the Python for a worker: ``chosen``, the environment's, or the running one.

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
