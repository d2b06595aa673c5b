"""``dse run --executor ray`` as a user meets it: trials, no noise, and nothing left behind."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

import pytest

from dse.system.process_tree import descendants, wait_until_gone
from dse.testing.executor_contract import LONG_S, is_alive

pytestmark = pytest.mark.slow

SPACE = "space: toy\nparameters:\n  x: {ordinal: [1, 2, 3, 4, 5, 6]}\n"
STUDY = """
study: toy
space: space.yaml
evaluators:
  board:
    use: command
    run: [PYTHON, -S, -E, board.py]
    metrics: {time: ms, loss: ''}
    resources: {cpu: 1, memory: 64 MiB}
objectives:
  - minimize: board.time
  - minimize: board.loss
reference: {board.time: 1 s, board.loss: 100}
optimizer: exhaustive
"""
BOARD = """
import json, os, sys, time
x = json.load(sys.stdin)["x"]
open("begun", "a").write(f"{x}\\n")
time.sleep(float(os.environ.get("BOARD_S", "0")))
open("ended", "a").write(f"{x}\\n")
if x == 3: os._exit(7)
print(json.dumps({"time": x, "loss": 9.0 - x}))
"""
ENVIRONMENT = {k: v for k, v in os.environ.items() if k not in ("DSE_STORAGE", "RAY_ADDRESS")}
COMMAND = [sys.executable, "-m", "dse", "run", "study.yaml", "--executor", "ray", "--workers", "2"]


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "board.py").write_text(BOARD)
    (tmp_path / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
    return tmp_path


def test_a_study_runs_on_a_ray_of_its_own_which_says_nothing(folder):
    done = subprocess.run(
        COMMAND,
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "raylet" not in done.stdout + done.stderr
    assert "Ray" not in done.stdout + done.stderr
    told = subprocess.run(
        [sys.executable, "-m", "dse", "trials", "toy", "--format", "json"],
        cwd=folder,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    trials = json.loads(told.stdout)["trials"]
    assert {t["design"]["x"]: t["state"] for t in trials} == {
        **dict.fromkeys((1, 2, 4, 5, 6), "done"),
        3: "failed",
    }


@pytest.fixture
def temporary():
    with tempfile.TemporaryDirectory(prefix="d-") as name:  # the names of sockets must be short
        yield Path(name)


@pytest.mark.parametrize(
    ("kill", "how", "code"),
    [
        pytest.param(os.killpg, signal.SIGINT, 3, id="Ctrl-C"),
        pytest.param(
            os.kill, signal.SIGKILL, -signal.SIGKILL, id="SIGKILL", marks=pytest.mark.proof
        ),
    ],
)
def test_a_study_that_is_ended_leaves_nothing_behind(folder, temporary, kill, how, code):
    driver = subprocess.Popen(
        COMMAND,
        cwd=folder,
        env={**ENVIRONMENT, "BOARD_S": "600", "TMPDIR": str(temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    pids = started(folder / "begun", driver.pid)
    kill(driver.pid, how)
    assert driver.wait(LONG_S) == code
    wait_until_gone(pids, LONG_S)
    wait_until_empty(temporary)
    assert [pid for pid in pids if is_alive(pid)] == []
    assert list(temporary.iterdir()) == []


def wait_until_empty(temporary: Path) -> None:
    until = time.monotonic() + LONG_S
    while any(temporary.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)


def started(path: Path, pid: int) -> list[int]:
    """The descendants of a driver whose evaluator runs."""
    until = time.monotonic() + 3 * LONG_S
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    return descendants(pid)


@pytest.mark.proof
@pytest.mark.parametrize(("stopped", "code"), [(1, 0), (3, 2)])
def test_a_ray_that_hangs_is_started_again_and_then_given_up(folder, stopped, code):
    study = folder / "study.yaml"
    study.write_text(f"{study.read_text()}executor: {{use: ray, workers: 2, start_s: 15}}\n")
    driver = subprocess.Popen(
        [sys.executable, "-m", "dse", "run", "study.yaml", "--quiet"],
        cwd=folder,
        env=ENVIRONMENT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    seen = set[int]()
    while len(seen) < stopped:
        seen.add(new := process_of(driver.pid, "/raylet", seen))
        os.kill(new, signal.SIGSTOP)
    _, said = driver.communicate(timeout=5 * LONG_S)
    words = "error: Ray cannot be started here: the start timed out: the raylet took more than 5 s"
    assert driver.returncode == code, said
    assert (words in said, "start_s: 30" in said) == (code == 2, code == 2)


def process_of(pid: int, name: str, known: Collection[int] = ()) -> int:
    """The process of Ray whose program ends so, as soon as there is one that is not known."""
    until = time.monotonic() + 3 * LONG_S
    while time.monotonic() < until:
        for one in set(descendants(pid)).difference(known):
            with suppress(OSError):
                program, *_ = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
                if program.endswith(name.encode()):
                    return one
        time.sleep(0.01)
    raise AssertionError(f"no {name} was started")


@pytest.mark.proof
@pytest.mark.parametrize(("victim", "codes"), [("/raylet", {2}), ("/gcs_server", {0, 2})])
def test_a_ray_that_loses_a_server_loses_no_trial_and_doubles_each_once(folder, victim, codes):
    driver = subprocess.Popen(
        [*COMMAND, "--quiet"],
        cwd=folder,
        env={**ENVIRONMENT, "BOARD_S": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    until = time.monotonic() + 3 * LONG_S
    while not (folder / "ended").exists():
        assert time.monotonic() < until
        time.sleep(0.05)
    os.kill(process_of(driver.pid, victim), signal.SIGKILL)
    out, said = driver.communicate(timeout=5 * LONG_S)
    assert driver.returncode in codes
    assert said.count("error: the ") == (driver.returncode == 2)
    resumed = subprocess.run(
        [sys.executable, "-m", "dse", "resume", "toy", "--quiet", "--executor", "serial"],
        cwd=folder,
        env=ENVIRONMENT,
        check=False,
    )
    begun = Counter((folder / "begun").read_text().split())
    assert (out, resumed.returncode) == ("", 0)
    assert set(begun) == set("123456")
    assert max(begun.values()) <= 2
    assert begun.total() <= 6 + 2  # as many as were in flight
