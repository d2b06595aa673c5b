"""A study that is interrupted or killed leaves no server of an evaluator running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

SERVER = """
import os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"data": [{"id": "tiny"}]}')
    def do_POST(self):
        open(sys.argv[2], "w").write(str(os.getpid()))
        time.sleep(600)

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
STUDY = """
study: left
question: Is a server left?
space: space.yaml
evaluators:
  server: {{use: serving.openai-url, run: [{python}, server.py, "{{port}}", pid]}}
objectives: [{{minimize: server.tpot}}, {{maximize: server.throughput}}]
executor: {executor}
budget: {{measurements: 3}}
"""


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["serial", "{use: processes, workers: 1}"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_study_that_ends_leaves_no_server(tmp_path: Path, number: int, executor: str):
    (tmp_path / "server.py").write_text(SERVER)
    (tmp_path / "space.yaml").write_text("space: load\nparameters: {clients: {integer: [1, 4]}}\n")
    study = STUDY.format(python=sys.executable, executor=executor)
    (tmp_path / "study.yaml").write_text(study)
    command = [sys.executable, "-m", "dse", "run", "study.yaml", "--storage", "sqlite:///a.db"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as driver:
        server = _wait_pid(tmp_path / "pid", driver)
        driver.send_signal(number)
        driver.communicate(timeout=60)
    gone, left = psutil.wait_procs([server], timeout=20)
    assert not left
    assert gone


def _wait_pid(file: Path, driver: subprocess.Popen[bytes]) -> psutil.Process:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and file.read_text():
            return psutil.Process(int(file.read_text()))
        assert driver.poll() is None, driver.stderr.read()
        time.sleep(0.05)
    os.kill(driver.pid, signal.SIGKILL)
    raise AssertionError("the server got no request")
