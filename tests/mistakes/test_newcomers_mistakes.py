"""What a newcomer gets wrong, and that the answer names the line and the mend: one row, one test.

The rows stand in the tables beside this file. Each was written before any answer was read, with the
line that must be named and the words that the mend must hold. A row that does not hold says why
under ``exempt``; at most one in twenty may.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from dse import Metric, Space, Study, evaluator
from dse.cli.app import app
from dse.errors import DseError

HERE = Path(__file__).parent
TABLES = ("spaces", "studies", "outputs", "commands", "python")
SIGNATURE = 2
"""Frames of an error that Python itself raises at a call: the test's and the call's."""
SHARE = 0.95
"""So many of the mistakes must be answered with the line and the mend."""


SPACE = """\
space: kernel
parameters:
  threads: {ordinal: [1, 2, 4, 8]}
  tile: {ordinal: pow2(16 .. 256)}
  format:  {choice: [fp16, int8]}
  buffer: {ordinal: [64 KiB, 256 KiB]}
  group: {ordinal: [32, 64], when: format == 'int8'}
constraints:
  - threads * tile <= 512
  - format == 'int8' -> tile >= 32
"""
STUDY = """\
study: kernel
question: Which kernel is fast, and loses little?
space: space.yaml
evaluators:
  bench:
    use: command
    run: [python3, bench.py]
    metrics: {time: ms, loss: ''}
    timeout: 10 s
  chip:
    use: expression
    metrics:
      area: {formula: threads * 2 mm2 + buffer / 1 KiB * 0.01 mm2, unit: mm2}
objectives:
  - minimize: bench.time
  - minimize: bench.loss
constraints:
  - chip.area <= 12 mm2
optimizer: auto
budget: {measurements: 6}
seed: 7
"""
BENCH = """\
import json
import sys

design = json.load(sys.stdin)
time = 100 / design["threads"] + design["tile"] / 8
print(json.dumps({"time": time, "loss": 0.1 if design["format"] == "int8" else 0.0}))
"""
ARRAY = """\
space: array
arguments: {largest: 32}
parameters:
  rows: {ordinal: pow2(8 .. largest)}
  cols: {ordinal: pow2(8 .. largest)}
  dataflow: {integer: [1, 2]}
