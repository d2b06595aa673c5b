"""A kept learned evaluator predicts as the one of its runs, and a changed file is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dse
from dse import Metric, Study
from dse.core.batch import Batch
from dse.errors import DseError, PluginError, SpecError, StudyError
from dse.protocols import LearningResult
from dse_evaluators.learned.learned_evaluator import Learned

RNG = np.random.default_rng(11)
RUNS = "threads,noise,latency\n" + "".join(
    f"{t},{RNG.random():.3f},{9.0 / t + 0.02 * RNG.random():.4f}\n" for t in range(1, 31)
)
BATCH = Batch.of([{"threads": 3, "noise": 0.5}, {"threads": 17, "noise": 0.2}])


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LearningResult]:
    folder = tmp_path_factory.mktemp("kept")
    (folder / "runs.csv").write_text(RUNS)
    file = folder / "latency.dse"
    return file, dse.learn(folder / "runs.csv", file, metrics={"latency": "ms"})


def test_a_kept_evaluator_predicts_as_the_one_of_its_runs(kept: tuple[Path, LearningResult]):
    ours = Learned(file=str(kept[0]))
    theirs = Learned(file=str(kept[0].with_name("runs.csv")), metrics={"latency": "ms"})
    assert ours.version == theirs.version
    assert ours.provides == theirs.provides
    assert ours.evaluate(BATCH).columns["latency"].tolist() == (
        theirs.evaluate(BATCH).columns["latency"].tolist()
    )


def test_one_changed_number_in_a_kept_file_is_refused(
    kept: tuple[Path, LearningResult], tmp_path: Path
):
    body = json.loads(kept[0].read_text())
    body["runs"]["columns"]["latency"][0] = 1.0
    (tmp_path / "other.dse").write_text(json.dumps(body))
    with pytest.raises(SpecError, match="was changed after it was kept"):
        Learned(file=str(tmp_path / "other.dse"))


@pytest.mark.parametrize("text", ["", "[]", '{"kind": "x"}', "\x80\x04."])
def test_another_file_is_no_kept_evaluator(tmp_path: Path, text: str):
    (tmp_path / "other.dse").write_text(text)
    with pytest.raises(SpecError, match="is no kept evaluator"):
        Learned(file=str(tmp_path / "other.dse"))


def test_an_option_beside_a_kept_file_has_no_effect_and_is_refused(
    kept: tuple[Path, LearningResult],
):
    with pytest.raises(PluginError, match="group has no effect"):
        Learned(file=str(kept[0]), group="network")


def test_an_input_that_moves_nothing_has_no_importance(kept: tuple[Path, LearningResult]):
    first, second = kept[1].metrics[0].importances
    assert (first.name, second.name) == ("threads", "noise")
    assert first.rise > 3 * first.stderr
    assert abs(second.rise) < first.rise / 20


def _run_study(folder: Path) -> str:
    url = f"sqlite:///{folder / 'own.db'}"
    metric = Metric("latency", "ms", goal="minimize")
    study = Study("slow", {"threads": (1, 40)}, metrics=[metric], optimizer="random", storage=url)
    for trial in study.ask(30):
        number = int(trial.design["threads"])
        if number % 10:
            study.tell(trial, {"latency": 9.0 / number})
        else:
            study.tell(trial, failed="killed")
    return url


def test_a_stored_study_is_learned_from_without_its_failed_trials(tmp_path: Path):
    found = dse.learn("slow", metrics={"latency": ""}, storage=_run_study(tmp_path))
    failed = [note for note in found.notes if "their state is failed" in note]
    count = int(failed[0].split()[0])
    assert found.metrics[0].unit == "ms"
    assert found.metrics[0].runs == 30 - count


def test_neither_a_file_nor_a_study_is_one_clear_error(tmp_path: Path):
    with pytest.raises(StudyError, match="there is no file and no study 'slwo'"):
        dse.learn("slwo", metrics={"latency": ""}, storage=f"sqlite:///{tmp_path / 'own.db'}")


def test_an_output_with_another_suffix_is_refused(tmp_path: Path):
    with pytest.raises(DseError, match="does not end in"):
        dse.learn("runs.csv", tmp_path / "x.pkl", metrics={"latency": ""})
