"""What an evaluation may know of its trial, and what it finds again of an earlier attempt."""

import json
import sys
from pathlib import Path

import pytest

from dse import Metric, evaluator
from dse import Study as PythonStudy
from dse.core.batch import Batch
from dse.core.trial import State
from dse.errors import StorageError
from dse.evaluation.checkpoints import current_trial, folder_of
from dse.services.studies.status import status_json
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine
from dse_evaluators.generic.command import Command

SPACE = "space: s\nparameters: {rows: {ordinal: [1, 2, 3, 4]}}\n"
STUDY = """
study: STUDY
space: space.yaml
evaluators: {board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: s}}}
objectives: [{minimize: board.time}]
optimizer: random
executor: {use: EXECUTOR}
budget: {measurements: 2}
"""

# Counts to 10 for the first design; in the middle of the first attempt somebody is killed.
COUNTING = """
import json, os, pathlib, signal, sys, time
design = json.load(sys.stdin)
kept = pathlib.Path(os.environ["DSE_TRIAL_DIR"], "step")
step = int(kept.read_text()) if kept.exists() else 0
while step < 10:
    step += 1
    kept.write_text(str(step))
    with open("steps", "a") as file:
        file.write(f"{os.environ['DSE_TRIAL']} {os.environ['DSE_ATTEMPT']} {step}\\n")
    if step == 5 and os.environ["DSE_TRIAL"] == "0" and os.environ["DSE_ATTEMPT"] == "0":
        os.kill(VICTIM, signal.SIGKILL)
        time.sleep(60)
print(json.dumps({"time": step}))
"""
FAILING = """
import json, os, sys
design = json.load(sys.stdin)
with open("steps", "a") as file:
    file.write(os.environ["DSE_TRIAL"] + "\\n")
print(json.dumps({"time": design["rows"]}))
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("DSE_TRIAL_ROOT", str(tmp_path / "root"))
    return tmp_path / "root"


def study_in(folder, program, storage=None, executor="serial", name="s"):
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.py").write_text(program)
    words = {"PYTHON": sys.executable, "EXECUTOR": executor, "STUDY": name}
    text = STUDY
    for word, meant in words.items():
        text = text.replace(word, meant)
    (folder / "study.yaml").write_text(text)
    return StudyEngine.open(folder / "study.yaml", storage=storage or MemoryStorage())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victim", "executor"),
    [("os.getpid()", "serial"), ("os.getpid()", "processes"), ("os.getppid()", "processes")],
    ids=["program", "program of a worker", "worker"],
)
def test_a_program_that_is_killed_goes_on_where_it_was(tmp_path, root, victim, executor):
    study = study_in(tmp_path, COUNTING.replace("VICTIM", victim), executor=executor)
    study.run()
    assert [(t.state, t.metrics["board.time"]) for t in study.trials] == [(State.DONE, 10)] * 2
    lines = (tmp_path / "steps").read_text().splitlines()
    steps = [line for line in lines if line.startswith("0 ")]
    assert steps == [f"0 {int(step > 5)} {step}" for step in range(1, 11)]
    assert list(root.iterdir()) == []


ORPHANED = COUNTING.replace("time.sleep(60)", "(time.sleep(0.5), kept.write_text('99'))")


@pytest.mark.slow
def test_what_a_killed_worker_left_running_does_not_write_into_the_next_attempt(tmp_path, root):
    """The program outlives its worker by a while: it ignores everything but its own end."""
    program = ORPHANED.replace("VICTIM", "os.getppid()")
    study = study_in(tmp_path, program, executor="processes")
    study.run()
    assert [t.metrics["board.time"] for t in study.trials] == [10] * 2


def test_an_evaluation_that_has_ended_is_not_made_again_though_nobody_stored_it(tmp_path, root):
    class Forgetful(MemoryStorage):
        forgets = 1

        def finish(self, *told, **more):
            if self.forgets:
                self.forgets = 0
                raise StorageError("the disk is full")
            return super().finish(*told, **more)

    storage = Forgetful()
    study = study_in(tmp_path, FAILING, storage)
    with pytest.raises(StorageError, match="full"):
        study.run()
    StudyEngine.load("s", storage).run()
    assert (tmp_path / "steps").read_text().split() == ["0", "1"]
    assert [trial.state for trial in study.trials] == [State.DONE] * 2
    assert [trial.measured for trial in study.trials] == [1, 1]
    assert list(root.iterdir()) == []


def test_the_state_of_a_study_tells_how_busy_its_workers_were(tmp_path, root):
    study = study_in(tmp_path, FAILING)
    assert (status_json(study)["busy"], status_json(study)["per_hour"]) == (None, None)
    study.run()
    state = status_json(study)
    times = [one for t in study.trials for one in (t.asked_at, t.begun_at, t.finished_at)]
    spent = sum(trial.finished_at - trial.begun_at for trial in study.trials)
    assert state["busy"] == pytest.approx(spent / (max(times) - min(times)))
    assert state["per_hour"] == pytest.approx(7200 / (max(times) - min(times)))


def test_a_folder_is_named_by_no_text_of_the_study(tmp_path, root, monkeypatch):
    monkeypatch.setenv("DSE_TRIAL_KEEP", "1")
    study = study_in(tmp_path, FAILING, name="a.. b")
    study.run()
    folders = sorted(Path(folder_of("a.. b", trial)) for trial in study.trials)
    assert sorted(root.iterdir()) == folders
    assert all(set(folder.name) <= set("0123456789abcdef") for folder in folders)
    assert {folder.stat().st_mode & 0o777 for folder in folders} == {0o700}


def test_a_study_of_the_same_name_begins_with_empty_folders(tmp_path, root, monkeypatch):
    monkeypatch.setenv("DSE_TRIAL_KEEP", "1")
    for _ in range(2):
        study_in(tmp_path, FAILING).run()
    assert len((tmp_path / "steps").read_text().split()) == 4
    assert len(list(root.iterdir())) == 4


def test_what_a_killed_driver_left_is_removed_by_the_next_one(tmp_path, root, monkeypatch):
    study = study_in(tmp_path, FAILING)
    monkeypatch.setenv("DSE_TRIAL_KEEP", "1")
    study.run()
    (root / "of-another-study").mkdir()
    monkeypatch.delenv("DSE_TRIAL_KEEP")
    study.run()
    assert [folder.name for folder in root.iterdir()] == ["of-another-study"]


TELLING = """
import json, os, sys
folder = os.environ["DSE_TRIAL_DIR"]
before = os.listdir(folder)
open(os.path.join(folder, "mark"), "w").close()
print(json.dumps({
    "same": int(sys.argv[1] == "--keep=" + folder),
    "literal": int(sys.argv[2] == "{x}"),
    "files": len(before),
    "number": int(os.environ["DSE_TRIAL"] or -1),
}))
"""


def command(folder, **options):
    (folder / "telling.py").write_text(TELLING)
    run = [sys.executable, "-S", "-E", str(folder / "telling.py"), "--keep={DSE_TRIAL_DIR}", "{x}"]
    metrics = dict.fromkeys(("same", "files", "number", "literal"), "")
    return Command(run=run, metrics=metrics, **options)


def test_a_program_has_a_folder_where_no_study_runs_it(tmp_path):
    told = command(tmp_path).evaluate(Batch.of([{"rows": 1}])).columns
    assert {name: float(values[0]) for name, values in told.items()} == {
        "same": 1, "files": 0, "number": -1, "literal": 1,
    }  # fmt: skip


def test_each_repeat_has_a_folder_of_its_own(tmp_path):
    told = command(tmp_path, repeats=3).evaluate(Batch.of([{"rows": 1}]))
    assert told.columns["files"].tolist() == [0]
    assert told.spread["files"].tolist() == [0]


def test_a_root_that_cannot_be_written_costs_checkpoints_and_no_trial(tmp_path, monkeypatch):
    (tmp_path / "root").write_text("a file")
    monkeypatch.setenv("DSE_TRIAL_ROOT", str(tmp_path / "root"))
    study = study_in(tmp_path, FAILING)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2


def test_a_user_without_a_home_has_no_checkpoints_and_loses_no_trial(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    for name in ("DSE_TRIAL_ROOT", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    study = study_in(tmp_path, FAILING)
    study.run()
    assert [trial.state for trial in study.trials] == [State.DONE] * 2


@evaluator(Metric("time", "s"))
def counted(rows: int) -> dict[str, float]:
    trial = current_trial()
    assert trial is not None
    file = trial.folder / "seen"
    seen = json.loads(file.read_text()) if file.exists() else []
    file.write_text(json.dumps([*seen, trial.attempt]))
    if rows > 1 and trial.attempt < 2:
        raise ValueError("not yet")
    return {"time": 10 * trial.number + len(seen)}


def test_a_function_in_python_learns_its_trial_and_finds_its_folder_again(root):
    assert current_trial() is None
    study = PythonStudy(
        "py", {"rows": [1, 2]}, [counted], minimize=["counted.time"], storage="memory://",
        retries={"raised": 2}, optimizer="exhaustive",
    )  # fmt: skip
    study.run(trials=2)
    assert [(t.attempts, t.metrics["counted.time"]) for t in study.trials] == [
        (2 * (t.design["rows"] > 1), 10 * t.number + 2 * (t.design["rows"] > 1))
        for t in study.trials
    ]
    assert list(root.iterdir()) == []
