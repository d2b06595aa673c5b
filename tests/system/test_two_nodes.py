"""Ray nodes started as ``docs/cluster.md`` says; one is killed, and the study loses nothing."""

import json
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dse.system.process_tree import end

pytestmark = pytest.mark.slow

SPACE = "space: toy\nparameters:\n  x: {ordinal: [1, 2, 3, 4, 5, 6]}\n"
STUDY = """
study: toy
space: space.yaml
evaluators:
  board: {use: command, run: [PYTHON, -S, -E, board.py], metrics: {time: ms, loss: ''}}
objectives:
  - minimize: board.time
  - minimize: board.loss
reference: {board.time: 1 s, board.loss: 100}
optimizer: exhaustive
executor: {use: ray, workers: 2}
"""
BOARD = """
import json, os, sys, time
x = json.load(sys.stdin)["x"]
if "SECOND_NODE" in os.environ or ("DOOMED" in os.environ and x == 4):
    open("begun_in_vain", "w").close()
    time.sleep(600)
while "IN_COMPANY" in os.environ and not os.path.exists("begun_in_vain"):
    time.sleep(0.05)  # else this node could have done all before the other is up
print(json.dumps({"time": x, "loss": 9.0 - x}))
"""
START_S = 180.0
"""More than a node takes to start on a busy machine."""

GONE = (
    r"error: the head of the Ray cluster \S+:\d+ is gone: [^\n]+\n"
    r"  hint: [^\n]+ 'dse resume' continues the study\n"
)
"""All that a user sees of it."""

RAY = str(Path(sys.executable).with_name("ray"))
SOON_MISSED = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "1000",
    "RAY_health_check_failure_threshold": "2",
}
"""A killed node is known to be dead after seconds and not after half a minute."""

SMALL = ["--num-cpus=1", "--object-store-memory=100000000", "--disable-usage-stats", "--block"]


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "board.py").write_text(BOARD)
    (tmp_path / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
    return tmp_path


@pytest.fixture
def environment():
    named = {k: v for k, v in os.environ.items() if k not in ("DSE_STORAGE", "RAY_ADDRESS")}
    token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    return {**named, **token, **SOON_MISSED}


@pytest.fixture
def start(folder):
    """Starts a node and waits until it is up."""
    nodes = []
    sockets = tempfile.mkdtemp(prefix="dse-two-")  # the names of sockets must be short

    def started(name, *words, environment):
        log = folder / f"{name}.log"
        words = [*words, f"--temp-dir={sockets}"] if "--head" in words else words
        with log.open("w") as file:
            command = [RAY, "start", *words, *SMALL]
            node = subprocess.Popen(
                command, env=environment, stdout=file, stderr=file, start_new_session=True
            )
        nodes.append(node)
        wait_for(lambda: "--block" in log.read_text() or node.poll() is not None)
        assert node.poll() is None, log.read_text()
        return node

    yield started
    for node in nodes:
        end(node.pid)
        node.wait()
    shutil.rmtree(sockets, ignore_errors=True)


def wait_for(there):
    until = time.monotonic() + START_S
    while not there():
        assert time.monotonic() < until
        time.sleep(0.05)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def test_a_study_on_two_nodes_survives_the_loss_of_one(folder, environment, start):
    _, address = head(start, "first", "", {**environment, "IN_COMPANY": "1"})
    second = start(
        "second", f"--address={address}", environment={**environment, "SECOND_NODE": "1"}
    )
    driver = begun(folder, {**environment, "RAY_ADDRESS": address}, "run", "study.yaml")
    wait_for((folder / "begun_in_vain").exists)
    end(second.pid)
    told = "".join(driver.communicate(timeout=START_S))
    assert driver.returncode == 0, told
    assert "raylet" not in told
    assert states(folder, environment) == dict.fromkeys(range(1, 7), "done")


@pytest.mark.proof
@pytest.mark.parametrize("door", ["", "ray://"])
def test_a_study_whose_head_is_lost_ends_with_one_error_and_goes_on_with_another(
    folder, environment, start, door
):
    first, address = head(start, "first", door, {**environment, "DOOMED": "1"})
    words = ["run", "study.yaml", "--quiet"]
    driver = begun(folder, {**environment, "RAY_ADDRESS": address}, *words)
    wait_for((folder / "begun_in_vain").exists)
    stored = [trial for trial in rows(folder, environment) if trial["state"] == "done"]
    end(first.pid)
    out, told = driver.communicate(timeout=START_S)
    assert (driver.returncode, out) == (2, "")
    assert re.fullmatch(GONE, told)
    kept = rows(folder, environment)
    assert [trial for trial in kept if trial["state"] == "done"] == stored
    _, address = head(start, "second", door, environment)
    again = begun(folder, {**environment, "RAY_ADDRESS": address}, "resume", "toy")
    told = "".join(again.communicate(timeout=START_S))
    assert again.returncode == 0, told
    assert states(folder, environment) == dict.fromkeys(range(1, 7), "done")
    assert [t for t in rows(folder, environment) if t in stored] == stored
    assert [trial["design"]["x"] for trial in stored] == [1, 2, 3]


def head(start, name, door, environment) -> tuple[subprocess.Popen, str]:
    """The first node of a cluster, and the address by which it is joined."""
    port, client = free_port(), free_port()
    ports = [f"--port={port}", f"--ray-client-server-port={client}"]
    node = start(name, "--head", *ports, "--include-dashboard=false", environment=environment)
    return node, f"{door}127.0.0.1:{client if door else port}"


def begun(folder, environment, *words) -> subprocess.Popen:
    """The command, under way."""
    return subprocess.Popen(
        [sys.executable, "-m", "dse", *words],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def rows(folder, environment) -> list[dict]:
    """The trials as the command tells them."""
    asked = begun(folder, environment, "trials", "toy", "--format", "json")
    said, told = asked.communicate(timeout=START_S)
    assert asked.returncode == 0, told
    return json.loads(said)["trials"]


def states(folder, environment) -> dict[int, str]:
    """The state of each design."""
    return {trial["design"]["x"]: trial["state"] for trial in rows(folder, environment)}
