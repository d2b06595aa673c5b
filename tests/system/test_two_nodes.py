"""Two Ray nodes started as ``docs/cluster.md`` says; one is killed, and the study loses nothing."""

import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dse.executors.process_tree import end

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
if "SECOND_NODE" in os.environ:
    open("on_second_node", "w").close()
    time.sleep(600)
print(json.dumps({"time": x, "loss": 9.0 - x}))
"""
START_S = 180.0
"""More than a node takes to start on a busy machine."""

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
    port, client = free_port(), free_port()
    ports = [f"--port={port}", f"--ray-client-server-port={client}"]
    start("first", "--head", *ports, "--include-dashboard=false", environment=environment)
    address = f"127.0.0.1:{port}"
    second = start(
        "second", f"--address={address}", environment={**environment, "SECOND_NODE": "1"}
    )
    driver = subprocess.Popen(
        [sys.executable, "-m", "dse", "run", "study.yaml"],
        cwd=folder,
        env={**environment, "RAY_ADDRESS": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    wait_for((folder / "on_second_node").exists)
    end(second.pid)
    told = "".join(driver.communicate(timeout=START_S))
    assert driver.returncode == 0, told
    assert "raylet" not in told
    rows = subprocess.run(
        [sys.executable, "-m", "dse", "trials", "toy", "--format", "json"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=START_S,
        check=False,
    )
    trials = json.loads(rows.stdout)["trials"]
    assert sorted((t["design"]["x"], t["state"]) for t in trials) == [
        (x, "done") for x in range(1, 7)
    ]
