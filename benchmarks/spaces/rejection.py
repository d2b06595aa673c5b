"""Optuna: define by run, an illegal trial pruned; counted and listed by its brute-force sampler."""

from __future__ import annotations

from typing import Any

from statement import Row, Statement
from tool import Tool


def _row(statement: Statement, trial: Any) -> Row:
    """A trial's values; a parameter whose guard does not hold is not asked for."""
    have: dict[str, Any] = {}
    for name in statement.names:
        guard = statement.guards.get(name, {})
        if all(have[parent] in values for parent, values in guard.items()):
            have[name] = trial.suggest_categorical(name, list(statement.domains[name]))
        else:
            have[name] = None
    return tuple(have.values())


def _prepare(_: Statement) -> None:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)


def _listed(statement: Statement, most: int | None) -> int:
    import optuna

    rules = statement.function(statement.rules, statement.names)
    have: list[Row] = []

    def objective(trial: Any) -> float:
        row = _row(statement, trial)
        if not rules(*row):
            raise optuna.TrialPruned
        have.append(row)
        if most is not None and len(have) >= most:
            study.stop()
        return 0.0

    study = optuna.create_study(sampler=optuna.samplers.BruteForceSampler(seed=0))
    study.optimize(objective)
    return len(have)


def _sampled(statement: Statement, number: int, seed: int) -> list[Row]:
    import optuna

    rules = statement.function(statement.rules, statement.names)
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=seed))
    have: list[Row] = []
    while len(have) < number:
        trial = study.ask()
        row = _row(statement, trial)
        if rules(*row):
            have.append(row)
            study.tell(trial, 0.0)
        else:
            study.tell(trial, state=optuna.trial.TrialState.PRUNED)
    return have


def _rows(_: Statement, drawn: object) -> list[Row]:
    assert isinstance(drawn, list)
    return drawn


REJECTION = Tool(
    name="Optuna",
    prepare=_prepare,
    count=lambda statement: _listed(statement, None),
    listed=_listed,
    sampled=_sampled,
    rows=_rows,
)
