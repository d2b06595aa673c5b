"""``data:`` of space files: records, lists of records, CSV and Parquet; units in cells and headers."""

import pyarrow as pa
import pytest
from pyarrow import parquet

from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files

DEVICES = """
space: s
data:
  devices:
    a100: {memory: 80 GiB, power: 400 W, maker: nvidia, sparse: true}
    h100: {memory: 0.08 TiB, power: 0.7 kW, maker: nvidia, sparse: true}
    mi300: {memory: 192 GiB, power: 750 W, maker: amd, sparse: false}
parameters:
  chip: {choice: [a100, h100, mi300]}
  need: {ordinal: [64 GiB, 128 GiB]}
"""


def test_records_are_looked_up_by_key_in_their_units(read):
    rules = [
        "need <= devices[chip].memory",
        "devices[chip].power <= 0.72 kW",
        "devices[chip].maker == 'nvidia'",
        "devices[chip].sparse",
    ]
    space = read(DEVICES + "constraints:\n" + "".join(f'  - "{rule}"\n' for rule in rules))
    found = {(d["chip"], d["need"]) for batch in space.enumerate() for d in batch}
    assert found == {("a100", 64 * 2**30), ("h100", 64 * 2**30)}


def test_a_key_may_be_a_constant(read):
    space = read(DEVICES + "constraints: ['need <= devices[\"a100\"].memory']\n")
    assert space.count() == 3


def test_a_list_of_records_is_looked_up_by_number(read):
    space = read(
        """
space: s
data: {layers: [{params: 10, kind: conv}, {params: 30, kind: fc}]}
parameters:
  cut: {integer: [0, 1]}
  n:   {ordinal: [5, 20, 40]}
constraints: ["layers[cut].params <= n", "sum(layers.params) == 40", "layers[-1].kind == 'fc'"]
"""
    )
    assert space.count() == 2 + 1


CSV = "name,params,memory [KiB],note\nconv1,864,1,\nconv2,4608,2 KiB,big\nfc,640,0.5,\n"


def test_a_file_is_looked_up_by_its_first_column(read):
    space = read(
        """
space: s
data: {layers: layers.csv}
parameters:
  worst: {choice: [conv1, conv2, fc]}
  n:     {ordinal: [512 B, 2 KiB]}
constraints: ["layers[worst].memory <= n", "sum(layers.params) == 6112"]
""",
        layers_csv=CSV,
    )
    found = {(d["worst"], d["n"]) for batch in space.enumerate() for d in batch}
    assert found == {("fc", 512), ("fc", 2048), ("conv1", 2048), ("conv2", 2048)}


def test_a_file_whose_first_column_repeats_is_looked_up_by_number(read):
    space = read(
        "space: s\ndata: {t: t.csv}\nparameters:\n  i: {integer: [0, 2]}\nconstraints: ['t[i].v >= 2', \"t[0].kind == 'a'\"]\n",
        t_csv="kind,v\na,1\nb,2\na,3\n",
    )
    assert space.count() == 2


def test_data_of_a_fragment_stays_with_it_and_a_whole_can_use_it(read):
    part = "space: p\ndata: {t: {a: {v: 1}, b: {v: 2}}}\nparameters:\n  k: {choice: [a, b]}\nconstraints: ['t[k].v <= 2']\n"
    text = "space: s\ninclude: {x: part.yaml, y: part.yaml}\nconstraints: ['x.t[x.k].v == y.t[y.k].v']\n"
    assert read(text, part=part).count() == 2


def test_keys_may_be_quantities(read):
    space = read(
        """
space: s
data: {sram: {1 KiB: {area: 2 mm2}, 4 KiB: {area: 5 mm2}}}
parameters:
  buffer: {ordinal: [1 KiB, 4 KiB]}
constraints: ["sram[buffer].area <= 3 mm2"]
"""
    )
    assert space.count() == 1


def test_a_blank_cell_hurts_only_where_it_is_used(read, told):
    text = "space: s\ndata: {layers: layers.csv}\nparameters:\n  n: {ordinal: [1]}\n"
    csv = "name,params\nconv1,864\nconv2,\n"
    assert read(text, layers_csv=csv).count() == 1
    message = told(text + "constraints: ['sum(layers.params) >= n']\n", layers_csv=csv)
    assert "main.yaml:5" in message
    assert "layers.params" in message
    assert "conv2" in message


def test_a_lookup_with_a_hole_is_told_with_key_and_field(told):
    text = DEVICES.replace("maker: amd, ", "")
    message = told(text + "constraints: [\"devices[chip].maker == 'nvidia'\"]\n")
    assert "main.yaml:11: devices[chip].maker has no value where chip is 'mi300'" in message
    text = DEVICES.replace("mi300]", "mi300, mi400]")
    message = told(text + "constraints: ['devices[chip].memory >= need']\n")
    assert "devices[chip].memory has no value where chip is 'mi400'" in message


