"""Early stopping with an executor that passes on no intermediate results is an error."""

import pytest

import dse
from dse.errors import SpecError, SpecErrors
from dse.registry import names
from dse.schema.models import PluginSpec
from dse.schema.study.plan import plan_of
from dse.storage.memory import MemoryStorage
from dse.study.study_engine import StudyEngine

EXECUTORS = """
from dse.executors.serial import Serial

class Mute:
    barrier = True
    capacity = 1

    def __init__(self, work):
        self._work, self._tasks = work, []

    def submit(self, task):
        self._tasks.append(task)

    def collect(self, timeout_s=None):
        tasks, self._tasks = self._tasks, []
        return {task.number: outcome for task, outcome in zip(tasks, self._work(tasks))}

    def close(self):
        pass

def make_mute(work):
    return Mute(work)
"""
STUDY = """
study: rates
space: space.yaml
evaluators:
  net: {use: expression, metrics: {loss: {formula: rate}}}
objectives: [{minimize: net.loss}]
optimizer: random
executor: EXECUTOR
budget: {trials: 4}
early_stopping: {rule: successive-halving, rungs: [1, 3]}
"""
PROBLEM = "early_stopping has no effect with {}: no intermediate results are passed on"
HINT = "remove it, or use an executor with 'on_report': processes, ray, serial"


@pytest.fixture(autouse=True)
def installed(tmp_path, monkeypatch):
    """Installed package with two executors without ``on_report``; one is made by a function."""
    facts = tmp_path / "mute-1.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mute\nVersion: 1\n")
    points = "[dse.executors]\nmute = mute_executor:Mute\nmade = mute_executor:make_mute\n"
    (facts / "entry_points.txt").write_text(points)
    (tmp_path / "mute_executor.py").write_text(EXECUTORS)
    monkeypatch.syspath_prepend(tmp_path)
    names.cache_clear()
    yield
    names.cache_clear()


def written(folder, executor):
    (folder / "space.yaml").write_text("space: s\nparameters: {rate: {ordinal: range(1 .. 9)}}\n")
    (folder / "study.yaml").write_text(STUDY.replace("EXECUTOR", executor))
    return folder / "study.yaml"


def test_a_check_names_the_line_the_executor_and_those_that_can(tmp_path):
    path = written(tmp_path, "mute")
    with pytest.raises(SpecErrors) as caught:
        plan_of(path)
    (error,) = caught.value.errors
    assert error.where == f"{path}:10"
    assert error.problem == PROBLEM.format("the executor 'mute'")
    assert error.hint == HINT


@pytest.mark.parametrize("executor", ["mute", "made"])
def test_a_run_with_another_executor_ends_before_the_first_trial(tmp_path, executor):
    study = StudyEngine.open(written(tmp_path, "serial"), storage=MemoryStorage())
    with pytest.raises(SpecError, match="the executor Mute: no intermediate"):
        study.run(executor=PluginSpec(use=executor))
    assert study.trials == ()


def test_ask_and_tell_pass_on_no_reports(tmp_path):
    study = dse.Study.open(written(tmp_path, "serial"), storage="memory://")
    with pytest.raises(SpecError, match=r"ask\(\) and tell\(\): no intermediate"):
        study.ask()
