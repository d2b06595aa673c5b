"""``tables:`` of allowed and forbidden combinations, and spaces that are a table."""

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from dse.core.parameter import Choice, Ordinal
from dse.errors import DesignError

SPACE = """
space: s
parameters:
  format: {choice: [int8, int4, fp8]}
  array:  {ordinal: [8, 16, 32]}
  buffer: {ordinal: [1 KiB, 2 KiB]}
  group:  {ordinal: [16, 32], when: format == 'int4'}
"""


def found(space, *names):
    return {tuple(d.get(n) for n in names) for batch in space.enumerate() for d in batch}


def test_only_allowed_combinations_are_legal(read):
    text = (
        SPACE + "tables:\n  - {allow: [format, array], rows: [[int4, 16], [int8, 8], [int4, 16]]}\n"
    )
    space = read(text)
    assert found(space, "format", "array") == {("int4", 16), ("int8", 8)}
    assert space.count() == 2 * 2 + 2
    with pytest.raises(DesignError) as caught:
        space.check({"format": "fp8", "array": 8, "buffer": 1024})
    assert caught.value.where.endswith("main.yaml:9")


def test_forbidden_combinations_are_not(read):
    text = SPACE + "tables:\n  - forbid: [array, buffer]\n    rows: [[8, 1 KiB], [32, 2 KiB]]\n"
    every = {(array, buffer) for array in (8, 16, 32) for buffer in (1024, 2048)}
    assert found(read(text), "array", "buffer") == every - {(8, 1024), (32, 2048)}


def test_a_blank_stands_for_an_absent_parameter(read):
    text = (
        SPACE
        + "tables:\n  - {allow: [format, group], rows: [[int4, 32], [fp8, null], [int8, null]]}\n"
    )
    assert found(read(text), "format", "group") == {("int4", 32), ("fp8", None), ("int8", None)}


@pytest.mark.parametrize("extra", ["", ", [fp8, null]"])
def test_what_no_row_lists_is_refused_where_a_column_is_absent_too(read, extra):
    rows = f"[[int4, 32]{extra}]"
    space = read(SPACE + f"tables:\n  - {{allow: [format, group], rows: {rows}}}\n")
    legal = {("int4", 32)} | ({("fp8", None)} if extra else set())
    assert found(space, "format", "group") == legal
    assert ({"format": "fp8", "array": 8, "buffer": 1024} in space) == bool(extra)
    assert {"format": "int8", "array": 8, "buffer": 1024} not in space


def test_a_table_asks_for_nothing_where_all_its_columns_are_absent(read):
    more = "  lanes: {ordinal: [1, 2], when: format == 'int4'}\n"
    table = "tables:\n  - {allow: [group, lanes], rows: [[32, 1], [16, 2]]}\n"
    space = read(SPACE + more + table)
    legal = {("int4", 32, 1), ("int4", 16, 2), ("fp8", None, None), ("int8", None, None)}
    assert found(space, "format", "group", "lanes") == legal


def test_a_row_of_blanks_forbids_that_all_columns_are_absent(read):
    more = "  lanes: {ordinal: [1, 2], when: format != 'int8'}\n"
    table = "tables:\n  - {forbid: [group, lanes], rows: [[null, null], [null, 2]]}\n"
    space = read(SPACE + more + table)
    legal = {("int4", g, n) for g in (16, 32) for n in (1, 2)} | {("fp8", None, 1)}
    assert found(space, "format", "group", "lanes") == legal


def test_a_table_may_be_a_file_with_more_columns_and_units(read):
    text = SPACE + "tables:\n  - {allow: [buffer, format], file: combos.csv}\n"
    space = read(text, combos_csv="format,note,buffer [KiB]\nint8,x,1\nfp8,y,2\n")
    assert found(space, "format", "buffer") == {("int8", 1024), ("fp8", 2048)}


