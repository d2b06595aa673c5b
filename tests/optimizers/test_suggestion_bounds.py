"""Amounts of data and candidates behind one suggestion, however many trials or designs exist."""

from __future__ import annotations

import importlib
from dataclasses import replace

import numpy as np
import pytest

from dse.core.parameter import Integer
from dse.core.space import DesignSpace
from dse.optimizers import qlognehvi, tpe
from dse.optimizers.bayesian import training_data
from dse.optimizers.bayesian.expected_improvement import MOST_FRONT, Archive, spread_rows
from dse.optimizers.bayesian.measured_settings import (
    BRED,
    DRAWN,
    LISTED,
    MeasuredSettings,
    MeasuredSplit,
)
from dse.optimizers.bayesian.model_fitting import ModelFitter
from dse.optimizers.bayesian.search_effort import LEVELS
from dse.optimizers.bayesian.training_sample import select_trials
from dse.optimizers.grey_box import GreyBox
from dse.optimizers.qlognehvi import ROWS, QLogNehvi
from dse.optimizers.support.seeded_scope import seed_generators
from dse.protocols import AdjustsEffort
from dse.registry import load
from dse.testing.problems import tiny_codesign, zdt1

ZDT1 = zdt1()
DESIGNS = ZDT1.problem.space.sample(120, np.random.default_rng(3)).designs()
TRIALS = ZDT1.finished(DESIGNS)


def sphere_front(count: int, objectives: int) -> np.ndarray:
    points = np.abs(np.random.default_rng(2).normal(size=(count, objectives)))
    return 1 - points / np.linalg.norm(points, axis=1, keepdims=True)


def test_tpe_holds_a_bounded_number_of_trials_of_any_record(monkeypatch) -> None:
    monkeypatch.setattr(tpe, "MOST", 40)
    monkeypatch.setattr(tpe, "_BLOCK", 20)
    optimizer = tpe.Tpe(ZDT1.problem)
    optimizer.tell(TRIALS[:110])
    optimizer.ask(1)
    assert optimizer.rows == 50


def test_tpe_asks_the_same_design_however_the_trials_were_split(monkeypatch) -> None:
    monkeypatch.setattr(tpe, "MOST", 40)
    monkeypatch.setattr(tpe, "_BLOCK", 20)
    resumed, running = tpe.Tpe(ZDT1.problem), tpe.Tpe(ZDT1.problem)
    resumed.tell(TRIALS[:87])
    running.tell(TRIALS[:30])
    running.ask(1)
    running.tell(TRIALS[30:70])
    running.ask(1)
    running.tell(TRIALS[70:87])
    assert resumed.ask(2) == running.ask(2)


def test_of_45756_measured_parts_a_sample_is_valued() -> None:
    space = DesignSpace(
        parameters=(Integer(name="a", low=1, high=124), Integer(name="b", low=1, high=369))
    )
    problem = replace(
        ZDT1.problem,
        space=space,
        sources={
            name: replace(source, reads=frozenset({"a", "b"}))
            for name, source in ZDT1.problem.sources.items()
        },
    )
    settings = MeasuredSettings(problem, MeasuredSplit(problem=problem))
    best = space.sample(8, np.random.default_rng(1))
    pool = settings.pool(best, set(), np.random.default_rng(0))
    assert space.count() == 45_756 > LISTED
    assert 0 < len(pool) <= DRAWN + 3 * BRED


def test_listed_parts_are_all_valued_at_full_effort_and_sampled_below() -> None:
    problem = tiny_codesign().problem
    settings = MeasuredSettings(problem, MeasuredSplit(problem=problem))
    assert settings.all is not None
    none, rng = problem.space.batch([]), np.random.default_rng(0)
    assert len(settings.pool(none, set(), rng)) == len(settings.all)
    assert len(settings.pool(none, set(), rng, drawn=2)) == 2


def test_a_large_archive_is_thinned_evenly_and_keeps_its_extremes() -> None:
    front = sphere_front(2_000, 3)
    archive = Archive(
        learnt=front,
        known=np.zeros((2_000, 0)),
        learnt_reference=np.ones(3),
        known_reference=np.ones(0),
    )
    found = archive.bounded.learnt
    assert len(found) == MOST_FRONT[3]
    assert (found.min(axis=0) == front.min(axis=0)).all()
    gaps = np.linalg.norm(front[:, None] - found[None], axis=2).min(axis=1)
    assert gaps.max() < 0.12


def test_a_small_archive_is_kept_whole() -> None:
    assert spread_rows(sphere_front(50, 3), 50).tolist() == list(range(50))


