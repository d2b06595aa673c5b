"""The reader of users' CSV files names the line and the cell of each mistake."""

from __future__ import annotations

import pytest

from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import (
    find_time_column,
    parse_number,
    parse_positive,
    parse_whole,
    read_csv_rows,
)


def write(folder, text, encoding="utf-8"):
    file = folder / "mine.csv"
    file.write_bytes(text.encode(encoding))
    return file


def test_spaces_marks_quotes_and_blank_lines_are_read(tmp_path):
    file = write(tmp_path, ' name , size\r\n"a, b", 3\r\n\r\n c ,4\r\n', "utf-8-sig")
    rows = list(read_csv_rows(file, ["name", "size"]))
    assert [row.cells for row in rows] == [
        {"name": "a, b", "size": "3"},
        {"name": "c", "size": "4"},
    ]
    assert [row.place for row in rows] == [f"{file}:2", f"{file}:4"]


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("name;size\na;3\n", 1, "separated by semicolons"),
        ("name\tsize\na\t3\n", 1, "separated by tabs"),
        ("name,sise\na,3\n", 1, "there is no column 'size'"),
        ("name,size,size\na,3,4\n", 1, "two columns 'size'"),
        ("name,size\n", 2, "there are no rows"),
        ("", 1, "there is no column 'name'"),
        ("name,size\na,3,4\n", 2, "another number of cells"),
        ("name,size\na,3\nb\n", 3, "another number of cells"),
        ("name,size\n ,3\n", 2, "the cell of 'name' is blank"),
        ('name,size\na,"3\n', 2, "it is no CSV"),
        ("name,size\na,3e\n", 2, "size is '3e', which is no finite number"),
        ("name,size\na,inf\n", 2, "no finite number"),
        ("name,size\na,2.5\n", 2, "size is '2.5'"),
        ("name,size\na,0\n", 2, "size is '0'"),
    ],
)
def test_mistakes_are_named_by_their_line(tmp_path, text, line, problem):
    file = write(tmp_path, text)
    with pytest.raises(SpecError, match=problem) as caught:
        [parse_whole(row, "size", 1) for row in read_csv_rows(file, ["name", "size"])]
    assert caught.value.where == f"{file}:{line}"
    assert caught.value.hint


def test_the_hint_names_the_file_beside_and_the_point(tmp_path):
    file = write(tmp_path, 'name,size\na,"1,5"\n')
    with pytest.raises(SpecError, match="there is no file") as caught:
        list(read_csv_rows(tmp_path / "mime.csv", ["name"], part=["trace"]))
    assert "mine.csv" in caught.value.hint
    assert caught.value.part == ("trace",)
    row = next(read_csv_rows(file, ["name", "size"]))
    with pytest.raises(SpecError) as caught:
        parse_number(row, "size")
    assert caught.value.hint == "write 1.5, with a point"


def test_a_number_has_a_range_and_a_time_may_never_come(tmp_path):
    row = next(read_csv_rows(write(tmp_path, "share,time\n1.5,Never\n"), ["share"]))
    with pytest.raises(SpecError, match=r"share is '1\.5'") as caught:
        parse_number(row, "share", 0, 1)
    assert caught.value.hint == "a number from 0 to 1"
    assert parse_positive(row, "time", never=["never"]) == float("inf")


@pytest.mark.parametrize(
    ("names", "column", "unit"),
    [
        (["m", "time_us"], "time_us", 1e-6),
        (["m", "Latency (ms)"], "Latency (ms)", 1e-3),
        (["duration[ns]"], "duration[ns]", 1e-9),
        (["time_s"], "time_s", 1.0),
    ],
)
def test_a_time_states_its_unit(tmp_path, names, column, unit):
    assert find_time_column(names, tmp_path / "a.csv") == (column, unit)


@pytest.mark.parametrize(
    ("names", "problem"),
    [
        (["m"], "there is no time"),
        (["time_s", "time_ms"], "two times: time_s, time_ms"),
        (["time"], "the unit of column 'time' is missing"),
        (["time_min"], "is unknown: min"),
    ],
)
def test_a_time_without_a_unit_is_refused(tmp_path, names, problem):
    with pytest.raises(SpecError, match=problem):
        find_time_column(names, tmp_path / "a.csv")
