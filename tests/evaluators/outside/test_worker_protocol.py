"""A worker answers design after design; what breaks it costs one design and nothing else."""

from __future__ import annotations

import gc
import os
import pickle
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.outside.worker import Worker


def batch(*deeds: str) -> Batch:
    return Batch.of([{"rows": row + 1, "do": deed} for row, deed in enumerate(deeds)])


def gone(pid: int) -> bool:
    """True if the process has ended, if only as a zombie that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 300
    while not gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def test_many_designs_are_answered_by_one_process(obedient):
    told = obedient().evaluate(batch("work", "work", "work"))
    assert told.columns["power"].tolist() == [2, 4, 6]
    assert len(set(told.columns["process"])) == 1


def test_the_next_batch_finds_the_process_still_there(obedient):
    worker = obedient()
    first = worker.evaluate(batch("work"))
    assert worker.evaluate(batch("work")).columns["process"] == first.columns["process"]


def test_what_the_worker_prints_is_no_answer(obedient):
    assert obedient().evaluate(batch("work")).failures == {}


def test_options_are_told_when_it_starts(obedient):
    assert obedient().evaluate(batch("work")).columns["offset"].tolist() == [5]


def test_a_tool_that_reads_its_stdin_finds_it_empty(obedient):
    assert obedient().evaluate(batch("read", "work")).columns["power"].tolist() == [2, 4]


@pytest.mark.parametrize(
    ("deed", "kind", "why"),
    [
        ("exit", "crashed", "ended with the exit status 3: .*no licence"),
        ("kill", "lost", "was killed by SIGKILL"),
        ("raise", "raised", "ValueError: rows are odd"),
        ("refuse", "infeasible", "too many rows: 8 too many"),
        ("nan", "invalid", "NaN is no number of JSON"),
        ("text", "invalid", "power is 'much', which is no number"),
        ("odd", "raised", "TypeError: .*set is not JSON serializable"),
    ],
)
def test_a_design_that_fails_fails_alone(obedient, deed, kind, why):
    told = obedient().evaluate(batch("work", deed, "work"))
    assert [*told.failures] == [1]
    assert told.failures[1].kind == kind
    assert re.search(why, told.failures[1].reason, re.DOTALL)
    assert told.columns["power"][[0, 2]].tolist() == [2, 6]


def test_a_hang_ends_at_the_limit_with_all_that_it_started(obedient, tmp_path):
    worker = obedient(timeout=3)
    told = worker.evaluate(batch("work", "hang", "work"))
    assert told.failures[1].kind == "timeout"
    assert "took more than 3 s" in told.failures[1].reason
    assert told.columns["power"][[0, 2]].tolist() == [2, 6]
    assert ends(int((tmp_path / "pids").read_text()))


def test_the_process_ends_with_its_evaluator(obedient):
    worker = obedient()
    (pid,) = worker.evaluate(batch("work")).columns["process"]
    del worker
    gc.collect()
    assert ends(int(pid))


def test_the_process_ends_with_a_driver_that_is_killed(obedient, tmp_path):
    file = tmp_path / "driver.py"
    (tmp_path / "evaluator").write_bytes(pickle.dumps(obedient()))
    file.write_text(
        "import os, pickle, signal, sys\n"
        "from dse.core.batch import Batch\n"
        "worker = pickle.load(open(sys.argv[1], 'rb'))\n"
        "told = worker.evaluate(Batch.of([{'rows': 1, 'do': 'work'}]))\n"
        "print(int(told.columns['process'][0]), flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    ran = subprocess.run(
        [sys.executable, str(file), str(tmp_path / "evaluator")],
        stdout=subprocess.PIPE,
        check=False,
    )
    assert ends(int(ran.stdout))


def test_a_copy_has_a_process_of_its_own(obedient):
    worker = obedient()
    own = worker.evaluate(batch("work")).columns["process"]
    copy = pickle.loads(pickle.dumps(worker))
    assert copy.evaluate(batch("work")).columns["process"] != own


def test_a_forked_process_starts_its_own_and_leaves_the_first_one(obedient):
    worker = obedient()
    own = worker.evaluate(batch("work")).columns["process"]
    child = os.fork()
    if child == 0:
        other = worker.evaluate(batch("work")).columns["process"]
        os._exit(0 if other != own else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert worker.evaluate(batch("work")).columns["process"] == own


READY = "sys.stdin.readline(); print(json.dumps({'ready': {}}))\n"
EVERY = "for line in sys.stdin:\n    told = json.loads(line)\n"


def test_a_program_in_any_language_needs_ten_lines(raw):
    answer = (
        "    print(json.dumps({'id': told['id'], 'metrics': {'power': told['design']['rows']}}))"
    )
    assert raw(READY + EVERY + answer).evaluate(batch("a", "b")).columns["power"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("says", "why"),
    [
        ("'power: 3'", "did not answer with a line of JSON"),
        ("'[]'", r"must answer with one object with the id 1, got \[\]"),
        ("json.dumps({'id': 99, 'metrics': {'power': 1}})", "with the id 1, got"),
        ("json.dumps({'id': told['id']})", "expected a mapping from metrics to numbers"),
    ],
)
def test_what_is_no_answer_is_told(raw, says, why):
    failure = raw(f"{READY}{EVERY}    print({says})").evaluate(batch("a")).failures[0]
    assert failure.kind == "invalid"
    assert re.search(why, failure.reason)


def test_a_metric_that_is_left_out_is_undefined(raw):
    said = raw(f"{READY}{EVERY}    print(json.dumps({{'id': told['id'], 'metrics': {{}}}}))")
    undefined = said.evaluate(batch("a")).undefined
    assert undefined == {"power": {0: "the metric 'power' is missing; there is nothing"}}


def test_a_second_answer_to_one_design_is_not_taken_for_the_next(raw):
    script = f"""{READY}{EVERY}    rows = told['design']['rows']
    both = [json.dumps({{'id': told['id'], 'metrics': {{'power': n * rows}}}}) for n in (1, 1000)]
    os.write(1, ('\\n'.join(both) + '\\n').encode())  # at once, however busy the machine is
