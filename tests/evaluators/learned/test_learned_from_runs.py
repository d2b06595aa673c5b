"""An evaluator that is learned from runs states its error, keeps its band, and refuses bad runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.generic.table_file import read_table
from dse_evaluators.learned import runs_file
from dse_evaluators.learned.learned_evaluator import Learned
from dse_evaluators.learned.metric_model import conformal_quantile, folds_of
from dse_evaluators.learned.regressors import fit_candidates

RNG = np.random.default_rng(7)
ROWS = [
    (int(t), f, round((9.0 if f == "fp16" else 5.0) / t**0.7 * np.exp(0.05 * RNG.normal()), 4))
    for t in RNG.permutation(np.repeat(np.arange(1, 41), 2))
    for f in [("fp16", "int8")[RNG.integers(2)]]
]


def write(folder: Path, rows: list, header: str = "threads,format,latency") -> str:
    path = folder / "runs.csv"
    path.write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return str(path)


def learned(
    folder: Path, rows: list = ROWS, header: str = "threads,format,latency", **more
) -> Learned:
    return Learned(**{"file": write(folder, rows, header), "metrics": {"latency": "ms"}, **more})


def test_a_design_gets_a_prediction_inside_its_band(tmp_path: Path) -> None:
    got = learned(tmp_path).evaluate(Batch.of([{"threads": 6, "format": "int8"}])).columns
    assert got["latency_low"][0] < got["latency"][0] < got["latency_high"][0]
    assert got["latency"][0] == pytest.approx(5.0 / 6**0.7, rel=0.2)


def test_values_outside_of_the_runs_are_marked_as_extrapolated(tmp_path: Path) -> None:
    rows = [
        {"threads": 8, "format": "int8"},
        {"threads": 99, "format": "int8"},
        {"threads": 8, "format": "int4"},
    ]
    assert learned(tmp_path).evaluate(Batch.of(rows)).columns["extrapolated"].tolist() == [0, 1, 1]


def test_two_learned_from_the_same_runs_are_equal(tmp_path: Path) -> None:
    batch = Batch.of([{"threads": 5, "format": "fp16"}])
    one, two = learned(tmp_path), learned(tmp_path)
    assert one.version == two.version
    assert one.evaluate(batch).columns["latency"][0] == two.evaluate(batch).columns["latency"][0]


def test_one_changed_run_changes_the_version(tmp_path: Path) -> None:
    assert learned(tmp_path).version != learned(tmp_path, [*ROWS[:-1], (1, "int8", 9.9)]).version


def test_the_note_states_error_rank_and_coverage(tmp_path: Path) -> None:
    note = learned(tmp_path).notes[0]
    assert "held-out runs" in note
    assert "rank correlation" in note
    assert "90 % band covers" in note


def test_five_runs_are_too_few(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="different designs with latency: too few to learn from"):
        learned(tmp_path, ROWS[:5])


def test_an_unknown_metric_gets_the_nearest_column(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="has no column 'latncy'") as error:
        learned(tmp_path, metrics={"latncy": "ms"})
    assert "'latency'" in error.value.hint


def test_an_unknown_unit_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="latency"):
        learned(tmp_path, metrics={"latency": "msec"})


def test_a_text_among_numbers_is_refused_with_its_value(tmp_path: Path) -> None:
    with pytest.raises(
        SpecError, match=r"runs\.csv:2: threads is 'n/a', and numbers in other runs"
    ):
        learned(tmp_path, [("n/a", "int8", 3.0), *ROWS])


@pytest.mark.parametrize(
    ("text", "mend"),
    [("N/A", "leave the cell empty"), ("3.1 ms", "write 3.1 in the cell, and .* latency=ms")],
)
def test_a_metric_that_is_a_text_is_refused_with_its_line(
    tmp_path: Path, text: str, mend: str
) -> None:
    named = rf"runs\.csv:82: latency is '{text}'"
    with pytest.raises(SpecError, match=rf"{named}.*\n.*{mend}"):
        learned(tmp_path, [*ROWS, (3, "int8", text)])


def test_a_run_of_a_folder_is_located_in_its_file(tmp_path: Path) -> None:
    for name, rows in (("a.csv", ROWS), ("b.csv", [(3, "int8", "much")])):
        lines = [",".join(map(str, row)) for row in rows]
        (tmp_path / name).write_text("\n".join(["threads,format,latency", *lines]) + "\n")
    with pytest.raises(SpecError, match=r"b\.csv:2: latency is 'much'"):
        Learned(file=str(tmp_path), metrics={"latency": "ms"})


def test_absent_inputs_have_a_note(tmp_path: Path) -> None:
    made = learned(tmp_path, [("", "int8", 3.0), *ROWS])
    assert "threads is absent in 1 of 81 runs, as one more value" in made.cleaning_notes


def test_the_metric_in_other_units_is_no_input(tmp_path: Path) -> None:
    rows = [(*row, row[2] * 1000) for row in ROWS]
    made = learned(tmp_path, rows, "threads,format,latency,latency_us")
    assert made.reads == {"threads", "format"}
    assert any("latency_us is left out: it is latency itself" in one for one in made.cleaning_notes)


def test_runs_without_the_metric_are_left_out_with_a_note(tmp_path: Path) -> None:
    made = learned(tmp_path, [(3, "int8", ""), *ROWS])
    assert any("1 of 81 runs have no latency" in one for one in made.cleaning_notes)


def test_runs_that_disagree_have_a_note(tmp_path: Path) -> None:
    made = learned(tmp_path, [(41, "int8", 1.0), (41, "int8", 3.0), *ROWS])
    assert any("differs from it by up to 50.0%" in one for one in made.cleaning_notes)


def test_a_constant_column_has_a_note_and_may_be_absent(tmp_path: Path) -> None:
    made = learned(tmp_path, [(*row, 8) for row in ROWS], "threads,format,latency,batch")
    assert made.optional == {"batch"}
    assert any("batch is the same in all runs" in one for one in made.cleaning_notes)


def test_a_metric_that_never_varies_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="latency is 2 in all runs"):
        learned(tmp_path, [(t, f, 2.0) for t, f, _ in ROWS])


def test_of_too_many_runs_a_stated_number_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_file, "MOST_RUNS", 60)
    assert any("60 of 80 runs are used" in one for one in learned(tmp_path).cleaning_notes)


def test_a_declared_direction_is_kept(tmp_path: Path) -> None:
    made = learned(tmp_path, monotone={"threads": "falling"})
    got = made.evaluate(Batch.of([{"threads": t, "format": "int8"} for t in range(1, 41)]))
    assert (np.diff(got.columns["latency"]) <= 1e-9).all()


def test_an_unknown_direction_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be monotone 'down'"):
        learned(tmp_path, monotone={"threads": "down"})


def test_a_metric_with_the_name_of_an_added_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="extrapolated"):
        learned(tmp_path, header="threads,format,extrapolated", metrics={"extrapolated": ""})


def test_a_folder_of_tables_is_one_set_of_runs(tmp_path: Path) -> None:
    folder = tmp_path / "all"
    folder.mkdir()
    write(folder, ROWS[:40])
    (folder / "runs.csv").rename(folder / "first.csv")
    write(folder, ROWS[40:])
    made = Learned(file=str(folder), metrics={"latency": "ms"})
    assert made.reads == {"threads", "format"}
    assert read_table(str(folder / "first.csv")).digest not in made.version


def test_a_group_is_in_one_fold() -> None:
    groups = np.repeat(np.arange(7), 4)
    assert all(len(set(groups[out]) & set(groups[~out])) == 0 for out in folds_of(groups))


def test_the_quantile_is_that_of_conformal_prediction() -> None:
    assert conformal_quantile(np.arange(1.0, 20.0)) == 18.0  # ceil(20 * 0.9) of 19 residuals


def test_the_mean_of_the_candidates_is_their_mean() -> None:
    inputs = RNG.random((40, 2))
    fitted = fit_candidates(inputs, inputs @ [1.0, 2.0], [0, 0])
    mean = np.mean(
        [one.predict(inputs) for name, one in fitted.items() if "mean" not in name], axis=0
    )
    assert fitted["mean of the candidates"].predict(inputs) == pytest.approx(mean)


def test_an_input_that_orders_all_runs_as_the_metric_has_a_note(tmp_path: Path) -> None:
    rows = [[t, f, 9.0 / t + (f == "fp16")] for t in range(1, 31) for f in ("int8", "fp16")]
    file = write(tmp_path, [[t, f, 1 / y, y] for t, f, y in rows], "threads,format,speed,latency")
    notes = Learned(file=file, metrics={"latency": "ms"}).cleaning_notes
    assert [one for one in notes if one.startswith("speed orders all runs as latency does")]
    assert not [one for one in notes if one.startswith("threads")]
