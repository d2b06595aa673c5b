"""A study's trials carried over to a changed space."""

import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.encoding import encoded, encoded_designs
from dse.core.parameter import Choice, Integer, Ordinal, Real
from dse.core.space import DesignSpace
from dse.core.trial import State
from dse.errors import StudyError
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.migrate import migrate_stored_study
from dse.study.study_engine import StudyEngine

STUDY = """
study: carry
space: space.yaml
evaluators:
  cost:
    use: expression
    metrics:
      energy: {{formula: "rows * 2 + 4 * (format == 'int8')"}}
      error: {{formula: "{error}"}}
objectives: [{{minimize: cost.energy}}, {{minimize: cost.error}}]
optimizer: {optimizer}
budget: {{trials: 8}}
seed: 3
"""
ERROR = "1 / rows + 0.1 * (format == 'int4')"


def written(
    folder: Path,
    *,
    rows: str = "range(1 .. 16)",
    formats: str = "[int4, int8]",
    more: str = "",
    optimizer: str = "random",
    error: str = ERROR,
) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "space.yaml").write_text(
        f"space: small\nparameters:\n  rows: {{ordinal: {rows}}}\n  format: {{choice: {formats}}}\n{more}"
    )
    (folder / "study.yaml").write_text(STUDY.format(optimizer=optimizer, error=error))
    return folder / "study.yaml"


@pytest.fixture
def begun(tmp_path: Path) -> MemoryStorage:
    storage = MemoryStorage()
    StudyEngine.open(written(tmp_path / "old"), storage=storage).run()
    return storage


def test_what_is_legal_in_both_spaces_counts_and_the_rest_is_marked(tmp_path, begun):
    old = StudyEngine.load("carry", begun)
    new = written(tmp_path / "new", rows="range(1 .. 8)")
    carried = migrate_stored_study("carry", new, storage=begun)
    states = [trial.state for trial in carried.study.trials]
    small = [trial.design["rows"] <= 8 for trial in old.finished]
    assert carried.study.name == "carry-2"
    assert states == [State.DONE if legal else State.OUTSIDE for legal in small]
    assert (carried.inside, carried.outside) == (sum(small), 8 - sum(small))
    assert [t.metrics for t in carried.study.trials] == [t.metrics for t in old.finished]


def test_the_new_study_has_its_file_s_name_or_the_next_that_is_free(tmp_path, begun):
    new = written(tmp_path / "new", rows="range(1 .. 8)")
    new.write_text(new.read_text().replace("study: carry", "study: wider"))
    names = [migrate_stored_study("carry", new, storage=begun).study.name for _ in range(3)]
    assert names == ["wider", "wider-2", "wider-3"]
    assert migrate_stored_study("carry", new, to="told", storage=begun).study.name == "told"


def test_the_old_study_stays_as_it_is(tmp_path, begun):
    before = StudyEngine.load("carry", begun).trials
    migrate_stored_study("carry", written(tmp_path / "new", rows="range(1 .. 8)"), storage=begun)
    assert StudyEngine.load("carry", begun).trials == before


def test_no_design_outside_the_space_is_on_the_front(tmp_path, begun):
    carried = migrate_stored_study(
        "carry", written(tmp_path / "new", rows="[9, 10, 11, 12]"), storage=begun
    )
    assert all(trial.design in carried.study.problem.space for trial in carried.study.front.trials)


@pytest.mark.parametrize("optimizer", ["random", "sobol", "nsga2", "qlognehvi"])
def test_a_carried_study_goes_on_with_its_whole_budget(tmp_path, begun, optimizer):
    new = written(
        tmp_path / "new",
        rows="range(1 .. 24)",
        formats="[int4, int8, fp8]",
        more="constraints: [format != 'int4']\n",
        optimizer=optimizer,
    )
    study = migrate_stored_study("carry", new, storage=begun).study
    study.run()
    added = study.trials[8:]
    assert len(added) == 8
    assert all(trial.design in study.problem.space for trial in added)
    assert not {trial.design for trial in added} & {trial.design for trial in study.trials[:8]}