def test_a_table_may_be_about_members_and_what_is_included(read):
    text = """
space: s
include: {a: part.yaml}
parameters: {bits: {each: 2, ordinal: [2, 4]}}
tables: [{forbid: ['bits[0]', a.format], rows: [[2, int8], [4, fp8], [4, int4]]}]
"""
    assert len(found(read(text, part=SPACE), "bits[0]", "a.format")) == 3


def test_two_tables_over_the_same_names_have_their_own_lines(read):
    text = (
        SPACE + "tables:\n  - {forbid: [array], rows: [[8]]}\n  - {forbid: [array], rows: [[16]]}\n"
    )
    space = read(text)
    assert [space.places[rule.text].rpartition(":")[2] for rule in space.constraints] == ["9", "10"]


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        ("{allow: [formt], rows: [[int8]]}", ["no parameter 'formt'", "did you mean 'format'"]),
        ("{allow: [format], rows: [[int9]]}", ["format cannot be 'int9'", "did you mean 'int8'"]),
        ("{allow: [array], rows: [[9]]}", ["array cannot be 9", "legal: 8, 16, 32"]),
        ("{allow: [array], rows: [[8 s]]}", ["'8 s' is in s, but array is in no unit"]),
        ("{allow: [array], rows: [[many]]}", ["'many' is no number"]),
        ("{allow: [array, format], rows: [[8]]}", ["1 values for 2 parameters", "array, format"]),
        ("{allow: [array], rows: [[null]]}", ["array is blank here, but it is never absent"]),
        ("{allow: [array, array], rows: [[8, 8]]}", ["array appears twice"]),
        ("{allow: [array]}", ["either 'rows"]),
        ("{allow: [array], forbid: [array], rows: []}", ["either 'allow"]),
        ("{allow: [array], rowz: [[8]]}", ["there is no key 'rowz'", "did you mean 'rows'"]),
        ("{allow: [array], rows: [8]}", ["rows[0]: expected a list"]),
        ("{allow: [array], rows: [[[8]]]}", ["found a list"]),
        ("{allow: [array], file: non.csv}", ["there is no file"]),
        ("[array]", ["expected a mapping"]),
        ("{allow: [array], rows: []}", ["no legal design is left"]),
    ],
)
def test_a_table_that_cannot_be_is_told_with_its_line(told, table, expected):
    message = told(SPACE + f"tables:\n  - {table}\n")
    assert "main.yaml:9" in message
    assert not [words for words in expected if words not in message], message


def test_every_row_that_is_off_is_told(told):
    message = told(
        SPACE + "tables:\n  - {allow: [format, array], file: c.csv}\n",
        c_csv="format,array\nint8,8\nint9,8\nint8,9\n",
    )
    assert "c.csv:3: format cannot be 'int9'" in message
    assert "c.csv:4: array cannot be 9" in message
    assert "int8,8" not in message


# -- the space is a table -------------------------------------------------------------------------

TABLE = """kind,depth,trees,rate [MHz],fast
tree,3,,100,true
forest,3,10,100,true
forest,5,20,0.2 GHz,false
forest,5,20,200,false
"""


def test_the_rows_of_a_table_are_the_designs(read):
    space = read("space: s\ntable: t.csv\n", t_csv=TABLE)
    assert space.by_name["kind"] == Choice(name="kind", values=("tree", "forest"))
    assert space.by_name["rate"] == Ordinal(name="rate", values=(100000000, 200000000), unit="Hz")
    assert space.by_name["fast"].values == (True, False)
    assert space.conditions["trees"].text == "kind in ['forest']"
    assert found(space, "kind", "depth", "trees", "rate", "fast") == {
        ("tree", 3, None, 10**8, True),
        ("forest", 3, 10, 10**8, True),
        ("forest", 5, 20, 2 * 10**8, False),
    }


