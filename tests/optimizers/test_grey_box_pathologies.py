from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.core.parameter import Choice, Integer, Real
from dse.core.space import DesignSpace
from dse.optimizers.grey_box import GreyBox
from dse.testing.known import Known, enumerated, played, problem_of
from dse.testing.problems import all_infeasible, mixed_reals, one_design, tiny_codesign

SPACE = DesignSpace(
    parameters=(
        Integer(name="a", low=0, high=9),
        Integer(name="b", low=0, high=9),
        Choice(name="c", values=("x", "y", "z")),
    )
)
REALS = DesignSpace(parameters=tuple(Real(name=name, low=0.0, high=1.0) for name in "abc"))


def shape(batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    a, b = batch["a"].astype(float) / 9, batch["b"].astype(float) / 9
    return a, (1 - a) ** 2 + b + 0.1 * batch.lookup("c", {"x": 0.0, "y": 1.0, "z": 2.0})


def of(truth, goals=("f", "g"), kinds=("measured", "measured"), space=SPACE) -> Known:
    return enumerated(
        space, dict(zip(goals, kinds, strict=True)), dict.fromkeys(goals, "minimize"), truth
    )


def two(change) -> Known:
    return of(lambda batch: Metrics(columns=dict(zip("fg", change(*shape(batch)), strict=True))))


def failing(batch: Batch) -> Metrics:
    f, g = shape(batch)
    broken = np.flatnonzero(batch["a"] + batch["b"] > 7).tolist()
    failures = {row: Failure(kind="crashed", reason="out of memory") for row in broken}
    return Metrics(columns={"f": f, "g": g}, failures=failures)


def noisy(batch: Batch) -> Metrics:
    f, g = shape(batch)
    place = batch["a"] * 37 + batch["b"] * 11
    outlier = np.where(place % 10 == 3, 50.0, 0.0)
    noise = 0.05 * np.sin(1e3 * place)
    spread = np.full(len(f), 0.05)
    return Metrics(columns={"f": f, "g": g + noise + outlier}, spread={"f": spread, "g": spread})


CASES = {
    "one constant metric": two(lambda f, g: (f, np.ones_like(g))),
    "equal objectives": two(lambda f, g: (g, g)),
    "twelve orders of magnitude": two(lambda f, g: (f, 10 ** (6 * (g - 1.2)) * 1e3)),
    "six of ten designs fail": of(failing),
    "noise with outliers": of(noisy),
    "all infeasible": all_infeasible(),
    "one legal design": one_design(),
    "one objective": of(
        lambda batch: Metrics(columns={"g": shape(batch)[1]}), ("g",), ("measured",)
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_study_goes_on_to_its_end(name: str) -> None:
    known = CASES[name]
    budget = 24
    trials = played(known, GreyBox(known.problem), budget)
    assert len(trials) == min(budget, known.problem.space.count() or 0)
    assert len({trial.design for trial in trials}) == len(trials)


def test_an_exhausted_space_ends_it() -> None:
    known = two(lambda f, g: (f, g))
    small = replace(known.problem.space, parameters=known.problem.space.parameters[:1])
    tiny = of(
        lambda batch: Metrics(columns={"f": batch["a"] * 1.0, "g": -1.0 * batch["a"]}), space=small
    )
    assert len(played(tiny, GreyBox(tiny.problem), 50)) == 10


@pytest.mark.slow
def test_six_objectives_are_no_trouble() -> None:
    def truth(batch: Batch) -> Metrics:
        x = np.column_stack([batch[name] for name in "abc"])
        columns = {f"f{k}": ((x - k / 6) ** 2).sum(axis=1) + x[:, k % 3] for k in range(6)}
        return Metrics(columns=columns)

    names = [f"f{k}" for k in range(6)]
    problem = problem_of(
        REALS, dict.fromkeys(names, "measured"), dict.fromkeys(names, "minimize"), truth
    )
    known = Known(problem=problem, truth=truth, front=np.zeros((0, 6)), reference=np.ones(6))
    trials = played(known, GreyBox(problem), 9)
    assert len({trial.design for trial in trials}) == 9


def test_failures_are_learnt_and_avoided() -> None:
    known = CASES["six of ten designs fail"]
    trials = played(known, GreyBox(known.problem), 18)
    assert sum(trial.failure is not None for trial in trials[6:]) <= 3  # by chance seven


@pytest.mark.parametrize("make", [tiny_codesign, mixed_reals])
def test_pending_designs_are_waited_for_and_not_asked_again(make) -> None:
    known = make()
    optimizer = GreyBox(known.problem)
    trials = played(known, optimizer, 12)
    first = optimizer.ask(3)
    more = optimizer.ask(3, first)
    assert len({*first, *more, *(trial.design for trial in trials)}) == len(trials) + 6


@pytest.mark.proof
def test_it_needs_a_quarter_of_the_measurements_of_random_search() -> None:
    known = tiny_codesign()
    own = [
        known.share(played(one, GreyBox(one.problem), 25))
        for one in (known.seeded(seed) for seed in range(5))
    ]
    rng = np.random.default_rng(0)
    drawn = [
        known.share(known.finished(known.problem.space.sample(100, rng).designs()))
        for _ in range(5)
    ]
    assert np.median(own) >= np.median(drawn)
