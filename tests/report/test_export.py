"""The JSON schema, strict numbers, and sheets that come back as they went."""

import csv
import io
import json

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.design import Design
from dse.core.pareto import ParetoSet
from dse.core.proof import Proof
from dse.core.trial import State, Trial
from dse.report.json.columns import front_columns, parquet_bytes, trials_columns, write_csv
from dse.report.json.front_json import finite, front_json, trials_json


def test_the_front_has_the_documented_keys(made_up) -> None:
    told = front_json("s", made_up.front, made_up.trials, proof=Proof())
    assert {
        "study",
        "reference_point",
        "hypervolume",
        "hypervolume_share",
        "exact",
        "objectives",
        "front",
    } <= told.keys()
    assert told["objectives"][1] == {
        "name": "chip.energy",
        "expression": "chip.energy",
        "goal": "minimize",
        "unit": "J",
    }
    assert {"trial", "design", "metrics", "feasible"} <= told["front"][0].keys()
    assert told["metrics"]["chip.area"] == "mm2"


def test_the_reference_point_is_in_the_objectives_own_signs(made_up) -> None:
    told = front_json("s", made_up.front, proof=Proof())
    assert told["reference_point"] == list(made_up.front.reference_point)
    assert told["reference_point"][0] > 0


def test_the_reference_point_is_null_until_it_is_frozen(made_up) -> None:
    few = ParetoSet.of(made_up.problem, made_up.trials[:5])
    told = front_json("s", few, made_up.trials[:5], proof=Proof())
    assert (told["reference_point"], told["hypervolume"]) == (None, None)
    assert told["hypervolume_share"] is None


def test_metrics_are_plain_numbers_by_name(made_up) -> None:
    entry = front_json("s", made_up.front, proof=Proof(searched=True))["front"][0]
    assert entry["metrics"] == dict(made_up.front.trials[0].metrics)
    assert entry["objectives"][1] == entry["metrics"]["chip.energy"]


def test_nearest_misses_are_labelled(hopeless) -> None:
    told = front_json("s", hopeless.front, hopeless.trials, proof=Proof())
    assert told["feasible"] is False
    assert [entry["feasible"] for entry in told["front"]] == [False] * 4
    assert set(told["front"][0]["broken"]) == {"chip.area <= 0.01 mm2"}


def test_every_trial_is_told_with_its_state_and_fault(made_up) -> None:
    told = trials_json("s", made_up.problem, made_up.trials)["trials"]
    assert [entry["trial"] for entry in told] == list(range(120))
    assert told[5]["fault"] == {"kind": "timeout", "reason": "quality took more than 60 s"}
    assert told[5]["objectives"] == [None, None, None]


anything = st.floats(-1e100, 1e100) | st.sampled_from([float("nan"), float("inf"), -float("inf")])


@given(anything, anything, anything)
def test_json_is_strict_whatever_an_evaluator_said(made_up, value, spread, cost_s) -> None:
    odd = Trial(
        number=0,
        design=made_up.trials[0].design,
        state=State.DONE,
        metrics={**made_up.trials[0].metrics, "chip.energy": value, "quality.accuracy": spread},
        spread={"quality.accuracy": spread},
        cost_s=cost_s,
    )
    trials = [odd, *made_up.trials[1:12]]
    front = ParetoSet.of(made_up.problem, trials)
    json.dumps(trials_json("s", made_up.problem, trials), allow_nan=False)
    json.dumps(front_json("s", front, trials, proof=Proof()), allow_nan=False)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), None])
def test_what_json_cannot_say_is_null(value: float | None) -> None:
    assert finite(value) is None


def test_units_stand_in_the_names_of_columns(made_up) -> None:
    columns = front_columns(made_up.front)
    assert {"chip.energy [J]", "chip.area [mm2]", "chip.buffer [B]", "quality.accuracy"} <= set(
        columns
    )


def test_a_csv_comes_back_with_every_trial(made_up) -> None:
    file = io.StringIO()
    write_csv(trials_columns(made_up.problem, made_up.trials), file)
    rows = list(csv.DictReader(io.StringIO(file.getvalue())))
    assert len(rows) == 120
    assert float(rows[0]["chip.energy [J]"]) == made_up.trials[0].metrics["chip.energy"]
    assert (rows[5]["state"], rows[5]["chip.energy [J]"]) == ("failed", "")


@pytest.mark.parametrize("hostile", ["a\rb", "a\nb", "a\r\nb", 'a"b', "a,b", " a"])
def test_whatever_a_text_holds_a_csv_keeps_it_in_its_cell(hostile: str) -> None:
    file = io.StringIO(newline="")
    write_csv({"number": [1, None], hostile: [None, hostile]}, file)
    file.seek(0)
    assert list(csv.reader(file)) == [["number", hostile], ["1", ""], ["", hostile]]


def test_parquet_keeps_kinds_and_empty_cells(made_up, tmp_path) -> None:
    (tmp_path / "t.parquet").write_bytes(
        parquet_bytes(trials_columns(made_up.problem, made_up.trials))
    )
    table = pyarrow.parquet.read_table(tmp_path / "t.parquet").to_pydict()
    groups = [trial.design.get("group") for trial in made_up.trials]
    assert table["group"] == groups
    assert table["feasible"] == made_up.problem.feasible(made_up.trials).tolist()


def test_parquet_keeps_a_column_of_mixed_kinds_as_text(tmp_path) -> None:
    (tmp_path / "m.parquet").write_bytes(
        parquet_bytes({"format": ["int8", 4, None], "empty": [None] * 3})
    )
    table = pyarrow.parquet.read_table(tmp_path / "m.parquet")
    assert table["format"].to_pylist() == ["int8", "4", None]
    assert str(table["empty"].type) == "double"


def test_nearest_misses_are_labelled_in_sheets_too(hopeless) -> None:
    columns = front_columns(hopeless.front, hopeless.trials)
    assert columns["feasible"] == [False] * 4
    assert columns["broken"][0] == "chip.area <= 0.01 mm2 is missed by 998 %"


def test_a_study_without_trials_has_an_empty_front(made_up) -> None:
    told = front_json("s", ParetoSet.of(made_up.problem, []), proof=Proof())
    assert (told["front"], told["knee"]) == ([], None)


def test_a_design_is_written_with_its_own_values_only(made_up) -> None:
    design = Design({"weight_format": "fp16", "chip.rows": 8})
    told = trials_json("s", made_up.problem, [Trial(number=0, design=design)])
    assert told["trials"][0]["design"] == {"chip.rows": 8, "weight_format": "fp16"}
