"""``dse space`` as a user meets it: answers, formats, exit codes, one message for each mistake."""

import csv
import io
import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dse.cli.app import app

PLAN = """
space: plan
description: Who works on what.
parameters:
  gpus: {ordinal: pow2(8 .. 64)}
  tp: {ordinal: pow2(1 .. 8)}
  pp: {ordinal: pow2(1 .. 64)}
  dp: {ordinal: pow2(1 .. 64)}
  buffer: {ordinal: pow2(64 KiB .. 1 MiB)}
  format: {choice: [int8, mxfp4]}
  group: {ordinal: [32, 64, 128], when: format == 'int8'}
  gate: {boolean: true}
constraints:
  - tp * pp * dp == gpus
  - gate -> tp > 1
"""

REAL = """
space: chip
parameters:
  clock: {real: [200 MHz, 1.6 GHz], scale: log}
  buffer: {ordinal: pow2(64 KiB .. 8 MiB)}
constraints:
  - clock * buffer <= 1.6e15 B Hz
"""

LISTS = """
space: lists
parameters:
  bits: {each: 3, ordinal: [2, 4, 8]}
  order: {permutation: [a, b, c]}
  kept: {subset: [conv1, conv2, fc], size: 2}
  stages: {partition: 6, parts: [1, 3]}
  mix: {simplex: [cpu, gpu], step: 0.25}
constraints:
  - sum(bits) <= 14
"""

EMPTY = """
space: empty
parameters:
  a: {integer: [1, 9]}
  b: {integer: [1, 9]}
constraints:
  - a != b
  - a > 2 * b
  - b > a
"""


@dataclass
class Spaces:
    """A folder with space files, and ``dse space`` typed in it."""

    shell: Any

    @property
    def folder(self) -> Path:
        """Where the files are."""
        return self.shell.folder

    def __call__(self, line: str, *, code: int = 0, width: int = 100) -> str:
        """The output of ``dse space ...``, or what it says on the error stream."""
        said = self.shell(["space", *line.split()], code=code, width=width)
        return said.stdout if code < 2 else said.stderr


@pytest.fixture
def dse(shell) -> Spaces:
    for name, text in (("plan", PLAN), ("real", REAL), ("lists", LISTS), ("empty", EMPTY)):
        (shell.folder / f"{name}.yaml").write_text(text)
    return Spaces(shell)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_designs_are_counted_whole_and_in_part(dse):
    assert dse("count plan.yaml") == "2,120\n"
    assert dse("count plan.yaml --set gpus=8 --set format=mxfp4 --set buffer=64KiB") == "16\n"
    assert dse("count plan.yaml --set tp=8 --set pp=8 --set dp=8") == "0\n"
    assert json.loads(dse("count real.yaml --format json")) == {
        "file": "real.yaml",
        "designs": None,
        "exact": False,
        "estimate": None,
        "reason": "clock is a real parameter",
    }
    assert dse("count real.yaml") == "not countable: clock is a real parameter\n"


def test_a_part_that_is_possible_is_counted_with_an_example(dse):
    told = dse("why plan.yaml --set gpus=8 --set tp=8 --set buffer=1MiB")
    assert told.startswith("8 legal designs with these values\nfor example gpus=8  tp=8  pp=1")
    one = dse("why plan.yaml -s gpus=8 -s tp=8 -s buffer=1MiB -s format=mxfp4 -s gate=false")
    assert "legal: the design keeps every rule" not in one
    assert one.startswith("1 legal design with these values\n")
    assert dse("why plan.yaml").startswith("2,120 legal designs in the space\n")


