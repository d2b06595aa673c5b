"""Weights that each machine trains: studies on machines with other weights are not one."""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version

import numpy as np
import pytest

from dse import Study
from dse.api.storages import import_study, merge
from dse.errors import StudyError
from dse.study.migrate import migrate_stored_study
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads import weight_cache
from dse_evaluators.workloads.editions import edition_of
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.trained_models import hash_parameters, trained_weights

MODEL = "digits-cnn"
SPACE = "space: formats\nparameters:\n  bits: {choice: [int8, int4, int3]}\n"
STUDY = """
study: digits
space: space.yaml
evaluators:
  q: {use: compression.recipe, model: digits-cnn, recipe: "format {bits}"}
objectives: [{maximize: q.accuracy}, {minimize: q.size}]
budget: {measurements: 1}
optimizer: exhaustive
executor: serial
judge: none
"""


def _move(folder, monkeypatch, hashed):
    """Move to a machine whose trained weights have this hash, as its cache states."""
    folder.mkdir(exist_ok=True)
    weights = folder / f"{MODEL}-1.npz"
    weights.write_bytes(b"")
    stat = weights.stat()
    note = {"hash": hashed, "files": {weights.name: [stat.st_size, stat.st_mtime_ns]}}
    name = f"{MODEL}-{edition_of(MODEL)}-torch-{version('torch')}.json"
    (folder / name).write_text(json.dumps(note))
    monkeypatch.setenv("DSE_CACHE", str(folder))


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The file of a study."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.yaml").write_text(SPACE)
    file = tmp_path / "study.yaml"
    file.write_text(STUDY)
    return file


def test_study_is_resumed_with_its_weights_and_refused_with_others(study, tmp_path, monkeypatch):
    workload_of(MODEL)  # trained, or read from the usual cache folder
    _move(tmp_path / "first", monkeypatch, "1" * 16)
    Study.open(study).run()
    _move(tmp_path / "second", monkeypatch, "2" * 16)
    with pytest.raises(
        StudyError, match=f"{MODEL} has other weights here .*2222.* and 1111"
    ) as caught:
        Study.load("digits").run(measurements=2)
    assert f"copy {MODEL}-*.npz" in caught.value.hint
    assert len(Study.load("digits").trials) == 1
    _move(tmp_path / "first", monkeypatch, "1" * 16)
    Study.load("digits").run(measurements=2)
    assert len(Study.load("digits").trials) == 2


def test_studies_of_other_weights_are_not_merged_and_merged_ones_keep_theirs(
    study, tmp_path, monkeypatch
):
    workload_of(MODEL)
    for name, hashed in (("one", "1" * 16), ("two", "1" * 16), ("three", "2" * 16)):
        _move(tmp_path / hashed, monkeypatch, hashed)
        Study.open(study, name=name).run()
    with pytest.raises(StudyError, match="has other weights in the study 'three'"):
        merge("one", "three", name="wrong")
    merge("one", "two", name="all")
    with pytest.raises(StudyError, match="has other weights here than in the study 'all'"):
        Study.load("all").run(measurements=2)


def test_imported_study_is_refused_on_a_machine_with_other_weights(study, tmp_path, monkeypatch):
    workload_of(MODEL)
    _move(tmp_path / "first", monkeypatch, "1" * 16)
    Study.open(study).run()
    Study.load("digits").record.export(tmp_path / "digits.jsonl")
    url = f"sqlite:///{tmp_path}/elsewhere.db"
    import_study(tmp_path / "digits.jsonl", storage=url, trust=True)
    _move(tmp_path / "second", monkeypatch, "2" * 16)
    with pytest.raises(StudyError, match="has other weights here"):
        Study.load("digits", storage=url).run(measurements=2)


def test_hash_is_that_of_the_cached_weights_and_is_kept(tmp_path, monkeypatch):
    held = workload_of(MODEL).parameters
    for path in weight_cache.folder().glob(f"{MODEL}-*.npz"):
        shutil.copy(path, tmp_path)
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))
    cached = next(tmp_path.glob("*.npz"))
    assert trained_weights(MODEL) == {MODEL: hash_parameters(MODEL)}
    (note,) = tmp_path.glob("*.json")
    kept = note.read_bytes()
    assert trained_weights(MODEL) == {MODEL: hash_parameters(MODEL)}
    assert note.read_bytes() == kept
    np.savez(cached, **held, more=np.zeros(3, np.float32))
    assert trained_weights(MODEL)[MODEL] == hash_parameters(MODEL)
    assert note.read_bytes() != kept


def test_models_with_files_of_weights_have_no_hash():
    made = ByRecipe(model="shakespeare-lm", recipe="format int8")
    assert made.trained_weights() == {}


def test_migrated_study_keeps_the_weights_of_its_trials(study, tmp_path, monkeypatch):
    workload_of(MODEL)
    _move(tmp_path / "first", monkeypatch, "1" * 16)
    Study.open(study).run()
    migrate_stored_study("digits", study, to="wider")
    _move(tmp_path / "second", monkeypatch, "2" * 16)
    with pytest.raises(StudyError, match="has other weights here than in the study 'wider'"):
        Study.load("wider").run(measurements=1)


@pytest.mark.parametrize(("here", "inherited"), [("1" * 16, 1), ("2" * 16, 0)])
def test_measurements_of_other_weights_are_not_inherited(
    study, tmp_path, monkeypatch, here, inherited
):
    workload_of(MODEL)
    _move(tmp_path / "first", monkeypatch, "1" * 16)
    Study.open(study).run()
    _move(tmp_path / here, monkeypatch, here)
    study.write_text(study.read_text().replace("exhaustive", ["random", " seed: 1"][0]))
    with study.open("a") as file:
        file.write("transfer_from: [digits]\n")
    began = Study.open(study, name="later").engine.inherited
    assert (len(began.readings), len(began.priors)) == (inherited, 1 - inherited)