def test_a_hole_outside_of_a_narrowed_domain_is_none(read):
    part = (
        DEVICES.replace("mi300]", "mi300, mi400]")
        + "constraints: ['devices[chip].memory >= need']\n"
    )
    text = "space: s\ninclude: {a: {file: part.yaml, narrow: {chip: [a100, h100]}}}\n"
    assert read(text, part=part).count() == 2


def test_a_word_that_no_row_has_is_told(told):
    message = told(DEVICES + "constraints: [\"devices[chip].maker == 'intel'\"]\n")
    assert "devices[chip].maker is never 'intel'" in message


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("{a: {m: 80 GiB}, b: {m: 3 s}}", ["main.yaml:2", "'m' is mixed", "in s"]),
        ("{a: {m: 80 GiB}, b: {m: 3}}", ["'m' is mixed: 3 is a bare number"]),
        ("{a: {m: 80}, b: {m: many}}", ["'m' is mixed: 'many' is a word, 80 is a bare number"]),
        ("{a: {m: [1, 2]}}", ["the field 'm' of 'a' is no single value"]),
        ("{a: 3}", ["the record 'a' has no fields", "{memory: 80 GiB"]),
        ("[3]", ["the record 0 has no fields"]),
        ("[]", ["no records"]),
        ("{}", ["no records"]),
        ("3", ["a mapping of records, a list of records, or a file"]),
        ("{a: {'m [Kib]': 3}}", ["there is no unit 'Kib'"]),
        ("{8: {m: 1}, 8.0: {m: 2}}", ["the key 8 appears twice"]),
        ("none.csv", ["there is no file", "none.csv", "did you mean 'nine.csv'"]),
        ("none.txt", ["neither CSV nor Parquet"]),
    ],
)
def test_data_that_cannot_be_read_is_told_with_its_line(told, data, expected):
    text = f"space: s\ndata: {{t: {data}}}\nparameters: {{x: {{ordinal: [1]}}}}\n"
    message = told(text, nine_csv="a\n1\n")
    assert "main.yaml:2" in message
    assert not [words for words in expected if words not in message], message


@pytest.mark.parametrize(
    ("csv", "expected"),
    [
        ("a,b\n1,2\n3\n", ["t.csv:3: this row has 1 cells, and the header has 2"]),
        ("a,b\n1,2\n3,x\n", ["t.csv:3: the column 'b' is mixed", "t.csv:2"]),
        ("a,b\n1,nan\n2,inf\n", ["t.csv:2", "no finite number"]),
        ("a,a\n1,2\n", ["t.csv:1: there are two columns 'a'"]),
        ("a,\n1,2\n", ["t.csv:1: a column has no name"]),
        ('a,b\n1,"2\n', ["t.csv:2", "no CSV"]),
        ("a,b\n", ["t.csv:1: the table has no rows"]),
        ("", ["t.csv:1: the table has no rows"]),
        ("a,b [KiB]\n1,2 s\n", ["t.csv:2", "no quantity in KiB"]),
    ],
)
def test_a_csv_that_cannot_be_read_is_told_with_its_line(told, csv, expected):
    message = told("space: s\ndata: {t: t.csv}\nparameters: {x: {ordinal: [1]}}\n", t_csv=csv)
    assert not [words for words in expected if words not in message], message


def test_parquet_is_read_as_csv_is(read, tmp_path):
    table = pa.table({"name": ["a", "b"], "size [KiB]": [1.0, None], "on": [True, False]})
    parquet.write_table(table, tmp_path / "t.parquet")
    text = "space: s\ndata: {t: t.parquet}\nparameters:\n  k: {choice: [a, b]}\n  n: {ordinal: [1 KiB]}\n"
    assert read(text + "constraints: ['t[k].on', 't[\"a\"].size == n']\n").count() == 1


def test_a_file_that_is_no_parquet_is_told(told, tmp_path):
    (tmp_path / "t.parquet").write_bytes(b"PAR1nothing")
    message = told("space: s\ndata: {t: t.parquet}\nparameters: {x: {ordinal: [1]}}\n")
    assert "t.parquet: this is no Parquet table" in message


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_space_is_read_again_from_what_was_kept_of_its_files(tmp_path, kind):
    table = pa.table({"name": ["a", "b"], "v": [1, 2]})
    data = tmp_path / f"t.{kind}"
    if kind == "parquet":
        parquet.write_table(table, data)
    else:
        data.write_text("name,v\na,1\nb,2\n")
    main = tmp_path / "main.yaml"
    main.write_text(
        f"space: s\ndata: {{t: t.{kind}}}\nparameters:\n  k: {{choice: [a, b]}}\nconstraints: ['t[k].v == 2']\n"
    )
    files = Files()
    space = space_of(main, files)
    main.unlink()
    data.unlink()
    assert space_of(main, Files(kept=files.texts)) == space
    assert all(isinstance(text, str) for text in files.texts.values())