def test_a_surrogate_learns_from_outside_and_resumes_alike(tmp_path, begun):
    new = written(tmp_path / "new", rows="range(4 .. 24)", optimizer="{use: qlognehvi, initial: 2}")
    once = migrate_stored_study("carry", new, storage=begun, to="once").study
    twice = migrate_stored_study("carry", new, storage=begun, to="twice").study
    once.run(budget=Budget(trials=4))
    twice.run(budget=Budget(trials=2))
    StudyEngine.load("twice", begun).run(budget=Budget(trials=4))
    assert [t.design for t in StudyEngine.load("twice", begun).trials] == [
        t.design for t in once.trials
    ]


def test_a_new_parameter_needs_the_value_that_old_trials_had(tmp_path, begun):
    more = "  depth: {ordinal: [1, 2]}\n"
    new = written(tmp_path / "new", more=more)
    (tmp_path / "new" / "study.yaml").write_text(
        STUDY.format(optimizer="random", error=ERROR).replace("rows * 2", "rows * 2 * depth")
    )
    with pytest.raises(StudyError, match="another one: options"):
        migrate_stored_study("carry", new, storage=begun)
    same = written(tmp_path / "same", more=more)
    same.write_text(same.read_text() + "unread: [depth]\n")
    told = migrate_stored_study("carry", same, storage=begun, settings={"depth": 1})
    untold = migrate_stored_study("carry", same, storage=begun)
    assert (told.inside, untold.inside) == (8, 0)


def test_a_parameter_that_was_measured_cannot_be_dropped(tmp_path):
    storage = MemoryStorage()
    (tmp_path / "bench.py").write_text(
        "import json, sys; d = json.load(sys.stdin); print(json.dumps({'y': d['a'] + d.get('b', 0)}))"
    )
    path = tmp_path / "study.yaml"
    path.write_text(
        "study: bench\nspace: space.yaml\nevaluators:\n"
        f"  b: {{use: command, run: ['{sys.executable}', bench.py], metrics: {{y: ''}}}}\n"
        "objectives: [{minimize: b.y}]\noptimizer: random\nbudget: {trials: 2}\n"
    )
    parameters = "space: s\nparameters:\n  a: {integer: [1, 2]}\n"
    (tmp_path / "space.yaml").write_text(parameters + "  b: {integer: [1, 5]}\n")
    StudyEngine.open(path, storage=storage).run()
    (tmp_path / "space.yaml").write_text(parameters)
    with pytest.raises(StudyError, match="read 'b', which the new space does not have"):
        migrate_stored_study("bench", path, storage=storage)


def test_another_evaluator_is_refused_with_what_differs(tmp_path, begun):
    new = written(tmp_path / "new", error="2 / rows")
    with pytest.raises(StudyError, match="options was"):
        migrate_stored_study("carry", new, storage=begun)


def test_a_name_that_is_taken_is_refused(tmp_path, begun):
    with pytest.raises(StudyError, match="there is a study 'carry' already"):
        migrate_stored_study("carry", written(tmp_path / "new"), to="carry", storage=begun)


def test_a_number_that_the_space_lacks_stands_where_its_scale_would_put_it():
    space = DesignSpace(
        parameters=(
            Ordinal(name="rows", values=(8, 16, 32)),
            Integer(name="tile", low=1, high=9, step=4),
            Real(name="clock", low=1.0, high=3.0),
            Choice(name="format", values=("a", "b", "c")),
        )
    )
    inside = {"rows": 16, "tile": 5, "clock": 2.0, "format": "b"}
    outside = {"rows": 64, "tile": 3, "clock": 4.0, "format": "z"}
    points = encoded_designs(space, [inside, outside])
    assert np.array_equal(points[0], encoded(space, space.batch([inside]))[0])
    assert points[1] == pytest.approx([2.0, 0.25, 1.5, 0.0, 0.0, 0.0])
