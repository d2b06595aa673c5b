"""Trials as data frames, and data frames as the beginning of a study."""

import sys

import numpy as np
import pytest

from dse.core.trial import State
from dse.errors import PluginError
from dse.interop.data_frames import to_pandas, to_polars, units
from dse.interop.found_trials import of_frame
from dse.schema.study.budget import Budget
from dse.storage.memory import MemoryStorage
from dse.study.import_trials import begun
from dse.study.study_engine import StudyEngine

pandas = pytest.importorskip("pandas")
polars = pytest.importorskip("polars")


@pytest.fixture
def study(study_file) -> StudyEngine:
    study = StudyEngine.open(study_file, storage=MemoryStorage())
    study.run(budget=Budget(trials=12))
    return study


@pytest.mark.parametrize("frame_of", [to_pandas, to_polars])
def test_a_frame_has_a_row_for_each_trial_and_a_column_for_each_name(study, frame_of):
    frame = frame_of(study)
    assert list(frame["trial"]) == list(range(12))
    assert list(frame["rows"]) == [trial.design["rows"] for trial in study.trials]
    assert list(frame["cost.energy"]) == [t.metrics["cost.energy"] for t in study.trials]
    assert list(frame["feasible"]) == study.problem.feasible(study.trials).tolist()
    product = np.array(frame["cost.error"]) * np.array(frame["clock"])
    assert np.array_equal(np.array(frame["cost.error * clock"]), product)


def test_a_frame_of_pandas_tells_its_units(study):
    told = {"cost.energy": "pJ", "clock": "Hz", "power": "W", "cost.error * clock": "Hz"}
    assert to_pandas(study).attrs["units"].items() >= told.items()
    assert units(study) == to_pandas(study).attrs["units"]


def test_columns_have_the_types_of_their_values(study):
    schema = to_polars(study).schema
    assert schema["rows"] == polars.Int64
    assert schema["format"] == polars.String
    assert schema["group"] == polars.Int64
    assert schema["clock"] == polars.Float64


def test_frames_of_studies_with_failures_and_without_go_together(study, study_file):
    begun = StudyEngine.open(study_file, storage=MemoryStorage(), name="none yet")
    schema = to_polars(begun).schema
    assert (schema["state"], schema["fault"]) == (polars.String, polars.String)
    assert to_polars(study).schema["fault"] == polars.String


def test_a_parameter_that_is_not_there_is_empty(study):
    absent = ["group" not in trial.design for trial in study.trials]
    assert to_polars(study)["group"].is_null().to_list() == absent
    assert to_pandas(study)["group"].isna().to_list() == absent


@pytest.mark.parametrize("frame_of", [to_pandas, to_polars])
def test_a_study_of_no_trials_is_an_empty_frame(study_file, frame_of):
    empty = StudyEngine.open(study_file, storage=MemoryStorage())
    assert len(frame_of(empty)) == 0
    assert "cost.energy" in frame_of(empty).columns


@pytest.mark.parametrize("frame_of", [to_pandas, to_polars])
def test_a_frame_begins_a_study_with_its_rows(study, study_file, frame_of):
    new = begun(
        study_file,
        of_frame(frame_of(study)),
        source="a frame",
        name="again",
        storage=MemoryStorage(),
    )
    assert [trial.design for trial in new.study.trials] == [t.design for t in study.trials]
    assert [trial.metrics for trial in new.study.trials] == [t.metrics for t in study.trials]


def test_a_column_may_tell_its_unit_and_a_row_may_be_of_no_use(measured_file):
    frame = pandas.DataFrame(
        {
            "a": [1, 2, 3, 7, 1],
            "b": [1, 1, 2, 2, 1],
            "bench.time [us]": [1500.0, 2500.0, 3500.0, 4500.0, 9.0],
            "bench.loss": [0.5, 0.4, float("nan"), 0.2, 0.1],
        }
    )
    new = begun(measured_file, of_frame(frame), source="a frame", storage=MemoryStorage())
    assert [trial.metrics["bench.time"] for trial in new.study.trials] == [1.5, 2.5, 4.5]
    assert [trial.state for trial in new.study.trials] == [State.DONE, State.DONE, State.OUTSIDE]
    assert new.left_out == {
        "it lacks bench.loss, which is measured": 1,
        "its design was there before": 1,
    }


@pytest.mark.parametrize(("library", "frame_of"), [("pandas", to_pandas), ("polars", to_polars)])
def test_a_library_that_is_missing_is_named_with_its_extra(study, monkeypatch, library, frame_of):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(PluginError, match=r"dse-engine\[frames\]"):
        frame_of(study)
