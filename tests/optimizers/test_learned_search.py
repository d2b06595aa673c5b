"""The optimizer ``learned`` begins with attached runs, learns from its trials, and replays."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dse import Metric, Space, Study, evaluator
from dse.core.pareto import hypervolume
from dse.errors import DseError, PluginError
from dse.optimizers.learned_search import FEWEST, LearnedSearch
from dse.registry import make
from dse.services.studies.attach_table import attach_table
from dse.storage.memory import MemoryStorage

SPACE = {"threads": (1, 16), "block": [8, 16, 32, 64], "format": ["int8", "fp16"]}
GOALS = Metric("time", "ms", goal="minimize"), Metric("loss", "", goal="minimize")


def run_program(threads: int, block: int, format: str) -> dict[str, float]:  # noqa: A002 - a parameter's name
    slow = {"int8": 1.0, "fp16": 1.8}[format]
    time = slow * (40 / threads + abs(math.log2(block / 32)) + threads / 4)
    return {"time": time, "loss": 0.1 / slow + block / 1_000}


def begin(name: str, **options: object) -> Study:
    program = evaluator(*GOALS, kind="measured")(run_program)
    return Study(
        name,
        Space(SPACE),
        [program],
        storage=MemoryStorage(),
        optimizer={"use": "learned", **options},
    )


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Study:
    rng = np.random.default_rng(19)
    lines = ["threads,block,format,run_program.time,run_program.loss"]
    for place in rng.choice(128, 24, replace=False).tolist():
        threads, block, kind = 1 + place % 16, SPACE["block"][place // 16 % 4], place // 64
        metrics = run_program(threads, block, SPACE["format"][kind])
        lines.append(
            f"{threads},{block},{SPACE['format'][kind]},{metrics['time']},{metrics['loss']}"
        )
    table = tmp_path_factory.mktemp("runs") / "runs.csv"
    table.write_text("\n".join(lines))
    study = begin("searched")
    attach_table(study.engine, table)
    study.run(measurements=4)
    return study


def test_attached_runs_are_learned_from_and_few_measurements_find_the_front(searched: Study):
    assert len(searched.engine.trials) == 28
    reference = np.array([120.0, 0.2])
    every = np.array(
        [
            [*run_program(t, b, f).values()]
            for t in range(1, 17)
            for b in SPACE["block"]
            for f in SPACE["format"]
        ]
    )
    found = np.array(
        [
            [t.metrics["run_program.time"], t.metrics["run_program.loss"]]
            for t in searched.engine.trials
        ]
    )

    whole = hypervolume(every, reference)
    assert hypervolume(found[:24], reference) < 0.97 * whole
    assert hypervolume(found, reference) >= 0.99 * whole


def test_the_record_alone_decides_what_is_asked_next(searched: Study):
    problem, trials = searched.engine.plan.problem, list(searched.engine.trials)
    for place in (25, 27):
        method = make("optimizers", "learned", problem)
        method.tell(trials[:place])
        assert method.ask(1) == [trials[place].design]


def test_regressions_are_fitted_again_after_refit_trials_only(searched: Study):
    problem, trials = searched.engine.plan.problem, list(searched.engine.trials)
    fits = []
    for place in (25, 26):
        method = LearnedSearch(problem, refit=2)
        method.tell(trials[:place])
        method.ask(1)
        fits.append(method._fitted[0])  # number of trials in the fit
    assert fits == [24, 26]


def test_a_batch_has_different_designs(searched: Study):
    method = make("optimizers", "learned", searched.engine.plan.problem)
    method.tell(list(searched.engine.trials))
    asked = method.ask(3)
    assert len(set(asked)) == 3
    assert not {trial.design for trial in searched.engine.trials} & set(asked)


def test_without_runs_the_first_designs_fill_the_space():
    study = begin("fresh", proposals="random")
    study.run(measurements=4)
    assert len(study.engine.trials) == 4 < FEWEST


def test_options_and_problems_without_effect_are_refused():
    with pytest.raises(DseError, match="refit"):
        begin("wrong", refit=0).run(measurements=1)
    modelled = evaluator(*GOALS, kind="modelled")(run_program)
    study = Study("modelled", Space(SPACE), [modelled], storage=MemoryStorage())
    with pytest.raises(PluginError, match="nothing is to be learned"):
        LearnedSearch(study.engine.plan.problem)