def test_a_part_that_is_impossible_is_told_the_rules_with_their_lines(dse):
    told = dse("why plan.yaml --set tp=8 --set gpus=16 --set dp=4 --set buffer=64KiB", code=1)
    assert told.splitlines() == [
        "no legal design with these values: these contradict one another",
        "  --set: tp = 8",
        "  --set: gpus = 16",
        "  --set: dp = 4",
        "  plan.yaml:14: tp * pp * dp == gpus",
        "leave out any one of them, and nothing contradicts the rest",
    ]
    told = json.loads(dse("why plan.yaml -s format=mxfp4 -s group=32 --format json", code=1))
    assert (told["legal"], told["designs"], told["whole"]) == (False, 0, False)
    assert [(one["kind"], one["where"]) for one in told["against"]] == [
        ("setting", None),
        ("setting", None),
        ("condition", "plan.yaml:11"),
    ]


def test_a_whole_design_is_legal_or_told_each_rule_that_it_breaks(dse):
    whole = "--set gpus=16 --set pp=1 --set format=mxfp4 --set gate=true --set buffer=64KiB"
    legal = dse(f"why plan.yaml {whole} --set tp=4 --set dp=4")
    assert legal == "legal: the design keeps every rule\n"
    assert dse(f"why plan.yaml {whole} --set tp=1 --set dp=8", code=1).splitlines() == [
        "illegal: the design breaks 2 rules",
        "  plan.yaml:14: tp * pp * dp == gpus",
        "    gpus = 16, tp = 1, pp = 1, dp = 8: comes to 8 == 16",
        "  plan.yaml:15: gate -> tp > 1",
        "    tp = 1, gate = true",
    ]
    told = dse(f"why plan.yaml {whole} --set tp=4 --set dp=4 --set group=32", code=1)
    assert "plan.yaml:11: group exists only when format == 'int8'" in told


def test_what_cannot_be_proved_impossible_is_not_called_so(dse):
    told = dse("why real.yaml --set buffer=8MiB", code=1)
    assert "was found, but that proves nothing: clock is a real parameter" in told
    assert "real.yaml:7: clock * buffer <= 1.6e15 B Hz" in told
    assert json.loads(dse("why real.yaml -s buffer=8MiB --format json", code=1))["legal"] is None
    proved = dse("why real.yaml --set buffer=8MiB --set clock=1.6GHz", code=1)
    assert "comes to 1.34218e+16 <= 1600000000000000" in proved


def test_an_empty_space_is_told_its_contradiction(dse):
    told = dse("why empty.yaml", code=1)
    assert told.splitlines()[1:3] == ["  empty.yaml:8: a > 2 * b", "  empty.yaml:9: b > a"]


def test_a_description_fits_the_terminal_and_says_what_each_rule_removes(dse):
    told = dse("describe plan.yaml", width=72)
    assert max(map(len, told.splitlines())) <= 72
    assert "64 KiB .. 1 MiB, doubling" in told
    assert "plan.yaml:15" in told
    size = "8 parameters, 2 rules, 2,120 legal designs: 6.76 % of 31,360 without rules"
    assert size in " ".join(told.split())
    assert "~" not in told
    assert "~ estimated from 10,000 draws" in dse("describe real.yaml")


def test_a_description_for_machines_has_the_exact_numbers(dse):
    told = json.loads(dse("describe plan.yaml --format json"))
    assert told["designs"] == 2120
    assert told["without_rules"] == 4 * 4 * 7 * 7 * 5 * 4 * 2
    assert told["combinations"] == 4 * 4 * 7 * 7 * 5 * 2 * 3 * 2
    rules = {one["rule"]: one for one in told["rules"]}
    assert rules["gate -> tp > 1"]["forbids"] == {"share": 0.125, "draws": None}
    assert rules["gate -> tp > 1"]["removes"] == 5 * 4 * sum(range(4, 8))
    assert rules["tp * pp * dp == gpus"]["where"] == "plan.yaml:14"
    active = {one["parameter"]: one["active"]["share"] for one in told["parameters"]}
    assert active["group"] == 0.75
    assert [g["combinations"] for g in told["groups"] if "tp" in g["parameters"]] == [106]
    estimated = json.loads(dse("describe real.yaml --format json"))
    assert estimated["rules"][0]["forbids"]["draws"] == 10_000


