"""A table of measured designs answers for those that it holds, and for no others."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dse.core.batch import Batch, Column
from dse.core.design import Design
from dse.core.metric import Failure
from dse.errors import PluginError, SpecError
from dse.evaluation.bound_evaluator import Bound
from dse.evaluation.pipeline import Pipeline
from dse.protocols import Task
from dse_evaluators.generic.table import Table

CSV = """rows,format,fused,clock,power
8,int8,true,0.2,1.5
8,fp8,false,0.2,2.5
16,int8,true,1.6,3.0
16,int8,true,1.6,5.0
"""


def table(folder: Path, text: str = CSV, name: str = "bench.csv", **options: object) -> Table:
    (folder / name).write_text(text)
    return Table(**{"file": str(folder / name), "metrics": {"power": "W"}, **options})


def design(rows: object, form: object = "int8", clock: object = 0.2, **more: object) -> dict:
    return {"rows": rows, "format": form, "fused": True, "clock": clock, **more}


def test_a_design_in_the_table_gets_its_row(tmp_path: Path) -> None:
    got = table(tmp_path).evaluate(Batch.of([design(8), design(8, "fp8", fused=False)]))
    assert (got.columns["power"].tolist(), dict(got.failures)) == ([1.5, 2.5], {})


def test_a_design_that_is_not_in_the_table_is_infeasible(tmp_path: Path) -> None:
    got = table(tmp_path).evaluate(Batch.of([design(32), design(8), design(8, "nothing")]))
    missing = Failure(kind="infeasible", reason="not in the table")
    assert dict(got.failures) == {0: missing, 2: missing}
    assert got.columns["power"][1] == 1.5


def test_repeated_rows_are_a_mean_with_its_standard_error(tmp_path: Path) -> None:
    got = table(tmp_path).evaluate(Batch.of([design(16, clock=1.6), design(8)]))
    assert got.columns["power"].tolist() == [4.0, 1.5]
    assert got.spread["power"][0] == pytest.approx(1.0)  # sqrt(2) / sqrt(2)
    assert np.isnan(got.spread["power"][1])


def test_rows_that_were_measured_once_claim_no_spread(tmp_path: Path) -> None:
    assert table(tmp_path).evaluate(Batch.of([design(8)])).spread == {}


def test_a_spread_that_is_not_known_stays_out_of_the_outcome(tmp_path: Path) -> None:
    one = table(tmp_path, kind="modelled")
    bound = Bound(name="bench", evaluator=one, names={name: name for name in one.reads})
    tasks = [
        Task(number=place, design=Design(values))
        for place, values in enumerate([design(16, clock=1.6), design(8)])
    ]
    spreads = [dict(outcome.spread) for outcome in Pipeline([bound])(tasks)]
    assert spreads == [{"bench.power": pytest.approx(1.0)}, {}]


def test_all_other_columns_are_parameters(tmp_path: Path) -> None:
    assert table(tmp_path).reads == {"rows", "format", "fused", "clock"}


def test_named_columns_alone_tell_designs_apart(tmp_path: Path) -> None:
    one = table(tmp_path, reads=["format"])
    got = one.evaluate(Batch.of([{"format": "int8"}, {"format": "fp8"}]))
    assert got.columns["power"].tolist() == pytest.approx([9.5 / 3, 2.5])


@pytest.mark.parametrize("rows", [8, 8.0, "8", np.int32(8), np.float32(8), 8 + 1e-14])
def test_a_number_is_found_however_it_is_written(tmp_path: Path, rows: object) -> None:
    got = table(tmp_path).evaluate(Batch.of([design(rows)]))
    assert got.columns["power"].tolist() == [1.5]


def test_numbers_among_words_are_still_numbers(tmp_path: Path) -> None:
    mixed = table(tmp_path, "bits,power\n8,1\n4.0,2\nauto,3\n")
    got = mixed.evaluate(Batch.of([{"bits": 8}, {"bits": 4}, {"bits": "auto"}]))
    assert got.columns["power"].tolist() == [1, 2, 3]


def test_neighbouring_whole_numbers_are_two(tmp_path: Path) -> None:
    big = table(tmp_path, "bytes,power\n8589934592,1\n8589934593,2\n")
    got = big.evaluate(Batch.of([{"bytes": 2**33}, {"bytes": 2**33 + 1}, {"bytes": 2**33 + 2}]))
    assert (got.columns["power"][:2].tolist(), list(got.failures)) == ([1, 2], [2])


def test_an_empty_cell_is_an_absent_parameter(tmp_path: Path) -> None:
    conditional = table(tmp_path, "format,group,power\nint8,32,1\nfp8,,2\n")
    alone = conditional.evaluate(Batch.of([{"format": "fp8"}]))
    beside = conditional.evaluate(Batch.of([{"format": "int8", "group": 32}, {"format": "fp8"}]))
    assert alone.columns["power"].tolist() == [2]
    assert beside.columns["power"].tolist() == [1, 2]


def test_coded_columns_are_looked_up_like_plain_ones(tmp_path: Path) -> None:
    conditional = table(tmp_path, "group,power\n32,1\n,2\n64,3\n")
    group = Column.coded((32, 64), np.array([1, -1, 0], dtype=np.int32))
    got = conditional.evaluate(Batch({"group": group}, 3))
    assert got.columns["power"].tolist() == [3, 2, 1]


def test_parquet_is_read_like_csv(tmp_path: Path) -> None:
    path = tmp_path / "bench.parquet"
    parquet.write_table(pa.table({"rows": [8, 16], "power": [1.5, 2.5]}), path)
    got = Table(file=str(path), metrics={"power": "W"}).evaluate(Batch.of([{"rows": 16.0}]))
    assert got.columns["power"].tolist() == [2.5]


def test_many_designs_are_looked_up_together(tmp_path: Path) -> None:
    text = "x,y,power\n" + "".join(f"{n % 100},{n // 100},{n}\n" for n in range(10_000))
    big = table(tmp_path, text)
    n = np.random.default_rng(0).integers(0, 10_000, size=200_000)
    got = big.evaluate(Batch({"x": Column(n % 100), "y": Column(n // 100)}, len(n)))
    assert (got.columns["power"] == n).all()


def test_the_version_follows_the_numbers(tmp_path: Path) -> None:
    before = table(tmp_path).version
    assert table(tmp_path).version == before
    assert table(tmp_path, CSV.replace("5.0", "6.0")).version != before


def test_it_is_pickled_with_its_rows(tmp_path: Path) -> None:
    one = table(tmp_path)
    (tmp_path / "bench.csv").unlink()
    got = pickle.loads(pickle.dumps(one)).evaluate(Batch.of([design(8)]))
    assert got.columns["power"].tolist() == [1.5]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("rows,power\n", "has no rows"),
        ("", "cannot be read as a table"),
        ("rows,powr\n8,1\n", "no column 'power'.*\n.*did you mean 'powr'"),
        ("rows,power\n8,1\n16,\n", "bench.csv:3: power is empty"),
        ("rows,power\n8,1\n16,nan\n", "bench.csv:3: power is nan"),
        ('rows,power\n\n"8",1\n16,\n', "bench.csv:4: power is empty"),
        ("rows,power\n8,inf\n", "bench.csv:2: power is inf"),
        ("rows,power\n8,much\n", "bench.csv:2: power is 'much', which is no number"),
        ("rows,power\n8,true\n", "bench.csv:2: power is True, which is no number"),
        ("rows,rows,power\n8,8,1\n", "two columns 'rows'"),
        ("rows,power\n8,1\n16,1,5\n", "bench.csv:3: 3 cells in 2 columns"),
        ("rows,power\n8,1\n16\n", "bench.csv:3: 1 cells in 2 columns"),
        ("rows;power\n8;1,5\n16;2\n", "bench.csv:1: columns are separated by semicolons"),
        ("rows;power\n8;1\n", "bench.csv:1: columns are separated by semicolons"),
        ("rows,power\nnan,1\n", "bench.csv:2: rows is nan"),
    ],
)
def test_a_table_with_a_mistake_is_refused(tmp_path: Path, text: str, named: str) -> None:
    with pytest.raises(SpecError, match=named):
        table(tmp_path, text)


def test_a_file_that_is_not_there_gets_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "bench.csv").write_text(CSV)
    with pytest.raises(SpecError, match=r"did you mean 'bench\.csv'"):
        Table(file=str(tmp_path / "bensh.csv"), metrics={"power": "W"})


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="neither CSV nor Parquet"):
        table(tmp_path, name="bench.txt")


def test_a_parquet_file_that_is_none_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="cannot be read as a table"):
        table(tmp_path, name="bench.parquet")


def test_a_reading_that_the_table_lacks_gets_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="did you mean 'rows'"):
        table(tmp_path, reads=["row"])


def test_a_column_is_not_both_metric_and_reading(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="'power' is a metric and a reading"):
        table(tmp_path, reads=["rows", "power"])


def test_a_table_of_metrics_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PluginError, match="no column is left"):
        table(tmp_path, "power\n1\n")


def test_truth_is_no_number_to_a_table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b,m\n3,true,30\n3,1,10\n3,x,5\n")
    table = Table(file=str(path), metrics={"m": ""}, reads=["a", "b"])
    got = table.evaluate(Batch.of([{"a": 3, "b": True}, {"a": 3, "b": 1}]))
    assert got.columns["m"].tolist() == [30, 10]