def test_a_space_that_is_a_table_may_have_rules_and_stand_in_another(read):
    part = "space: p\ntable: t.csv\nconstraints: [depth <= 3]\n"
    text = "space: s\ninclude: {a: {file: part.yaml, rename: {depth: levels}, narrow: {rate: [100 MHz]}}}\n"
    space = read(text, part=part, t_csv=TABLE)
    assert found(space, "a.kind", "a.levels") == {("tree", 3), ("forest", 3)}


def test_numbers_of_one_column_are_of_one_kind(read):
    space = read("space: s\ntable: t.csv\n", t_csv="x,y\n1,a\n2.5,a\n")
    assert space.by_name["x"].values == (1.0, 2.5)
    assert all(isinstance(value, float) for value in space.by_name["x"].values)


def test_a_column_of_words_and_numbers_is_a_choice(read):
    space = read("space: s\ntable: t.csv\n", t_csv="x\nauto\n1\n2\n")
    assert space.by_name["x"].values == ("auto", 1, 2)


def test_presence_may_be_told_by_several_columns(read):
    csv = "a,b,c\n0,0,\n0,1,5\n1,0,6\n1,1,\n"
    space = read("space: s\ntable: t.csv\n", t_csv=csv)
    assert space.conditions["c"].names == {"a", "b"}
    assert found(space, "a", "b", "c") == {(0, 0, None), (0, 1, 5), (1, 0, 6), (1, 1, None)}


@pytest.mark.parametrize(
    ("csv", "expected"),
    [
        ("a,b\n1,\n1,2\n", ["t.csv:2: no column determines when 'b' is blank", "t.csv:3"]),
        ("a,b\n1,\n2,\n", ["the column 'b' is empty"]),
        ("a b\n1\n", ["the column 'a b' is no name"]),
        ("a,true\n1,2\n", ["the column 'true' is no name"]),
        ("a\ntrue\n1\n", ["t.csv:3: the column 'a' is mixed"]),
        ("a\n", ["no rows"]),
    ],
)
def test_a_table_that_is_no_space_is_told_with_its_line(told, csv, expected):
    message = told("space: s\ntable: t.csv\n", t_csv=csv)
    assert not [words for words in expected if words not in message], message


def test_a_space_is_a_table_or_has_parameters(told):
    message = told("space: s\ntable: t.csv\nparameters: {x: {ordinal: [1]}}\n", t_csv=TABLE)
    assert "main.yaml:2: a space is a table or has parameters, not both" in message
    assert "main.yaml:3" in message


def wide_table(rows: int) -> dict[str, list]:
    rng = np.random.default_rng(0)
    grid = np.unravel_index(rng.choice(8**8, size=rows, replace=False), (8,) * 8)
    words = np.array(list("abcdefgh"))
    columns = {f"n{k}": (2 ** grid[k]).tolist() for k in range(6)}
    return columns | {"w0": words[grid[6]].tolist(), "w1": words[grid[7]].tolist()}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_table_of_two_hundred_thousand_rows_is_read_and_counted_whole(read, tmp_path, kind):
    table = pa.table(wide_table(200_000))
    if kind == "csv":
        from pyarrow import csv

        csv.write_csv(table, tmp_path / "t.csv")
    else:
        parquet.write_table(table, tmp_path / "t.parquet")
    space = read(f"space: s\ntable: t.{kind}\n")
    assert space.count() == 200_000


def test_a_table_may_mention_what_was_narrowed_away_or_replaced(read):
    part = (
        SPACE + "tables:\n  - {allow: [format, array], rows: [[int4, 16], [int8, 8], [fp8, 32]]}\n"
    )
    narrowed = (
        "space: s\ninclude: {a: {file: part.yaml, narrow: {format: [int8, fp8], array: [8, 16]}}}\n"
    )
    assert found(read(narrowed, part=part), "a.format", "a.array") == {("int8", 8)}
    replaced = "space: s\nextends: part.yaml\nparameters: {array: {ordinal: [16, 64]}}\n"
    assert found(read(replaced, part=part), "format", "array") == {("int4", 16)}
