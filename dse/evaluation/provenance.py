"""Provenance of a driver: machine, versions, evaluators, and the state of the files."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from dse.system.credentials import children_environment

PACKAGES = ("dse-engine", "numpy", "torch", "botorch", "ax-platform", "pymoo", "moocore")

_PATIENCE_S = 5.0


def provenance(folder: Path, evaluators: Mapping[str, Any]) -> dict[str, str]:
    """Return the known provenance of this process, without importing anything heavy.

    Args:
        folder: where the study file is.
        evaluators: that part of the study's identity.
    """
    text = json.dumps(evaluators, sort_keys=True, default=str)
    found = {
        **versions(),
        "host": platform.node(),
        "cpu": _cpu(),
        "gpu": gpu(),
        "evaluators": hashlib.sha256(text.encode()).hexdigest()[:16],
        "git": git_state(folder),
    }
    return {name: value for name, value in found.items() if value}


def versions() -> dict[str, str]:
    """The versions of Python, the machine, and the packages that numbers may depend on."""
    return dict(_versions())


@cache
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def git_state(folder: Path) -> str:
    """The commit that a folder is at, with ``, changed`` where files in it differ from it.

    Empty where there is no repository, or no git. Nothing of the repository is written or run.
    """
    # The monitor of files is a program that the repository names.
    options = ["-c", "core.fsmonitor=false", "-C", str(folder)]
    said = _said(["git", *options, "status", "--porcelain=v2", "--branch", "--", "."])
    lines = said.splitlines()
    commit = next((one.split()[-1] for one in lines if one.startswith("# branch.oid ")), "")
    changed = any(not line.startswith("#") for line in lines)
    return f"{commit}, changed" if commit and changed else commit


def _cpu() -> str:
    try:
        told = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    words = (line.partition(":") for line in told.splitlines())
    model = next((after.strip() for key, _, after in words if key.strip() == "model name"), "")
    return f"{model or platform.machine()} ({os.cpu_count()} threads)"


def gpu() -> str:
    """The names and drivers of NVIDIA's cards; empty where there are none."""
    said = _said(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
    return "; ".join(line.strip() for line in said.splitlines())


def _said(command: Sequence[str]) -> str:
    """Return the output of a program; empty if it is missing, fails or takes too long."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - our own words
            [program, *command[1:]],
            capture_output=True,
            check=False,
            encoding="utf-8",
            errors="replace",
            env={**children_environment(), "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            timeout=_PATIENCE_S,
        )
        return done.stdout if done.returncode == 0 else ""
    return ""
