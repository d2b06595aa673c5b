"""Optimizers that a program passes as a class, a function or an object, without an entry point."""

from functools import partial

import pytest

from dse import Metric, Study, evaluator, sweep
from dse.api.python_optimizer import optimizer_entry
from dse.core.design import Design
from dse.core.pareto import ParetoSet
from dse.errors import PluginError, SpecError, SpecErrors, StudyError
from dse.optimizers.support.unseen_designs import fresh
from dse.protocols import OptimizerTraits
from dse.storage.memory import MemoryStorage


class Downwards:
    """Ask for the neighbours of the best design; at first, for a design drawn at random."""

    traits = OptimizerTraits(batch=2)

    def __init__(self, problem, *, steps: int = 1):
        if steps < 1:
            raise SpecError(f"steps is {steps}")
        self.problem, self.told, self.steps = problem, [], steps

    def ask(self, count, pending=()):
        taken = {trial.design for trial in self.told}.union(pending)
        best = ParetoSet.of(self.problem, self.told).trials
        near = self.problem.space.neighbours(best[0].design).designs() if best else []
        near = [design for design in near if design not in taken][:count]
        rng = self.problem.rng(len(self.told), len(pending))
        return near + fresh(self.problem.space, count - len(near), rng, taken.union(near))

    def tell(self, finished):
        self.told += finished

    def events(self):
        return []


@evaluator(Metric("time", "us", goal="minimize"))
def kernel(tile: int):
    return {"time": float((tile - 21) ** 2)}


def study(name, optimizer, storage=None, **more):
    space = {"tile": {"integer": [0, 100]}}
    return Study(
        name, space, [kernel], optimizer=optimizer, storage=storage or MemoryStorage(), **more
    )


def build(problem):
    return Downwards(problem)


def designs(made):
    return [trial.design["tile"] for trial in made.trials]


@pytest.mark.parametrize(
    "given", [Downwards, build, {"use": Downwards, "steps": 3}, partial(Downwards, steps=2)]
)
def test_a_class_or_function_proposes_the_designs(given):
    made = study("s", given)
    made.run(trials=30)
    assert min(abs(tile - 21) for tile in designs(made)) < min(
        abs(tile - 21) for tile in designs(made)[:2]
    )
    assert made.record.verify().whole


def test_an_object_is_copied_for_each_run_and_replay():
    problem = study("for its problem", "random").problem
    given = Downwards(problem)
    made = study("s", given)
    made.run(trials=5)
    made.run(trials=12)
    assert given.told == []
    twin = study("twin", Downwards)
    twin.run(trials=12)
    assert designs(made) == designs(twin)
    assert made.record.verify().whole


def test_a_stored_study_resumes_with_the_class_and_explains_its_absence():
    storage = MemoryStorage()
    study("s", Downwards, storage).run(trials=6)
    with pytest.raises(StudyError, match="'Downwards' is defined in a Python program") as caught:
        Study.load("s", storage, evaluators=[kernel]).run(trials=12)
    assert "optimizer=Downwards" in caught.value.hint
    assert len(Study.load("s", storage).front) == 1
    again = Study.load("s", storage, evaluators=[kernel], optimizer=Downwards)
    again.run(trials=12)
    twin = study("twin", Downwards)
    twin.run(trials=12)
    assert designs(again) == designs(twin)


def test_another_optimizer_is_refused_at_loading():
    storage = MemoryStorage()
    study("s", Downwards, storage)
    with pytest.raises(StudyError, match="'Downwards', not 'build'"):
        Study.load("s", storage, optimizer=build)
    study("plain", "random", storage)
    with pytest.raises(StudyError, match="'random', not 'build'"):
        Study.load("plain", storage, optimizer=build)


def test_another_class_or_option_is_another_study():
    storage = MemoryStorage()
    study("s", {"use": Downwards, "steps": 2}, storage)
    with pytest.raises(StudyError, match="asks something else"):
        study("s", Downwards, storage)


def test_its_options_are_checked_when_the_study_is_created():
    with pytest.raises(SpecErrors, match="no option 'step'"):
        study("s", {"use": Downwards, "step": 2})
    with pytest.raises(SpecErrors, match="steps is 0"):
        study("s", {"use": Downwards, "steps": 0})


def test_what_is_no_optimizer_is_refused():
    with pytest.raises(SpecError, match="3 is no optimizer"):
        study("s", 3)
    with pytest.raises(SpecError, match="takes no options"):
        optimizer_entry({"use": build(study("s", "random").problem), "steps": 2})


def test_its_illegal_designs_are_refused_by_name():
    class Broken(Downwards):
        def ask(self, count, pending=()):
            return [Design({"tile": 1000})]

    with pytest.raises(PluginError, match=r"'python:Broken' suggests .*1000"):
        study("s", Broken).run(trials=3)


def test_a_sweep_compares_it_with_plug_ins():
    swept = study("s", "random")
    result = sweep(swept, optimizers=["random", Downwards], seeds=2, trials=8)
    names = swept.engine.storage.studies()
    assert {"s.random.0", "s.Downwards.1"} <= set(names)
    assert result is not None


def test_a_study_file_that_names_a_python_optimizer_is_refused(tmp_path):
    (tmp_path / "space.yaml").write_text("space: s\nparameters: {x: {integer: [0, 9]}}\n")
    (tmp_path / "study.yaml").write_text(
        "study: s\nspace: space.yaml\nevaluators:\n"
        "  e: {use: expression, metrics: {f: {formula: x * x}}}\n"
        "objectives: [{minimize: e.f}]\noptimizer: 'python:Downwards'\n"
    )
    with pytest.raises(SpecErrors, match=r"study.yaml:6: .*Python program"):
        Study.open(tmp_path / "study.yaml", storage=MemoryStorage())
