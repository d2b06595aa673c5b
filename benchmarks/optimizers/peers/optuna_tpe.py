"""Optuna's TPESampler with its defaults: tree-structured Parzen estimators."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
from case import Case
from peers.optuna_study import OptunaStudy
from playing import Step, played

TRIES = 1_000


def run(case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The peer's record on the seeded case."""
    player = OptunaStudy(case, optuna.samplers.TPESampler(seed=seed))
    return played(case, player, seed=seed, trials=trials, tries=TRIES)
