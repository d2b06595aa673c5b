"""A record is proved by asking again; one that was changed is not."""

import json
import sqlite3
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.design import Design
from dse.core.trial import Ask, Outcome, State
from dse.errors import StorageError, StudyError
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.migrate import migrate_stored_study
from dse.study.replay import Replay, ReplayResult
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine
from dse_evaluators.generic.expression import Formulas

SPACE = """
space: s
parameters:
  format: {choice: [bf16, fp8, mxfp4, int4]}
  rows:   {ordinal: 'range(1 .. 24)'}
  clock:  {integer: [1, 12]}
"""
STUDY = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: clock ** 2 + rows}, time: {formula: 1000 / (rows * clock)}}}
  board: {use: command, run: [PYTHON, -S, -E, board.py], reads: [format, rows], metrics: {loss: ''}}
objectives: [{minimize: board.loss}, {minimize: chip.energy}, {minimize: chip.time}]
optimizer: OPTIMIZER
executor: {use: EXECUTOR}
budget: {measurements: 10}
seed: 4
MORE
"""
MODELLED = """
study: s
space: space.yaml
evaluators:
  chip: {use: expression, metrics: {energy: {formula: clock ** 2 + rows}, time: {formula: 1000 / (rows * clock)}}}
objectives: [{minimize: chip.energy}, {minimize: chip.time}]
unread: [format]
optimizer: OPTIMIZER
MORE
"""
BOARD = """
import json, sys
design = json.load(sys.stdin)
if design["rows"] == 7: sys.exit("on fire")
print(json.dumps({"loss": {"bf16": 0.9, "fp8": 0.8, "mxfp4": 0.7, "int4": 0.3}[design["format"]] - design["rows"] / 100}))
"""


def study_in(folder: Path, text: str = STUDY, storage: object = None, **words: str) -> StudyEngine:
    folder.mkdir(exist_ok=True)
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(BOARD)
    told = {
        "PYTHON": sys.executable,
        "EXECUTOR": "serial",
        "OPTIMIZER": "random",
        "MORE": "",
        **words,
    }
    for word, meant in told.items():
        text = text.replace(word, meant)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=storage or MemoryStorage())


def ran(folder: Path, text: str = STUDY, storage: object = None, **words: str) -> StudyEngine:
    study = study_in(folder, text, storage, **words)
    study.run()
    return study


def check_proved(study: StudyEngine) -> ReplayResult:
    proof = Replay(StudyEngine.load("s", study.storage)).proof()
    assert (proof.mismatch, proof.unknown) == (None, 0)
    assert proof.trials + proof.carried == len(study.trials)
    return proof


@pytest.mark.parametrize("optimizer", ["random", "sobol", "nsga2", "tpe", "factorial"])
def test_what_an_optimizer_asked_it_asks_again(tmp_path, optimizer):
    more = {"factorial": "{use: factorial, levels: 2}"}
    study = ran(tmp_path, OPTIMIZER=more.get(optimizer, optimizer))
    assert check_proved(study).asks >= 8


@pytest.mark.parametrize("optimizer", ["random", "sobol", "nsga2", "tpe"])
def test_each_ask_is_proved_without_those_before_it(tmp_path, optimizer):
    study = ran(tmp_path, OPTIMIZER=optimizer)
    proofs = [Replay(study, sample=1, seed=seed).proof() for seed in range(5)]
    assert {proof.sound for proof in proofs} == {True}
    assert {proof.whole for proof in proofs} == {False}
    assert {proof.asks for proof in proofs} == {1}
    assert {proof.trials + proof.skipped_trials for proof in proofs} == {len(study.trials)}


def test_a_sample_is_spread_over_the_record_and_finds_what_is_in_it(tmp_path):
    study = ran(tmp_path)
    other = Design({**study.trials[4].design, "clock": 13 - study.trials[4].design["clock"]})
    struck = changed(study, 4, design=other)
    proofs = [Replay(struck, sample=5, seed=seed).proof() for seed in range(20)]
    found = [proof.mismatch for proof in proofs if proof.mismatch]
    assert {wrong.trial for wrong in found} == {4}
    assert 0 < len(found) < 20  # the fourth and the fifth ask are a stretch of their own
    assert {proof.miss_probability for proof in proofs if not proof.mismatch} == {0.5}


def test_what_every_ask_says_is_checked_where_a_sample_is_replayed(tmp_path):
    study = ran(tmp_path)
    wrong = Replay(changed(study, 5, told=3), sample=1).proof().mismatch
    assert wrong.reason == "the trial and its ask differ in the number of finished trials known"


@pytest.mark.parametrize("optimizer", ["exhaustive", "age-moea2", "auto", "decompose"])
def test_a_modelled_study_is_proved_batch_by_batch(tmp_path, optimizer):
    study = ran(tmp_path, MODELLED, OPTIMIZER=optimizer, MORE="budget: {trials: 400}")
    assert check_proved(study).asks < len(study.trials)


@pytest.mark.slow
def test_what_auto_did_is_proved_from_its_first_trial_to_the_completion_of_the_front(tmp_path):
    study = ran(tmp_path, OPTIMIZER="auto")
    by = {ask.by for ask in study.storage.asks("s")}
    assert by == {"(first)", "grey-box", "(completion)"}
    check_proved(study)


@pytest.mark.slow
def test_a_study_that_was_cut_short_and_gone_on_with_is_proved(tmp_path):
    study = study_in(tmp_path, OPTIMIZER="grey-box")
    study.run(budget=Budget(measurements=7))
    study.run()
    check_proved(study)


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["random", "nsga2", "tpe"])
def test_outcomes_that_came_in_another_order_are_no_hindrance(tmp_path, optimizer):
    study = study_in(tmp_path, OPTIMIZER=optimizer, EXECUTOR="processes, workers: 3")
    slow = "import time\n" + BOARD.replace(
        "if design", "time.sleep(design['rows'] % 3 / 4)\nif design", 1
    )
    (tmp_path / "board.py").write_text(slow)
    study.run()
    assert [t.number for t in study.finished] != list(range(len(study.trials)))
    check_proved(study)


def test_baselines_are_given_and_come_first(tmp_path):
    more = "baselines: {plain: {format: bf16, rows: 4, clock: 2}, small: {format: fp8, rows: 1, clock: 1}}"
    study = ran(tmp_path, MORE=more)
    assert [ask.by for ask in study.storage.asks("s")][:3] == ["(given)", "(given)", "random"]
    check_proved(study)


def test_a_baseline_that_objectives_wait_for_is_proved_too(tmp_path):
    more = "baselines: {plain: {format: bf16, rows: 4, clock: 2}}"
    text = STUDY.replace("minimize: board.loss", "minimize: 'ratio(board.loss, plain)'")
    check_proved(ran(tmp_path, text, MORE=more, OPTIMIZER="nsga2"))


def test_what_single_scenarios_would_choose_is_proved(tmp_path):
    text = MODELLED.replace("clock ** 2 + rows}", "clock ** 2 + load * rows}")
    text = text.replace("minimize: chip.energy", "minimize: worst(chip.energy)").replace(
        "minimize: chip.time", "minimize: worst(chip.time)"
    )
    more = "scenarios: {low: {values: {load: 1}}, high: {values: {load: 50}}}"
    study = ran(tmp_path, text, OPTIMIZER="exhaustive", MORE=more)
    assert any(ask.by.startswith("(scenario) ") for ask in study.storage.asks("s"))
    check_proved(study)


def test_designs_and_guesses_of_an_earlier_study_are_proved(tmp_path):
    storage = MemoryStorage()
    ran(tmp_path / "earlier", STUDY.replace("study: s", "study: earlier"), storage)
    study = ran(
        tmp_path / "new", STUDY, storage, MORE="transfer_from: [earlier]", OPTIMIZER="nsga2"
    )
    assert check_proved(study).trials > 10


def test_carried_trials_are_told_apart_and_what_follows_is_proved(tmp_path):
    storage = MemoryStorage()
    old = ran(tmp_path / "old", STUDY.replace("study: s", "study: old"), storage)
    study_in(tmp_path / "new", storage=MemoryStorage(), OPTIMIZER="nsga2")
    carried = migrate_stored_study("old", tmp_path / "new/study.yaml", to="s", storage=storage)
    carried.study.run()
    proof = check_proved(carried.study)
    assert (proof.carried, proof.trials) == (len(old.trials), 10)


def changed(study: StudyEngine, number: int, **what: object) -> StudyEngine:
    """The study with one trial changed behind its back."""
    kept = study.storage._studies["s"].trials
    kept[number] = replace(kept[number], **what)
    return StudyEngine.load("s", study.storage)


def test_a_metric_that_was_changed_by_hand_is_found_by_the_next_ask_that_it_matters_to(tmp_path):
    study = ran(tmp_path, OPTIMIZER="tpe", MORE="", EXECUTOR="serial")
    study.run(budget=Budget(measurements=16))
    first = study.finished[2]
    better = {**first.metrics, "board.loss": -100.0}
    wrong = Replay(changed(study, first.number, metrics=better)).proof().mismatch
    assert wrong.trial > first.number
    assert wrong.expected != wrong.found
    assert wrong.reason.startswith("tpe, given ")


def test_a_design_that_was_changed_by_hand_is_found_where_it_stands(tmp_path):
    study = ran(tmp_path)
    other = Design({**study.trials[4].design, "clock": 13 - study.trials[4].design["clock"]})
    wrong = Replay(changed(study, 4, design=other)).proof().mismatch
    assert (wrong.trial, wrong.found, wrong.expected) == (4, other, study_design(tmp_path, 4))


def study_design(folder: Path, number: int) -> Design:
    return ran(folder).trials[number].design


def test_a_trial_whose_time_of_asking_was_changed_contradicts_its_ask(tmp_path):
    study = ran(tmp_path)
    wrong = Replay(changed(study, 5, told=3)).proof().mismatch
    assert wrong.reason == "the trial and its ask differ in the number of finished trials known"


def test_a_trial_that_no_optimizer_of_the_study_asked_is_found(tmp_path):
    study = study_in(tmp_path)
    designs = study.problem.space.sample(1, study.problem.rng(9)).designs()
    study.storage.add("s", designs, Ask(wanted=1, by="nsga2"))
    study.storage.finish("s", {0: Outcome(state=State.DONE, metrics={"board.loss": 1.0})})
    wrong = Replay(study).proof().mismatch
    assert wrong.reason == "nsga2 asked for it, but the study's optimizer is random"


def test_a_trial_that_claims_to_be_carried_over_is_found(tmp_path):
    study = study_in(tmp_path)
    designs = study.problem.space.sample(1, study.problem.rng(9)).designs()
    study.storage.add("s", designs, Ask(by="(carried)"))
    wrong = Replay(study).proof().mismatch
    assert wrong.reason == "only 0 trials were carried over, and this is not among them"


def test_of_trials_without_an_ask_it_is_said_that_they_are_not_proved(tmp_path):
    study = study_in(tmp_path)
    designs = study.problem.space.sample(3, study.problem.rng(9)).designs()
    study.storage.add("s", designs)
    study.run()
    proof = Replay(study).proof()
    assert (proof.mismatch, proof.unknown, proof.trials, proof.whole) == (None, 3, 7, False)


def test_with_another_version_of_an_evaluator_nothing_can_be_proved(tmp_path, monkeypatch):
    study = ran(tmp_path)
    monkeypatch.setattr(Formulas, "version", "another")
    with pytest.raises(StudyError, match=r"evaluators\.chip"):
        Replay(StudyEngine.load("s", study.storage))


def test_a_version_that_is_another_one_here_is_named(tmp_path):
    study = ran(tmp_path)
    drivers = study.storage._studies["s"].drivers
    told = {**drivers[0].provenance, "numpy": "1.0"}
    drivers[0] = replace(drivers[0], provenance=told)
    other = Design({**study.trials[4].design, "clock": 13 - study.trials[4].design["clock"]})
    wrong = Replay(changed(study, 4, design=other)).proof().mismatch
    assert {name: then for name, (then, _) in wrong.versions.items()} == {"numpy": "1.0"}


def verify(url: str, *more: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["verify", "s", "--storage", url, *more], catch_exceptions=False)
    return done.exit_code, done.output


@pytest.fixture
def url(tmp_path) -> str:
    url = f"sqlite:///{tmp_path}/study.db"
    with closing(opened_storage(url, begins=True)) as storage:
        ran(tmp_path / "files", storage=storage)
    return url


def test_the_command_proves_a_study(url):
    assert verify(url) == (0, "proved: 10 asks, 10 trials\n")


def test_the_command_says_all_as_json(url):
    code, said = verify(url, "--format", "json")
    assert (code, json.loads(said)) == (
        0,
        {
            "study": "s",
            "proved": True,
            "asks": 10,
            "trials": 10,
            "carried": 0,
            "attached": 0,
            "unknown": 0,
            "salvaged": 0,
            "sample": None,
            "mismatch": None,
        },
    )


def test_the_command_proves_a_sample_and_says_what_that_leaves_out(url):
    code, said = verify(url, "--sample", "3", "--seed", "5")
    assert code == 0
    assert said == (
        "proved: 3 asks, 3 trials (a sample, drawn with seed 5)\n"
        "not checked: 7 asks, 7 trials; a single changed ask among all would be missed with "
        "probability 70 %\n"
    )
    assert verify(url, "--sample", "30")[1].startswith("proved: 10 asks, 10 trials (a sample")


def test_the_command_says_as_json_what_a_sample_leaves_out(url):
    told = json.loads(verify(url, "--sample", "4", "--format", "json")[1])
    sample = {"seed": 0, "skipped_asks": 6, "skipped_trials": 6, "miss_probability": 0.6}
    assert (told["proved"], told["asks"], told["sample"]) == (False, 4, sample)


def test_the_command_shows_how_far_it_is_and_how_long_it_takes(url, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    done = CliRunner().invoke(app, ["verify", "s", "--storage", url], catch_exceptions=False)
    assert "replaying" in done.stderr
    assert "eta" in done.stderr
    assert "10/10" in done.stderr
    assert done.stdout == "proved: 10 asks, 10 trials\n"


def edited(url: str, statement: str) -> None:
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(statement)


def test_a_metric_that_was_changed_in_the_database_is_found_by_its_checksum(url):
    edited(url, """UPDATE dse_trials SET metrics = '{"board.loss":0.5}' WHERE number = 3""")
    with pytest.raises(StorageError, match="3"):
        verify(url)


def test_the_command_says_what_it_cannot_prove(url):
    with closing(opened_storage(url)) as storage:
        designs = (
            StudyEngine.load("s", storage)
            .problem.space.sample(2, np.random.default_rng(1))
            .designs()
        )
        storage.add("s", designs)
    code, said = verify(url)
    assert code == 1
    assert said.startswith(
        "proved: 10 asks, 10 trials\nnot proved: 2 trials, of which no ask is kept"
    )


def test_the_command_names_the_first_trial_that_does_not_follow(url):
    with closing(opened_storage(url)) as storage:
        designs = (
            StudyEngine.load("s", storage)
            .problem.space.sample(2, np.random.default_rng(1))
            .designs()
        )
        storage.add("s", designs, Ask(told=10, wanted=2, by="random"))
    code, said = verify(url)
    assert code == 1
    assert said.startswith(
        "trial 10 does not follow from the record: random, given 10 finished trials"
    )
    assert "before it 10 asks and 10 trials are proved" in said
