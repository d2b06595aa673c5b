"""What a program says of a design becomes numbers, or a fault that names what was seen."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Metrics
from dse.evaluation.bound_evaluator import Bound
from dse.protocols import EVERYTHING
from dse_evaluators.generic.command import Command

ECHO = "import json, sys; d = json.load(sys.stdin); print(json.dumps({'power': d['rows'] * 2}))"


def printing(text: str) -> list[str]:
    return [sys.executable, "-c", f"print({text!r})"]


def told(run: list[str], **options: object) -> Metrics:
    command = Command(run=run, metrics={"power": "W"}, timeout=30, **options)
    return command.evaluate(Batch.of([{"rows": 8}]))


@pytest.fixture(autouse=True)
def _pythons_own_limit_of_digits():
    """As a process has it that has counted no space: commands on spaces lift it."""
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(sys.int_info.default_max_str_digits)
    yield
    sys.set_int_max_str_digits(before)


def failure(run: list[str], **options: object) -> Failure:
    """Why a study that asks for the metric has no answer."""
    command = Command(run=run, metrics={"power": "W"}, timeout=30, **options)
    bound = Bound(name="board", evaluator=command, names={"rows": "rows"})
    return bound.evaluate(Batch.of([{"rows": 8}])).failures[0]


def test_a_number_is_the_metric() -> None:
    assert told(printing('{"power": 3.1}')).columns["power"].tolist() == [3.1]


def test_a_value_comes_with_its_spread() -> None:
    got = told(printing('{"power": {"value": 3.1, "spread": 0.2}}'))
    assert (got.columns["power"].tolist(), got.spread["power"].tolist()) == ([3.1], [0.2])


def test_only_the_last_line_counts() -> None:
    assert told(printing('warming up\n{"power": 9}\n{"power": 3}\n\n')).columns["power"][0] == 3


def test_what_else_is_printed_is_passed_over() -> None:
    assert told(printing('{"power": 3, "note": "warm"}')).columns["power"][0] == 3


def test_every_design_gets_its_own_answer() -> None:
    command = Command(run=[sys.executable, "-c", ECHO], metrics={"power": "W"})
    got = command.evaluate(Batch.of([{"rows": 8}, {"rows": 16}]))
    assert got.columns["power"].tolist() == [16, 32]


def test_an_infeasible_design_keeps_the_programs_reason() -> None:
    assert failure(printing('{"infeasible": "too hot"}')) == Failure(
        kind="infeasible", reason="too hot"
    )


def test_infeasible_false_is_no_reason() -> None:
    assert told(printing('{"infeasible": false, "power": 1}')).failures == {}


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("", "printed nothing"),
        ("power is 3.1", "power is 3.1"),
        ("[3.1]", "no object: '[3.1]'"),
        ("3.1", "no object: '3.1'"),
        ('{"powr": 3.1}', "'power' is missing; there is powr"),
        ("{}", "there is nothing"),
        ('{"power": NaN}', "NaN is no number"),
        ('{"power": Infinity}', "Infinity is no number"),
        ('{"power": 1e999}', "power is inf"),
        ('{"power": "3.1"}', "power is '3.1', which is no number"),
        ('{"power": true}', "power is True, which is no number"),
        ('{"power": null}', "power is None, which is no number"),
        ('{"power": [3.1]}', "power is [3.1], which is no number"),
        ('{"power": {"spread": 1}}', "no 'value'"),
        ('{"power": {"value": 1, "spread": -1}}', "below zero"),
        ('{"power": {"value": 1, "spread": "x"}}', "the spread of power is 'x'"),
        ("[" * 100_000, "is no JSON"),
        ('{"power": 1' + "0" * 5_000 + "}", "is no JSON"),
        ('{"power": 1' + "0" * 400 + "}", "not finite"),
    ],
)
def test_rubbish_is_invalid_and_named(said: str, named: str) -> None:
    seen = failure([sys.executable, "-c", "import sys; print(sys.argv[1])", said])
    assert (seen.kind, named in seen.reason) == ("invalid", True), seen.reason


def test_bytes_that_are_no_text_are_rubbish_too() -> None:
    run = [sys.executable, "-c", r"import sys; sys.stdout.buffer.write(b'\xff\xfe\x00')"]
    assert failure(run).kind == "invalid"


def test_a_fault_in_one_row_leaves_the_others_alone() -> None:
    run = [sys.executable, "-c", ECHO]
    command = Command(run=run, metrics={"power": "W"})
    got = command.evaluate(Batch.of([{"rows": 8}, {"rows": "many"}, {"rows": 2}]))
    assert (got.columns["power"][[0, 2]].tolist(), list(got.failures)) == ([16, 4], [1])


def test_values_of_numpy_reach_the_program_as_plain_json(tmp_path: Path) -> None:
    keep = "import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())"
    columns = {
        "rows": Column(np.array([8])),
        "clock": Column(np.array([1.5])),
        "fused": Column(np.array([True])),
        "format": Column.coded(("int8", "fp8"), np.array([1], dtype=np.int32)),
        "group": Column(np.array([64]), np.array([True])),
    }
    run = [sys.executable, "-c", keep, str(tmp_path / "seen")]
    Command(run=run, metrics={"power": "W"}).evaluate(Batch(columns, 1))
    assert json.loads((tmp_path / "seen").read_text()) == {
        "rows": 8,
        "clock": 1.5,
        "fused": True,
        "format": "fp8",
    }


def test_a_program_sees_only_what_it_reads() -> None:
    run = [sys.executable, "-c", "import sys; sys.exit(sys.stdin.read())"]
    command = Command(run=run, metrics={"power": "W"}, reads=["rows"])
    got = command.evaluate(Batch.of([{"rows": 8, "clock": 1.0}]))
    assert (command.reads, got.failures[0].reason) == ({"rows"}, 'exit status 1: {"rows": 8}')


def test_without_a_list_it_reads_everything() -> None:
    assert Command(run=["true"], metrics={"power": "W"}).reads == {EVERYTHING}


def counting(folder: Path, values: list[object]) -> list[str]:
    """A program that tells the next of the values each time it runs."""
    script = folder / "count.py"
    script.write_text(
        "import json, pathlib, sys\n"
        "state = pathlib.Path(__file__).with_suffix('.n')\n"
        "n = int(state.read_text()) if state.exists() else 0\n"
        "state.write_text(str(n + 1))\n"
        f"print(json.dumps({{'power': {values!r}[n]}}))\n"
    )
    return [sys.executable, str(script)]


def test_repeats_tell_the_median_and_the_standard_error(tmp_path: Path) -> None:
    got = told(counting(tmp_path, [1, 2, 9]), repeats=3)
    deviation = (((1 - 4) ** 2 + (2 - 4) ** 2 + (9 - 4) ** 2) / 2) ** 0.5
    assert got.columns["power"].tolist() == [2]
    assert got.spread["power"].tolist() == pytest.approx([deviation / 3**0.5])


def test_repeats_that_agree_keep_the_error_that_the_program_tells(tmp_path: Path) -> None:
    said = {"value": 5, "spread": 0.2}
    got = told(counting(tmp_path, [said] * 4), repeats=4)
    assert got.spread["power"].tolist() == pytest.approx([0.1])


def test_repeats_stop_at_the_first_fault(tmp_path: Path) -> None:
    seen = failure(counting(tmp_path, [1, "hot", 3]), repeats=3)
    assert (seen.kind, (tmp_path / "count.n").read_text()) == ("invalid", "2")


def test_a_single_run_claims_no_spread() -> None:
    assert told(printing('{"power": 3.1}')).spread == {}


def test_the_folder_and_the_environment_are_the_programs(tmp_path: Path) -> None:
    look = "import os; print(os.getcwd(), os.environ['THREADS'])"
    seen = failure([sys.executable, "-c", look], cwd=str(tmp_path), env={"THREADS": "1"})
    assert f"{tmp_path} 1" in seen.reason
