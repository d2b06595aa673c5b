"""Provenance of the process that runs trials: machine, versions, evaluators and git commit."""

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
    """Return versions, commit and machine of this process, without importing heavy packages.

    Args:
        folder: the folder of the study file.
        evaluators: plug-in and options of each evaluator, by name.
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
    """Return the versions of Python, the platform, and the packages that affect results."""
    return dict(_versions())


@cache
def _versions() -> Mapping[str, str]:
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for package in PACKAGES:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return found


def git_state(folder: Path) -> str:
    """Return the git commit of a folder, with ``, changed`` if files in it are modified.

    The text is empty if the folder is in no repository, or git is not installed. Nothing is written
    to the repository, and no program that its configuration names is run.
    """
    # core.fsmonitor may name a program in an untrusted repository: do not run it.
    options = ["-c", "core.fsmonitor=false", "-C", str(folder)]
    output = _capture_output(["git", *options, "status", "--porcelain=v2", "--branch", "--", "."])
    lines = output.splitlines()
    commit = next((one.split()[-1] for one in lines if one.startswith("# branch.oid ")), "")
    changed = any(not line.startswith("#") for line in lines)
    return f"{commit}, changed" if commit and changed else commit


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return platform.processor()
    words = (line.partition(":") for line in text.splitlines())
    model = next((after.strip() for key, _, after in words if key.strip() == "model name"), "")
    return f"{model or platform.machine()} ({os.cpu_count()} threads)"


def gpu() -> str:
    """Return the names and driver versions of NVIDIA GPUs; empty if there are none."""
    output = _capture_output(
        ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
    )
    return "; ".join(line.strip() for line in output.splitlines())


def _capture_output(command: Sequence[str]) -> str:
    """Return the output of a command; empty if it is missing, fails or times out."""
    program = shutil.which(command[0])
    if program is None:
        return ""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(  # noqa: S603 - constant commands
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