@pytest.mark.parametrize("method", ["uniform", "sobol", "stratified"])
def test_samples_are_legal_repeatable_and_have_what_is_set(dse, method):
    line = f"sample plan.yaml -n 12 --seed 3 --set gpus=32 --method {method} --format json"
    designs = json.loads(dse(line))
    assert len(designs) == 12
    assert all(d["tp"] * d["pp"] * d["dp"] == d["gpus"] == 32 for d in designs)
    assert json.loads(dse(line)) == designs


@pytest.mark.parametrize("method", ["uniform", "sobol", "stratified"])
def test_points_that_a_rule_over_reals_rejects_are_made_up_for(dse, method):
    rows = rows_of(dse(f"sample real.yaml -n 30 --method {method} --format csv"))
    assert len(rows) == 30
    assert all(float(row["clock"]) * float(row["buffer"]) <= 1.6e15 for row in rows)


def test_a_stratified_sample_has_every_part_of_a_range(dse):
    rows = rows_of(dse("sample plan.yaml -n 20 --method stratified --format csv"))
    assert sorted(int(row["buffer"]) for row in rows) == sorted(4 * [2**e for e in range(16, 21)])


def test_a_table_of_samples_is_upright_then_flat_then_pairs(dse):
    assert dse("sample plan.yaml -n 2", width=100).split()[:3] == ["gpus", "tp", "pp"]
    assert dse("sample plan.yaml -n 2", width=40).split()[:3] == ["parameter", "1", "2"]
    assert dse("sample plan.yaml -n 20", width=40).split()[:2] == ["number", "design"]


def test_neighbours_are_told_by_what_changes(dse):
    whole = "-s gpus=16 -s tp=2 -s pp=2 -s dp=4 -s format=mxfp4 -s gate=true -s buffer=64KiB"
    told = dse(f"neighbours plan.yaml {whole}").splitlines()
    assert told[0].startswith("of gpus=16  tp=2  pp=2  dp=4")
    assert "  tp 2 -> 4, dp 4 -> 2" in told
    assert "  buffer 64 KiB -> 128 KiB" in told
    assert told[-1] == f"{len(told) - 2} neighbours"
    found = json.loads(dse(f"neighbours plan.yaml {whole} --format json"))
    assert found["design"]["tp"] == 2
    assert len(found["neighbours"]) == len(told) - 2
    assert len(rows_of(dse("neighbours plan.yaml --seed 1 --format csv"))) > 5


def test_all_designs_are_listed_in_every_format(dse):
    rows = rows_of(dse("enumerate plan.yaml --format csv"))
    lines = dse("enumerate plan.yaml --format json").splitlines()
    assert len(rows) == len(lines) == len({tuple(row.values()) for row in rows}) == 2120
    assert {row["gate"] for row in rows} == {"true", "false"}
    assert {row["group"] for row in rows if row["format"] == "mxfp4"} == {""}
    assert all("group" not in json.loads(line) for line in lines if "mxfp4" in line)
    assert dse("enumerate plan.yaml --limit 3").count("gpus=8  tp=1") == 3
    assert len(dse("enumerate plan.yaml --limit 5 --set tp=4 --format json").splitlines()) == 5
    assert "cannot be enumerated" in dse("enumerate real.yaml", code=2)


def test_the_empty_word_and_an_absent_parameter_differ_in_csv(dse, tmp_path, monkeypatch):
    words = """{choice: ['', 'a,b', 'say "no"', x], when: "n == 1"}"""
    text = f"space: words\nparameters:\n  n: {{integer: [1, 2]}}\n  word: {words}\n"
    (tmp_path / "words.yaml").write_text(text)
    monkeypatch.chdir(tmp_path)
    told = CliRunner().invoke(app, ["space", "enumerate", "words.yaml", "--format", "csv"]).stdout
    assert sorted(told.splitlines()) == ['1,""', '1,"a,b"', '1,"say ""no"""', "1,x", "2,", "n,word"]
    rows = [(row["n"], row["word"]) for row in csv.DictReader(io.StringIO(told))]
    assert sorted(rows) == [("1", ""), ("1", "a,b"), ("1", 'say "no"'), ("1", "x"), ("2", "")]