"""
    worker = raw(script)
    assert worker.evaluate(batch("a")).columns["power"].tolist() == [1]
    assert worker.evaluate(batch("a", "b")).columns["power"][0] == 1


def test_a_program_that_dies_between_designs_is_started_again(raw):
    script = f"""{READY}told = json.loads(sys.stdin.readline())
print(json.dumps({{'id': told['id'], 'metrics': {{'power': os.getpid()}}}}))
"""
    worker = raw(script)
    (first,) = worker.evaluate(batch("a")).columns["power"]
    assert ends(int(first))
    (second,) = worker.evaluate(batch("a")).columns["power"]
    assert second > 0
    assert second != first


def test_a_design_may_be_longer_than_a_pipe_holds(raw):
    answer = (
        "    print(json.dumps({'id': told['id'], 'metrics': {'power': len(told['design']['do'])}}))"
    )
    worker = raw(READY + EVERY + answer)
    assert worker.evaluate(batch("x" * 1_000_000)).columns["power"].tolist() == [1_000_000]


def test_a_flood_on_stderr_does_not_stop_the_answer(raw):
    script = f"{READY}{EVERY}    sys.stderr.write('x' * 1_000_000); print(json.dumps({{'id': told['id'], 'metrics': {{'power': 1}}}}))"
    assert raw(script).evaluate(batch("a", "b")).failures == {}


def test_a_flood_without_an_end_of_line_is_an_invalid_answer(raw):
    script = f"{READY}{EVERY}    sys.stdout.write('x' * (1 << 25))\ntime.sleep(60)"
    failure = raw(script).evaluate(batch("a")).failures[0]
    assert (failure.kind, "without an end of line" in failure.reason) == ("invalid", True)


@pytest.mark.parametrize(
    ("script", "start_s", "why"),
    [
        ("sys.exit('no licence')", 300, "while it started: ended with the exit status 1: no lice"),
        ("time.sleep(60)", 0.5, "while it started: took more than 0.5 s"),
        ("sys.stdin.readline(); print('{}')", 300, "must report that it is ready"),
        (
            "sys.stdin.readline(); print(json.dumps({'failed': 'no seats'}))",
            300,
            "not ready: 'no seats'",
        ),
    ],
)
def test_a_program_that_does_not_start_says_why(raw, script, start_s, why):
    failure = raw(script, start=start_s).evaluate(batch("a")).failures[0]
    assert (failure.kind, why in failure.reason) == ("raised", True)


def test_a_program_that_is_not_there_is_named():
    worker = Worker(run=["no-such-simulator"], metrics={"power": "W"})
    failure = worker.evaluate(batch("a")).failures[0]
    assert "'no-such-simulator' cannot be started: " in failure.reason


def test_only_what_is_read_is_shown(raw):
    shown = "    print(json.dumps({'id': told['id'], 'metrics': {'power': len(told['design'])}}))"
    assert raw(READY + EVERY + shown, reads=["rows"]).evaluate(batch("a")).columns["power"] == [1]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, "either a program or a Python file"),
        ({"run": ["a"], "worker": "b.py"}, "either a program or a Python file"),
        ({"run": []}, "run is empty"),
        ({"run": ["a"], "python": "b"}, "python runs a worker"),
        ({"worker": 3}, "worker is 3"),
        ({"run": ["a"], "options": [1]}, r"options is \[1\]"),
        ({"run": ["a"], "timeout": "3 m"}, "timeout"),
    ],
)
def test_an_option_that_cannot_be_is_told(options, why):
    with pytest.raises((PluginError, SpecError), match=why):
        Worker(metrics={"power": "W"}, **options)
