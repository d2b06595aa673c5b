"""Cost of a suggestion: processor seconds and peak memory by number of trials, on a mixed problem.

Run: python benchmarks/optimizers cost [--told N ...] [--tool NAME ...]

Every tool is told the same finished trials in a process of its own, on one thread. One suggestion
warms it up; the next ones are timed, each with the telling of its outcome, and the median is told.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import ours
from case import Case, done
from playing import Clock

from dse.core.design import Design
from dse.core.expressions.parser import parse
from dse.core.metric import Metric
from dse.core.objective import Objective
from dse.core.parameter import Choice, Integer, Ordinal, Parameter, Real
from dse.core.problem import Problem, Source
from dse.core.space import DesignSpace
from dse.core.trial import Outcome, Trial
from dse.registry import make

TOLD = (100, 500, 1_000, 10_000)
"""Numbers of finished trials with which ours are measured; others with the first only."""

TIMED = 3
SEED = 1

Suggest = Callable[[int], None]
"""Asks for the design of this trial and tells its outcome."""


def main(arguments: Sequence[str]) -> None:
    """Measure ours after 100 to 10,000 trials, and the other tools after 100."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--told", type=int, action="append", help=f"finished trials ({TOLD})")
    parser.add_argument("--tool", action="append", choices=TOOLS, help="only this tool")
    parser.add_argument("--effort", type=int, default=0, help="level of effort of ours (0: full)")
    parser.add_argument("--alone", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.alone:
        print(json.dumps(_measured(chosen.tool[0], chosen.told[0], chosen.effort)))
        return
    print("| tool | trials told | s / suggestion | peak memory |\n|---|---|---|---|", flush=True)
    for tool in chosen.tool or TOOLS:
        for told in chosen.told or (TOLD if TOOLS[tool] is _ours else TOLD[:1]):
            print(_row(tool, told, chosen.effort), flush=True)


def _row(tool: str, told: int, effort: int) -> str:
    alone = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).parent), "cost", "--alone"]
    command += ["--tool", tool, "--told", str(told), "--effort", str(effort)]
    answer = subprocess.run(command, env=alone, capture_output=True, text=True, check=True)
    found = json.loads(answer.stdout.splitlines()[-1])
    memory = f"{found['memory_bytes'] / 2**20:.0f} MiB"
    return f"| {tool} ({found['use']}) | {told} | {found['suggestion_s']:.2f} | {memory} |"


def _measured(tool: str, told: int, effort: int) -> dict[str, Any]:
    case = problem().seeded(SEED)
    designs = case.problem.space.sample(told, np.random.default_rng(SEED)).designs()
    trials = [case.played(design, number) for number, design in enumerate(designs)]
    suggest, use = TOOLS[tool](case, trials, tool, effort)
    seconds = []
    for number in range(told, told + 1 + TIMED):
        clock = Clock()
        with clock:
            suggest(number)
        seconds.append(clock.spent_s)
    return {
        "use": use,
        "suggestion_s": statistics.median(seconds[1:]),
        "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def _ours(case: Case, trials: Sequence[Trial], tool: str, effort: int) -> tuple[Suggest, str]:
    name = ours.chosen(case) if tool == "auto" else tool
    optimizer = make("optimizers", name, case.problem)
    optimizer.tell(trials)
    optimizer.effort = effort

    def suggest(number: int) -> None:
        optimizer.tell([case.played(optimizer.ask(1)[0], number)])

    return suggest, "dse" if name == tool else f"dse {name}"


def _optuna_gp(case: Case, trials: Sequence[Trial], *_: object) -> tuple[Suggest, str]:
    import optuna
    from peers.optuna_study import OptunaStudy

    player = OptunaStudy(case, optuna.samplers.RandomSampler(seed=SEED), first=())
    for trial in trials:
        player.tell(trial)
    player.use(optuna.samplers.GPSampler(seed=SEED))
    return _player(case, player), f"Optuna {version('optuna')}"


def _ax(case: Case, trials: Sequence[Trial], *_: object) -> tuple[Suggest, str]:
    import torch
    from peers.ax_client import AxClient

    torch.set_num_threads(1)
    player = AxClient(case, SEED, first=())
    for trial in trials:
        player.tell(trial)
    return _player(case, player), f"Ax {version('ax-platform')}"


def _player(case: Case, player: Any) -> Suggest:
    def suggest(number: int) -> None:
        values = player.ask()
        assert values is not None
        player.tell(case.played(Design(values), number))

    return suggest


TOOLS: Mapping[str, Callable[[Case, Sequence[Trial], str, int], tuple[Suggest, str]]] = {
    "auto": _ours,
    "qlognehvi": _ours,
    "tpe": _ours,
    "ax": _ax,
    "optuna-gp": _optuna_gp,
}


def problem() -> Case:
    """Twelve parameters of four kinds, no rules, three smooth objectives; made for this."""
    space = DesignSpace(parameters=tuple(_parameters()))
    reads = frozenset(space.by_name)
    names = ("delay", "energy", "error")
    return Case(
        name="twelve-mixed",
        problem=Problem(
            space=space,
            sources={
                name: Source(metric=Metric(name=name), kind="measured", reads=reads)
                for name in names
            },
            objectives=tuple(Objective(expression=parse(n), goal="minimize") for n in names),
        ),
        evaluate=_outcome,
        judge=lambda _: math.nan,
    )


def _parameters() -> list[Parameter]:
    return [
        *(Choice(name=f"kind{k}", values=("a", "b", "c", "d")) for k in range(3)),
        *(Ordinal(name=f"size{k}", values=(8, 16, 32, 64, 128)) for k in range(3)),
        *(Integer(name=f"count{k}", low=1, high=12) for k in range(3)),
        *(Real(name=f"share{k}", low=0.0, high=1.0) for k in range(3)),
    ]


def _outcome(design: Design) -> Outcome:
    kinds = [("a", "b", "c", "d").index(str(design[f"kind{k}"])) for k in range(3)]
    size, count, share = (
        np.array([float(design[f"{name}{k}"]) for k in range(3)])
        for name in ("size", "count", "share")
    )
    penalty = np.array([0.0, 0.4, 0.1, 0.7])[kinds]
    work = float(np.sum(256 / size + penalty))
    power = float(np.sum(size / 64 + count / 6))
    error = float(np.sum((share - 0.3) ** 2 + penalty[::-1] / 4) + np.sum((count - 7) ** 2) / 100)
    return done({"delay": work / float(count.sum()), "energy": work * power, "error": error})
