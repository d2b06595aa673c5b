"""The same done to Optuna's RDBStorage, each in a process of its own."""

from __future__ import annotations

import sqlite3
import time
import warnings
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
)
from question import designs, outcomes

ADDED = 1000
"""So many trials are added by ``add_trials``, which takes milliseconds for each."""

SPACE: dict[str, BaseDistribution] = {
    "lanes": FloatDistribution(0.0, 1e7),
    "stages": CategoricalDistribution((1, 2, 4, 8)),
    "clock": FloatDistribution(1e8, 2e9),
    "format": CategoricalDistribution(("bf16", "fp8", "int8", "mxfp4")),
    "sparse": CategoricalDistribution((True, False)),
}
OBJECTIVES = ("board.error", "chip.energy", "chip.time")

# Rows as its own storage writes them: those of the added trials again, under the next numbers. The
# values are worse, so that the best stay as few.
_COPIES = (
    """
    INSERT INTO trials
    SELECT trial_id + :by, number + :by, study_id, state, datetime_start, datetime_complete
    FROM trials WHERE number < :added
    """,
    """
    INSERT INTO trial_params
    SELECT param_id + :by * 5, trial_id + :by, param_name, param_value, distribution_json
    FROM trial_params WHERE trial_id <= :added
    """,
    """
    INSERT INTO trial_values
    SELECT trial_value_id + :by * 3, trial_id + :by, objective, value + 0.001 * :by, value_type
    FROM trial_values WHERE trial_id <= :added
    """,
)


def fill(folder: Path, trials: int) -> Iterator[tuple[str, int, float]]:
    """Create a study, add the first trials, and copy their rows for the rest."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    warnings.simplefilter("ignore")
    study = optuna.create_study(
        storage=_url(folder), study_name="stored", directions=["minimize"] * len(OBJECTIVES)
    )
    added = min(ADDED, trials)
    new = [
        optuna.trial.create_trial(
            params=dict(design),
            distributions=SPACE,
            values=[outcome.metrics[name] for name in OBJECTIVES],
        )
        for design, outcome in zip(designs(added), outcomes(added, seed=6), strict=True)
    ]
    started = time.perf_counter()
    study.add_trials(new)
    yield "add one by one", added, time.perf_counter() - started
    with closing(sqlite3.connect(folder / "optuna.db")) as connection, connection:
        for by in range(added, trials, added):
            for statement in _COPIES:
                connection.execute(statement, {"by": by, "added": added})


def open_(folder: Path) -> Iterator[tuple[str, int, float]]:
    """Load the study, all trials, and the best."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    started = time.perf_counter()
    study = optuna.load_study(study_name="stored", storage=_url(folder))
    trials = study.get_trials(deepcopy=False)
    assert len(study.best_trials) > 0
    yield "open: load, trials, best", len(trials), time.perf_counter() - started


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/optuna.db"
