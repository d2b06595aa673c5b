"""A worker that does as it is told, in a real process."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dse_evaluators.outside.worker import Worker

OBEDIENT = """
import os, signal, subprocess, sys, time

def prepared(options):
    print("a tool that talks while it starts")

    def measured(design):
        print("and while it works")
        do = design.get("do", "work")
        if do == "exit":
            print("no licence", file=sys.stderr)
            os._exit(3)
        if do == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if do == "hang":
            child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
            with open(options["pids"], "w") as file:
                file.write(f"{child.pid}\\n")
            time.sleep(600)
        if do == "read":
            assert sys.stdin.read() == ""
        if do == "raise":
            raise ValueError("rows are odd")
        if do == "refuse":
            return {"infeasible": "too many rows: 8 too many"}
        value = {"nan": float("nan"), "text": "much", "odd": {1, 2}}.get(do, design["rows"] * 2)
        return {"power": value, "process": os.getpid(), "offset": options.get("offset", 0)}

    return measured
"""

METRICS = {"power": "W", "process": "", "offset": ""}


@pytest.fixture
def obedient(tmp_path: Path) -> Callable[..., Worker]:
    """Makes the evaluator of this worker with further options."""
    file = tmp_path / "obedient.py"
    file.write_text(OBEDIENT)

    def make(**options: object) -> Worker:
        given = {"pids": str(tmp_path / "pids"), "offset": 5}
        return Worker(worker=str(file), metrics=METRICS, options=given, **options)

    return make


@pytest.fixture
def raw(tmp_path: Path) -> Callable[..., Worker]:
    """Makes the evaluator of a program that speaks the protocol itself, line by line."""

    def make(script: str, **options: object) -> Worker:
        file = tmp_path / "raw.py"
        file.write_text(f"import json, os, sys, time\n{script}\n")
        return Worker(run=[sys.executable, "-u", str(file)], metrics={"power": "W"}, **options)

    return make
