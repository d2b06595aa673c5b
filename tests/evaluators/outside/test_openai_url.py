"""Any OpenAI-compatible server, by a small real one: what it does wrong is one failed trial."""

from __future__ import annotations

import sys

import psutil
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError
from dse_evaluators.outside.servers.free_port import find_free_port
from dse_evaluators.outside.servers.llama_cpp import LlamaCpp
from dse_evaluators.outside.servers.openai_url import OpenAiUrl

TRAFFIC = {"requests": 4, "prompt_tokens": 8, "output_tokens": 5}
SERVER = """
import json, os, sys, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
do, pause_s, starts = sys.argv[2], float(sys.argv[3]), sys.argv[4]
with open(starts, "a") as file:
    file.write(f"{os.getpid()}\\n")
if do == "crash":
    sys.exit("CUDA out of memory")
if do == "silent":
    print("loading weights", flush=True)
    time.sleep(600)

class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_): pass
    def do_GET(self):
        self.answer(json.dumps({"data": [{"id": "tiny"}]}).encode())
    def answer(self, body, status=200):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        assert asked["model"] == "tiny"
        if do == "die":
            print("an assertion failed", file=sys.stderr, flush=True)
            os._exit(7)
        if do == "key" and self.headers["Authorization"] != "Bearer right":
            return self.answer(f"wrong key {self.headers['Authorization']}".encode(), 401)
        if do == "garbage":
            return self.answer(b"data: {broken\\n\\n")
        if do == "page":
            return self.answer(b"<html>no model here</html>\\n")
        self.send_response(200)
        self.end_headers()
        for number in range(asked["max_tokens"]):
            time.sleep(600 if do == "hang" and number else pause_s)
            event = {"choices": [{"text": "x"}]}
            self.wfile.write(f"data: {json.dumps(event)}\\n\\n".encode())
            self.wfile.flush()
        self.wfile.write(b"data: [DONE]\\n\\n")

ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""


@pytest.fixture
def make(tmp_path):
    (tmp_path / "server.py").write_text(SERVER)
    made = []

    def build(do="{do}", pause="{pause}", **options):
        run = [
            sys.executable,
            str(tmp_path / "server.py"),
            "{port}",
            do,
            pause,
            str(tmp_path / "n"),
        ]
        made.append(OpenAiUrl(**{"run": run, "traffic": TRAFFIC, "repeats": 1, **options}))
        return made[-1]

    yield build
    for one in made:
        one.close()
    started = (tmp_path / "n").read_text().split() if (tmp_path / "n").exists() else []
    assert not [pid for pid in started if psutil.pid_exists(int(pid))]


def test_times_are_those_of_the_server_and_a_command_line_is_started_once(make, tmp_path):
    made = make("work")
    assert made.reads == {"pause"}
    designs = [{"pause": p, "clients": c} for c in (1, 4) for p in (0.02, 0.0)]
    metrics = made.evaluate(Batch.of(designs))
    assert not metrics.failures
    assert len((tmp_path / "n").read_text().split()) == 2
    slow = metrics.columns["tpot_p50"][[0, 2]]
    assert (slow >= 0.015).all()  # a client that was late for the first token sees less than .02 s
    assert (slow > metrics.columns["tpot_p50"][[1, 3]]).all()
    # four requests of five tokens of 20 ms last 400 ms for one client, 100 ms for four
    rates = metrics.columns["throughput"]
    assert rates[0] <= 50.0 < rates[2] <= 200.0


@pytest.mark.parametrize(
    ("do", "kind", "words"),
    [
        ("crash", "crashed", "exit status 1: CUDA out of memory"),
        ("silent", "timeout", "not ready after 1 s: loading weights"),
        ("die", "crashed", "exit status 7: an assertion failed"),
        ("garbage", "invalid", "no JSON object"),
        ("page", "invalid", "no stream of events"),
        ("hang", "timeout", "took more than 1 s"),
    ],
)
def test_a_failing_server_is_one_failed_trial_and_the_next_is_measured(make, do, kind, words):
    made = make(pause="0", timeout=1, start=1)
    failure = made.evaluate(Batch.of([{"do": do}])).failures[0]
    assert (failure.kind, words in failure.reason) == (kind, True), failure
    assert not made.evaluate(Batch.of([{"do": "work"}])).failures


def test_a_port_in_use_is_said_before_a_start(make, tmp_path):
    first = make("work", "0")
    assert not first.evaluate(Batch.of([{"clients": 1}])).failures
    url = first._endpoint.url
    again = make("work", "0", url=url)
    assert "already in use" in again.evaluate(Batch.of([{"clients": 1}])).failures[0].reason
    assert len((tmp_path / "n").read_text().split()) == 1
    running = OpenAiUrl(url=f"{url}/v1", traffic=TRAFFIC, repeats=2)
    metrics = running.evaluate(Batch.of([{"clients": 2, "rate": 100.0}]))
    assert not metrics.failures
    assert "memory" not in metrics.columns


def test_a_key_is_sent_and_never_shown(make, monkeypatch):
    made = make("key", "0", api_key_env="SERVER_KEY")
    assert "SERVER_KEY is not set" in made.evaluate(Batch.of([{"clients": 1}])).failures[0].reason
    monkeypatch.setenv("SERVER_KEY", "wrong-4711")
    failure = made.evaluate(Batch.of([{"clients": 1}])).failures[0]
    assert "status 401" in failure.reason
    assert "4711" not in failure.reason + repr(made._endpoint)
    monkeypatch.setenv("SERVER_KEY", "right")
    assert not made.evaluate(Batch.of([{"clients": 1}])).failures


def test_no_server_at_the_url_is_a_failure():
    made = OpenAiUrl(url=f"http://127.0.0.1:{find_free_port()}", traffic=TRAFFIC)
    assert "refused" in made.evaluate(Batch.of([{"clients": 1}])).failures[0].reason


def test_the_server_of_llama_cpp_is_measured_at_its_url():
    pytest.importorskip("xllamacpp")
    shape = {"layers": 1, "width": 64, "heads": 4, "kv_heads": 2, "ffn": 128}
    served = LlamaCpp(model=shape, traffic=TRAFFIC, repeats=1)
    assert not served.evaluate(Batch.of([{"parallel": 2}])).failures
    made = OpenAiUrl(url=served._endpoint.url, traffic=TRAFFIC, repeats=1)
    metrics = made.evaluate(Batch.of([{"clients": 2}]))
    served.close()
    assert not metrics.failures
    assert metrics.columns["throughput"][0] > 0.0
    assert "refused" in made.evaluate(Batch.of([{"clients": 2}])).failures[0].reason


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "neither a url nor a command line"),
        ({"run": ["serve"]}, r"does not name \{port\}"),
        ({"url": "localhost:8000"}, "is no URL"),
        ({"url": "http://me:secret@host"}, "^url holds a credential\n"),
        ({"url": "http://a", "start": 3}, "start has no effect"),
    ],
)
def test_a_bad_option_is_one_clear_error(options, words):
    with pytest.raises(PluginError, match=words) as raised:
        OpenAiUrl(**options)
    assert "secret" not in str(raised.value)
