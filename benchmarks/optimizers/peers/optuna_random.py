"""Optuna's RandomSampler with its defaults: uniform draws over the product of all domains."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
from case import Case
from peers.optuna_study import OptunaStudy
from playing import Step, played

TRIES = 1_000


def run(case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The peer's record on the seeded case."""
    player = OptunaStudy(case, optuna.samplers.RandomSampler(seed=seed))
    return played(case, player, seed=seed, trials=trials, tries=TRIES)
