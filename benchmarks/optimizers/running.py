"""One run in a process of its own: its rows, and what it took."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import catalogue
import records

from dse.core.trial import Trial

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
_GRACE_S = 600
"""So long after the limit a run that hangs in one suggestion is ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is played: a problem, an optimizer, a seed, for so many trials."""

    problem: str
    optimizer: str
    seed: int
    trials: int

    @property
    def key(self) -> tuple[str, str, int]:
        """By which a run is known in the files."""
        return self.problem, self.optimizer, self.seed


def play(run: Run, data: Path, limit_s: float) -> dict[str, Any]:
    """The run's rows, and one row about all of it; in this process."""
    begun = time.monotonic()
    case = catalogue.case_of(run.problem, data)
    trials: list[Trial] = []
    rows: list[dict[str, Any]] = []
    refused = given_up = 0
    ended = records.NOTHING_LEFT
    for step in catalogue.record(run.optimizer, case, run.seed, run.trials):
        trials.append(step.trial)
        refused, given_up = step.refused, step.given_up
        rows.append(
            {
                "trial": len(trials),
                "share": round(case.judge(trials), 6),
                "feasible": int(case.problem.feasible(trials).sum()),
                "optimizer_s": round(step.optimizer_s, 4),
            }
        )
        if len(trials) == run.trials:
            ended = records.ALL_TRIALS
        elif time.monotonic() - begun > limit_s:
            ended = records.LIMIT
            break
    about = {
        "trials": len(trials),
        "asked": run.trials,
        "ended": ended,
        "distinct": len({trial.design for trial in trials}),
        "refused": refused,
        "given_up": given_up,
        "optimizer_s": rows[-1]["optimizer_s"] if rows else 0.0,
        "wall_s": round(time.monotonic() - begun, 2),
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    return {"rows": rows, "about": about}


def apart(run: Run, arguments: Sequence[str], limit_s: float, into: Path) -> dict[str, Any] | None:
    """The same in a child process on one thread; nothing if it failed, which is told."""
    command = [sys.executable, str(Path(__file__).parent), *arguments]
    command += ["--play", run.problem, run.optimizer, str(run.seed), str(into)]
    alone = {**os.environ, **dict.fromkeys(_THREADS, "1"), "PYTHONHASHSEED": "0"}
    try:
        done = subprocess.run(
            command,
            env=alone,
            timeout=limit_s + _GRACE_S,
            capture_output=True,
            text=True,
            check=False,
        )
    except subprocess.TimeoutExpired:
        print(f"  over {limit_s + _GRACE_S:g} s", flush=True)
        return None
    if done.returncode:
        print(f"  failed: {done.stderr.strip()[-600:]}", flush=True)
        return None
    found: dict[str, Any] = json.loads(into.read_text())
    return found