def test_lists_are_set_and_shown_as_one(dse):
    whole = (
        "-s bits=[2,4,8] -s order=[c,a,b] -s kept=[conv1,fc] "
        "-s stages.parts=2 -s stages=[3] -s mix=[0.25,0.75]"
    )
    assert dse(f"why lists.yaml {whole}") == "legal: the design keeps every rule\n"
    told = dse(f"neighbours lists.yaml {whole}")
    assert "bits=[2, 4, 8]  order=[c, a, b]  kept=[conv1, fc]" in told
    clash = dse("why lists.yaml -s order[0]=a -s order[2]=a", code=1)
    assert "all_different(order)" in clash
    assert "order of a, b, c" in dse("describe lists.yaml")
    assert "kept has no item 'conv3'" in dse("why lists.yaml -s kept=[conv3]", code=2)
    assert "bits has 3 items, not 2" in dse("why lists.yaml -s bits=[2,4]", code=2)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("why plan.yaml --set tpp=2", "did you mean 'tp'"),
        ("why plan.yaml --set tp", "expected parameter=value"),
        ("why plan.yaml --set tp=2 --set tp=4", "tp has a value already"),
        ("why plan.yaml --set tp=3", "plan.yaml:6: tp cannot be 3\n  hint: nearest: 2 and 4"),
        ("why plan.yaml --set format=int9", "did you mean 'int8'"),
        ("why plan.yaml --set gate=maybe", "valid: false, true"),
        ("why plan.yaml --set buffer=64m", "buffer cannot be 64m"),
        ("why plan.yaml --set buffer=1e999", "buffer cannot be 1e999"),
        (f"why plan.yaml --set tp={'9' * 400}", "tp cannot be 9999"),
        ("why real.yaml --set clock=3GHz", "legal: 200 MHz .. 1.6 GHz, log scale"),
        ("count plan.yaml --format csv", "'csv' is not one of 'table', 'json'"),
        ("sample plan.yaml --format parquet", "'parquet' is not one of 'table', 'json', 'csv'"),
        ("sample plan.yaml --method lattice", "'lattice' is not one of"),
        ("sample plan.yaml --set tp=8 --set gpus=16 --set dp=4", "plan.yaml:14: tp * pp * dp"),
        ("neighbours plan.yaml --set format=mxfp4 --set group=32", "group exists only when"),
        ("count plna.yaml", "did you mean 'plan.yaml'"),
    ],
)
def test_a_mistake_ends_in_one_message_and_code_two(dse, line, told):
    assert told in dse(line, code=2)


def test_a_count_beyond_the_digits_of_python_is_told_whole(dse):
    many = "space: many\nparameters:\n  bits: {each: 5000, ordinal: [1, 2, 3, 4, 5, 6, 7, 8]}\n"
    (dse.folder / "many.yaml").write_text(many)
    assert len(dse("count many.yaml").strip().replace(",", "")) == 4516
    assert "2.81e4515 legal designs" in dse("describe many.yaml")


def test_a_study_is_told_apart_from_a_space(dse):
    (dse.folder / "study.yaml").write_text("study: toy\nspace: plan.yaml\n")
    told = dse("count study.yaml", code=2)
    assert "study.yaml:1: this is a study, and no space\n  hint: its space is plan.yaml" in told


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_ends_the_listing_quietly(dse):
    words = [sys.executable, "-m", "dse", "space", "enumerate", "plan.yaml", "--format", "json"]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, stderr=pipe) as command:
        assert json.loads(command.stdout.readline())["gpus"] == 8
        command.stdout.close()
        assert command.stderr.read() == b""
    assert command.returncode == 0
