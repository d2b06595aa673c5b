"""An empty text is a value as any other: in a choice, and in the rows of a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from dse import Space
from dse.errors import SpecErrors

FILE = """
space: s
parameters:
  suffix: {choice: ['', '-fast', '-small']}
  size: {ordinal: [1, 2]}
  extra: {choice: ['', x], when: size == 2}
tables:
  - TABLE
"""


def designs(folder: Path, table: str) -> set[tuple]:
    (folder / "space.yaml").write_text(FILE.replace("TABLE", table))
    space = Space.read(folder / "space.yaml").solved
    (batch,) = space.enumerate()
    return {(d["suffix"], d["size"], d.get("extra")) for d in batch}


@pytest.mark.parametrize(
    ("table", "count"),
    [
        ("{allow: [suffix, size], rows: [['', 1], [-fast, 2]]}", 3),
        ("{forbid: [suffix, size], rows: [['', 1], [-fast, 2]]}", 6),
        ("{allow: [size, extra], rows: [[1, null], [2, '']]}", 6),
    ],
)
def test_an_empty_text_stands_in_a_row(tmp_path, table, count):
    found = designs(tmp_path, table)
    assert len(found) == count
    if table.startswith("{allow: [suffix"):
        assert found == {("", 1, None), ("-fast", 2, ""), ("-fast", 2, "x")}
    if "extra" in table:
        assert {(size, extra) for _, size, extra in found} == {(1, None), (2, "")}


def test_an_empty_cell_of_a_file_is_the_text_where_the_parameter_is_never_absent(tmp_path):
    (tmp_path / "t.csv").write_text("suffix,size,extra\n,1,\n-fast,2,x\n")
    found = designs(tmp_path, "{allow: [suffix, size, extra], file: t.csv}")
    assert found == {("", 1, None), ("-fast", 2, "x")}


def test_an_empty_text_is_still_no_number(tmp_path):
    with pytest.raises(SpecErrors, match="size is blank here, but it is never absent"):
        designs(tmp_path, "{allow: [suffix, size], rows: [['', '']]}")