def test_a_gaussian_process_is_fitted_to_the_rows_of_the_effort() -> None:
    problem = ZDT1.problem
    split = MeasuredSplit(problem=problem)
    probe = problem.space.sample(32, np.random.default_rng(0))
    fitter = ModelFitter(problem, split, probe, most=LEVELS[2].rows)
    losses = problem.trial_losses(TRIALS)[:, 0]
    _, predictor = fitter.objective(problem.objectives[0], TRIALS, losses, refit=False)
    assert len(predictor.process.points) == LEVELS[2].rows < len(TRIALS)


def test_the_joint_baseline_and_the_rows_of_qlognehvi_are_bounded(monkeypatch) -> None:
    monkeypatch.setattr(training_data, "MOST_BASELINE", 20)
    found = training_data.build_training_data(ZDT1.problem, select_trials(ZDT1.problem, TRIALS, 60))
    assert found is not None
    assert len(found.points) == 60 < ROWS[0]
    assert found.baseline.sum() == 20
    assert set(found.elite) & set(np.flatnonzero(found.baseline))


@pytest.fixture
def botorch_models():
    with seed_generators(1):  # which mutes warnings of the import
        return importlib.import_module("dse.optimizers.bayesian.botorch_models")


@pytest.fixture
def fits(botorch_models, monkeypatch) -> list[int]:
    """Number of values at each fit of hyperparameters."""
    found: list[int] = []
    fit = botorch_models._with_fitted_hyperparameters

    def note(model):
        found.append(len(model.train_inputs[0]))
        return fit(model)

    monkeypatch.setattr(botorch_models, "_with_fitted_hyperparameters", note)
    return found


def test_beyond_its_rows_qlognehvi_keeps_hyperparameters_for_some_trials(monkeypatch, fits) -> None:
    monkeypatch.setattr(qlognehvi, "ROWS", (20, 10))
    monkeypatch.setattr(qlognehvi, "_REFITTED", 5)
    resumed, running = QLogNehvi(ZDT1.problem), QLogNehvi(ZDT1.problem)
    for first in range(25, 29):
        running.tell(TRIALS[first - 1 if first > 25 else 0 : first])
        last = running.ask(1)
    assert len(fits) == 1
    resumed.tell(TRIALS[:28])
    assert resumed.ask(1) == last
    assert running.events() == resumed.events() == []


def test_fewer_samples_decide_which_of_many_trials_may_be_on_the_front(
    monkeypatch, botorch_models
) -> None:
    samples: list[int] = []
    prune = botorch_models.prune_inferior_points_multi_objective

    def note(*arguments, **options):
        samples.append(options["num_samples"])
        return prune(*arguments, **options)

    monkeypatch.setattr(botorch_models, "prune_inferior_points_multi_objective", note)
    for count in (16, 80):
        optimizer = QLogNehvi(ZDT1.problem)
        optimizer.tell(TRIALS[:count])
        assert len(optimizer.ask(1)) == 1
        assert optimizer.events() == []
    assert samples == [2_048, 256]


@pytest.mark.parametrize("name", ["grey-box", "qlognehvi", "tpe"])
def test_an_optimizer_states_its_levels_of_effort(name) -> None:
    plugin = load("optimizers", name)
    assert isinstance(plugin, AdjustsEffort)
    assert plugin.efforts >= 2
    assert plugin.effort == 0


@pytest.mark.parametrize("known", [tiny_codesign(), ZDT1], ids=["modelled too", "all measured"])
@pytest.mark.parametrize("effort", [0, 1, 3])
def test_a_grey_box_suggestion_depends_on_the_present_effort_alone(known, effort) -> None:
    trials = known.finished(known.problem.space.sample(9, np.random.default_rng(3)).designs())
    changed, steady = GreyBox(known.problem), GreyBox(known.problem)
    changed.tell(trials[:8])
    changed.effort = 2
    changed.ask(1)
    changed.tell(trials[8:])
    steady.tell(trials)
    changed.effort = steady.effort = effort
    found = changed.ask(1)
    assert found == steady.ask(1)
    assert found[0] not in {trial.design for trial in trials}


@pytest.mark.parametrize("make", [QLogNehvi, tpe.Tpe])
def test_the_lowest_effort_breeds_new_legal_designs_from_the_front(make) -> None:
    optimizer = make(ZDT1.problem)
    optimizer.tell(TRIALS[:40])
    optimizer.effort = make.efforts - 1
    found = optimizer.ask(4)
    assert len({*found, *(trial.design for trial in TRIALS[:40])}) == 44
    assert ZDT1.problem.space.are_legal(ZDT1.problem.space.batch(found)).all()
    assert optimizer.ask(4) == found
