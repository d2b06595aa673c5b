"""Division of cores between tasks: the fitted law, recorded times, and real commands."""

from __future__ import annotations

import os

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import InfeasibleError, PluginError, SpecError
from dse_evaluators.serving.core_shares import CoreShares
from dse_evaluators.serving.pinned_commands import PinnedCommands, place_cores
from dse_evaluators.serving.scaling_table import read_scaling

HEAD = "task,cores,seconds,split\n"
EXACT = HEAD + "a,1,22,fit\na,2,12,fit\na,4,7,test\nb,1,44,fit\nb,4,14,fit\nb,8,10,test\n"
needs_affinity = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="cannot bind processes to cores"
)


@pytest.fixture
def write(tmp_path):
    def written(text):
        path = tmp_path / "scaling.csv"
        path.write_text(text)
        return str(path)

    return written


def test_law_finds_serial_and_parallel_time_of_rows_to_fit(write):
    tasks, _ = read_scaling(write(EXACT))
    law = tasks["a"].fit()
    assert (law.serial_s, law.parallel_s) == pytest.approx((2, 20))
    assert tasks["a"].error_of(law) == pytest.approx([0])  # 2 + 20/4 = 7
    assert tasks["b"].error_of(tasks["b"].fit()) == pytest.approx([1 - 9 / 10])  # 4 + 40/8 = 9


def test_rows_to_test_do_not_change_the_law(write):
    before, _ = read_scaling(write(EXACT))
    after, _ = read_scaling(write(EXACT.replace("a,4,7,test", "a,4,70,test")))
    assert before["a"].fit() == after["a"].fit()


def test_law_has_no_negative_time(write):
    tasks, _ = read_scaling(write(HEAD + "a,1,10,fit\na,2,4,fit\n"))
    assert tasks["a"].fit().serial_s == 0


def test_makespan_is_time_of_slowest_and_idle_share_what_others_wait(write):
    shares = CoreShares(scaling=write(EXACT), cores=8)
    found = shares.evaluate(Batch.of([{"a_cores": 4, "b_cores": 4}, {"a_cores": 5, "b_cores": 4}]))
    assert found.columns["makespan"][0] == pytest.approx(14)  # b; a takes 7
    assert found.columns["in_turn"][0] == pytest.approx(4.5 + 9)
    assert found.columns["idle_share"][0] == pytest.approx(4 * 7 / (8 * 14))
    assert found.failures[1].reason == "9 cores are given, and there are 8"


def test_replay_gives_recorded_times_and_refuses_others(write):
    shares = CoreShares(scaling=write(EXACT), cores=12, law="table")
    found = shares.evaluate(Batch.of([{"a_cores": 4, "b_cores": 8}]))
    assert found.columns["makespan"][0] == 10
    assert np.isnan(found.columns["in_turn"][0])  # nothing is recorded on 12 cores
    with pytest.raises(SpecError, match="a_cores may be 3") as error:
        shares.check_values({"a_cores": [2, 3], "b_cores": [4]})
    assert "recorded: 1, 2, 4" in error.value.hint


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("a,1.5,3,fit", "row 7: cores is 1.5"),
        ("a,8,-1,fit", "row 7: seconds is -1"),
        ("a,2,9,fit", "row 7: a on 2 cores stands in row 2, too"),
        ("a b,2,9,fit", "row 7: task is 'a b'"),
        ("a,8,9,tset", "row 7: split is 'tset'"),
        ("c,8,9,fit", "c has 1 rows to fit a law to"),
    ],
)
def test_wrong_rows_are_named(write, row, problem):
    with pytest.raises(SpecError, match=problem):
        CoreShares(scaling=write(f"{EXACT}{row}\n"), cores=8)


def test_unknown_law_and_missing_file_are_refused(write, tmp_path):
    with pytest.raises(PluginError, match="no law 'amdal'") as law:
        CoreShares(scaling=write(EXACT), cores=8, law="amdal")
    assert "amdahl" in law.value.hint
    with pytest.raises(SpecError, match="no file") as file:
        CoreShares(scaling=str(tmp_path / "scalin.csv"), cores=8)
    assert "scaling.csv" in file.value.hint


def write_witness(path):
    """Return a command that writes the cores and threads that it has been given to a file."""
    code = (
        f"import os; open({str(path)!r}, 'a').write("
        "f\"{sorted(os.sched_getaffinity(0))} {os.environ['OMP_NUM_THREADS']} {cores}\\n\")"
    )
    return ["{python}", "-c", code.replace("{cores}", "n={cores}")]


@needs_affinity
def test_commands_have_cores_and_threads_that_they_are_given(tmp_path):
    processors = sorted(os.sched_getaffinity(0))
    run = {name: write_witness(tmp_path / name) for name in ("first", "second")}
    own = PinnedCommands(run=run, repeats=2, warmup=0)
    designs = [{"first_cores": 1, "second_cores": 1, "placement": "shared"}]
    found = own.evaluate(Batch.of(designs))
    assert not found.failures
    expected = f"[{processors[0]}] 1 n=1\n" * 2
    assert (tmp_path / "first").read_text() == (tmp_path / "second").read_text() == expected
    assert found.columns["first_end"][0] <= found.columns["makespan"][0]


@needs_affinity
def test_disjoint_cores_are_not_shared(monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 4, 6, 7})
    assert place_cores({"a": 1, "b": 3}, "disjoint") == {"a": [3], "b": [4, 6, 7]}
    assert place_cores({"a": 1, "b": 3}, "shared") == {"a": [3], "b": [3, 4, 6]}
    assert place_cores({"a": 1, "b": 3}, "free") == {"a": (), "b": ()}
    with pytest.raises(InfeasibleError, match="5 cores are needed, and 4 can be used"):
        place_cores({"a": 2, "b": 3}, "disjoint")


@needs_affinity
def test_failed_command_is_named_with_what_it_said():
    broken = ["{python}", "-c", "raise SystemExit('no data')"]
    own = PinnedCommands(run={"good": ["{python}", "-c", "0"], "bad": broken}, repeats=1, warmup=0)
    found = own.evaluate(Batch.of([{"good_cores": 1, "bad_cores": 1, "placement": "free"}]))
    assert found.failures[0].reason.startswith("bad ended with the status 1: no data")


@pytest.mark.parametrize("run", [{}, {"a b": ["x"]}, {"a": []}, ["x"]])
def test_commands_without_name_or_program_are_refused(run):
    with pytest.raises(PluginError):
        PinnedCommands(run=run)
