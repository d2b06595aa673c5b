"""All problems and all optimizers by name, each imported when it is played."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

import open_problems
import ours
from case import Case
from playing import Step

PEERS = {
    "random": "peers.optuna_random",
    "optuna-tpe": "peers.optuna_tpe",
    "optuna-nsga2": "peers.optuna_nsga2",
    "pymoo": "peers.pymoo_mixed",
    "optuna-gp": "peers.optuna_gp",
    "ax": "peers.ax_client",
}
OTHERS = ("test_functions", "codesign", "formulas")
"""Modules with more problems, each with ``NAMES`` and ``case(name)``."""

OWN = "dse-"
"""Before the name of a plug-in of ours; ``auto`` is the one that would be chosen."""


def case_of(name: str, data: Path = open_problems.DATA) -> Case:
    """The problem of that name; ``data`` is where those of :mod:`open_problems` lie."""
    if name in open_problems.NAMES:
        return open_problems.case(name, data)
    module = next((m for m in map(importlib.import_module, OTHERS) if name in m.NAMES), None)
    if module is None:
        raise SystemExit(f"there is no problem {name!r}")
    found: Case = module.case(name)
    return found


def record(name: str, case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The record of the optimizer of that name."""
    seeded = case.seeded(seed)
    if name in PEERS:
        found: Iterator[Step] = importlib.import_module(PEERS[name]).run(seeded, seed, trials)
        return found
    return ours.run(seeded, name.removeprefix(OWN), trials)