"""
FILES = {
    "space.yaml": SPACE,
    "study.yaml": STUDY,
    "bench.py": BENCH,
    "array.yaml": ARRAY,
    "layers.csv": "layer,weights\nconv1,432\nconv2,4608\nfc,5120\n",
    "combinations.csv": "format,tile\nint8,32\nfp16,16\n",
    "measured.csv": "threads,power\n1,3\n2,4\n4,5\n8,6\n",
}


@dataclass(frozen=True)
class Mistake:
    """The files with one mistake in them, and the lines of which one must be named."""

    files: dict[str, str]
    lines: tuple[str, ...]

    def names_line(self, answer: str) -> bool:
        """Whether an answer names one of the lines."""
        return any(re.search(rf"{re.escape(place)}(?!\d)", answer) for place in self.lines)


def holds(answer: str, want: str) -> bool:
    """Whether one of the alternatives, apart by " | ", stands in an answer as a word of its own."""
    spoken = re.sub(r"\s+", " ", answer)
    return any(_word(one).search(spoken) for one in want.split(" | "))


def read_table(name: str) -> list[dict[str, Any]]:
    """Return the rows of a table beside this file."""
    return list(yaml.safe_load((HERE / f"{name}.yaml").read_text()))


def place_mistake(row: dict[str, Any], file: str) -> Mistake:
    """Return a row of `spaces.yaml` or `studies.yaml` as files, with the line that must be named."""
    text = _change(FILES[file], row)
    marks = row["line"].split("|") if "line" in row else [None]
    lines = tuple(
        mark if mark and ".yaml:" in mark else f"{file}:{_line_of(text, FILES[file], mark)}"
        for mark in marks
    )
    return Mistake({**FILES, file: text}, lines)


def _change(text: str, row: dict[str, Any]) -> str:
    if "change" in row:
        assert text.count(row["change"]) == 1 or row["change"] == "constraints:", row
        text = text.replace(row["change"], row["to"], 1)
    if "add" in row:
        text = text.replace("constraints:\n", row["add"] + "\nconstraints:\n", 1)
    if "add_evaluator" in row:
        text = text.replace("objectives:\n", row["add_evaluator"] + "\nobjectives:\n", 1)
    return text + row.get("add_end", "") + ("\n" if "add_end" in row else "")


def _line_of(text: str, before: str, mark: str | None) -> int | str:
    """Return the line that holds the mark; without one the first that the mistake has changed."""
    lines = text.splitlines()
    if mark is None:
        pairs = enumerate(zip_longest(lines, before.splitlines()), start=1)
        return next(at for at, (one, other) in pairs if one != other)
    return next(at for at, line in enumerate(lines, start=1) if mark in line)


def _word(want: str) -> re.Pattern[str]:
    begin = r"(?<!\w)" if want[0].isalnum() else ""
    end = r"(?!\w)" if want[-1].isalnum() else ""
    return re.compile(begin + re.escape(want) + end)


# -- answers ------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.delenv("DSE_STORAGE", raising=False)
    write_files(tmp_path, FILES)
    return tmp_path


@pytest.fixture(scope="module")
def begun(tmp_path_factory) -> Iterator[Path]:
    """A folder whose storage has the study ``kernel``, of two measurements."""
    folder = tmp_path_factory.mktemp("begun")
    write_files(folder, FILES)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("COLUMNS", "100")
        patch.delenv("DSE_STORAGE", raising=False)
        code, answer = run_words("run study.yaml --quiet --measurements 2")
        assert code == 0, answer
        yield folder


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).write_text(text)


def run_words(words: str) -> tuple[int, str]:
    """Return the exit code and all that the command prints, as the program ends for a user."""
    got = CliRunner().invoke(app, shlex.split(words))
    if isinstance(got.exception, DseError):
        each = getattr(got.exception, "errors", (got.exception,))
        return 2, got.output + "\n".join(f"error: {one}" for one in each)
    if got.exception is not None and not isinstance(got.exception, SystemExit):
        raise got.exception
    return got.exit_code, got.output


def rows(table: str) -> list[Any]:
    """Return the rows of a table as parameters of a test; an exempt one is expected to fail."""
    told = []
    for row in read_table(table):
        name = row.get("mistake") or row.get("words") or row["code"]
        exempt = pytest.mark.xfail(reason=row.get("exempt", ""), strict=False)
        told.append(pytest.param(row, id=name[:70], marks=[exempt] if "exempt" in row else []))
    return told


def lacks(answer: str, row: dict[str, Any]) -> list[str]:
    return [want for want in row["says"] if not holds(answer, want)]


@pytest.mark.parametrize("row", rows("spaces"))
def test_a_mistake_in_a_space_is_answered_with_its_line_and_mend(folder, row):
    mistake = place_mistake(row, "space.yaml")
    write_files(folder, mistake.files)
    code, answer = run_words("check space.yaml")
    assert (code, lacks(answer, row)) == (2, []), answer
    assert mistake.names_line(answer), (mistake.lines, answer)


@pytest.mark.parametrize("row", rows("studies"))
def test_a_mistake_in_a_study_is_answered_with_its_line_and_mend(folder, row):
    mistake = place_mistake(row, "study.yaml")
    write_files(folder, mistake.files)
    code, answer = run_words("check study.yaml")
    assert (code, lacks(answer, row)) == (2, []), answer
    assert mistake.names_line(answer), (mistake.lines, answer)


@pytest.mark.parametrize("row", rows("outputs"))
def test_a_program_that_is_off_is_answered_with_what_it_printed(folder, row):
    (folder / "bench.py").write_text(row["program"])
    code, answer = run_words("evaluate study.yaml --seed 1")
    assert (code, lacks(answer, row)) == (1, []), answer


@pytest.mark.parametrize("row", rows("commands"))
def test_a_mistake_at_the_prompt_is_answered_with_the_mend(begun, row):
    code, answer = run_words(row["words"])
    assert (code, lacks(answer, row)) == (2, []), answer


@pytest.mark.parametrize("row", rows("python"))
def test_a_mistake_in_python_is_answered_with_the_mend(folder, row):
    time = Metric("time", "us", goal="minimize")

    @evaluator(time, Metric("memory", "KiB", goal="minimize"))
    def kernel(tile, stages):
        return {"time": 1000 / tile + 40 / stages, "memory": tile * stages / 512}

    space = Space({"tile": [16, 32, 64], "stages": (1, 6)}, ["tile * stages <= 256"])
    known = {"Metric": Metric, "Space": Space, "Study": Study, "evaluator": evaluator}
    known |= {"time": time, "kernel": kernel, "space": space}
    if "study." in row["code"]:
        known["study"] = Study("tiles", space, [kernel])
    if "asked." in row["code"]:
        known["asked"] = Study("asked", space, metrics=[time])
    with pytest.raises((DseError, TypeError)) as caught:
        exec(row["code"], known)
    if "raised_by" in row:  # the user's own error, with the traceback that leads to their line
        assert caught.traceback[-1].name == row["raised_by"]
    else:
        frames = [one for one in caught.traceback if "renamed_arguments" not in str(one.path)]
        assert isinstance(caught.value, DseError) or len(frames) == SIGNATURE
    assert lacks(str(caught.value), row) == []


def test_at_least_130_mistakes_are_collected_and_19_of_20_hold():
    every = [row for table in TABLES for row in read_table(table)]
    held = [row for row in every if "exempt" not in row]
    assert len(every) >= 130
    assert len(held) / len(every) >= SHARE
