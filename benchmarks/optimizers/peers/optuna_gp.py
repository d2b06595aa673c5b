"""Optuna's GPSampler with its defaults: Gaussian processes, logEHVI over several objectives."""

from __future__ import annotations

from collections.abc import Iterator

import optuna
from case import Case
from peers.optuna_study import OptunaStudy
from playing import Step, played

TRIES = 1
"""It does not learn from pruned trials: asked again, it asks for the same, at seconds each."""


def run(case: Case, seed: int, trials: int) -> Iterator[Step]:
    """The peer's record on the seeded case."""
    sampler = optuna.samplers.GPSampler(seed=seed, warn_independent_sampling=False)
    player = OptunaStudy(case, sampler)
    return played(case, player, seed=seed, trials=trials, tries=TRIES)
