"""Studies that run while somebody looks on: streams, starting, pausing, designs by hand."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import httpx2 as httpx
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from dse.cli.app import app
from dse.core.trial import Driver, State
from dse.protocols import Storage
from dse.schema.study.budget import Budget
from dse.serve.runners import Runner
from dse.serve.server import application
from dse.storage.memory import MemoryStorage
from dse.study.replay import Replay
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine


def until(asked, wanted, seconds: float = 300.0):
    """The first answer that is wanted."""
    end = time.monotonic() + seconds
    while not wanted(told := asked()):
        assert time.monotonic() < end, told
        time.sleep(0.2)
    return told


@contextmanager
def looked_at(storage: Storage, gate, name: str):
    with TestClient(application(storage, gate), base_url="http://127.0.0.1") as client:
        yield lambda path="": client.get(f"/api/studies/{name}{path}").json(), client


def test_a_design_by_hand_is_run_by_whoever_goes_on_and_the_rest_is_proved(
    folder, local, writer
) -> None:
    storage = MemoryStorage()
    StudyEngine.open(folder / "toy.yaml", storage=storage).run(budget=Budget(trials=20))
    values = {"a": 32, "b": 16, "mode": "fast", "bits": 4}
    with looked_at(storage, local, "toy") as (told, client):
        body = {"values": values, "action": "add"}
        answer = client.post("/api/studies/toy/designs", json=body, headers=writer).json()
        waiting = until(told, lambda now: now["trials"] == 21)
    StudyEngine.load("toy", storage).run(budget=Budget(trials=30))
    trial = storage.trials("toy")[20]
    proof = Replay(StudyEngine.load("toy", storage)).proof()
    assert (answer["added"], waiting["finished"], waiting["state"]) == (20, 20, "paused")
    assert (dict(trial.design), trial.state) == (values, State.DONE)
    assert (proof.mismatch, proof.trials, proof.unknown) == (None, 29, 1)


GREY = """
study: grey
space: small.yaml
evaluators:
  board: {use: command, run: [echo, '{"loss": 2}'], metrics: {loss: ''}, reads: [a]}
  chip: {use: expression, metrics: {time: {formula: 1000 / (a * b)}}}
objectives: [{minimize: board.loss}, {minimize: chip.time}]
optimizer: grey-box
executor: serial
budget: {measurements: 40}
"""


def test_a_study_that_asked_every_design_is_complete_though_its_budget_is_not_used(
    local, tmp_path
) -> None:
    space = "{space: small, parameters: {a: {integer: [1, 3]}, b: {integer: [1, 2]}}}"
    (tmp_path / "small.yaml").write_text(space)
    (tmp_path / "grey.yaml").write_text(GREY)
    storage = MemoryStorage()
    study = StudyEngine.open(tmp_path / "grey.yaml", storage=storage)
    study.run(budget=Budget(measurements=1))
    with looked_at(storage, local, "grey") as (told, _):
        before = told()["state"]
    study.run()
    with looked_at(storage, local, "grey") as (told, _):
        after = told()
    assert before == "paused"
    assert (after["state"], after["trials"], after["of"]) == ("complete", 6, 40)


def test_a_study_that_was_given_a_larger_budget_is_not_said_to_be_beyond_it(folder, local) -> None:
    storage = MemoryStorage()
    StudyEngine.open(folder / "toy.yaml", storage=storage).run(budget=Budget(trials=62))
    with looked_at(storage, local, "toy") as (told, client):
        state, pages = told(), [client.get(path).text for path in ("/", "/studies/toy")]
    assert (state["done"], state["of"], state["state"]) == (62, 60, "complete")
    assert ["62 of 60" in page for page in pages] == [False, False]
    assert ["62 (its budget: 60)" in page for page in pages] == [True, True]


def test_a_driver_of_elsewhere_is_seen_and_cannot_be_paused_here(folder, local, writer) -> None:
    storage = MemoryStorage()
    StudyEngine.open(folder / "toy.yaml", storage=storage)
    storage.enter("toy", Driver(host="elsewhere 1 2", pid=77))
    with looked_at(storage, local, "toy") as (told, client):
        (driver,) = told()["drivers"]
        answer = client.post("/api/studies/toy/pause", headers=writer)
    assert (driver["pid"], driver["own"]) == (77, False)
    assert answer.status_code == 409
    assert "process 77 of elsewhere" in answer.json()["error"]


def test_a_study_that_is_begun_or_forgotten_meanwhile_is_seen(folder, local, tmp_path) -> None:
    url = f"sqlite:///{tmp_path}/late.db"
    with looked_at(url, local, "toy") as (told, client):
        before = client.get("/api/studies").json()["studies"]
        StudyEngine.open(folder / "toy.yaml", storage=url)
        begun = until(told, lambda now: "name" in now)
        with closing(opened_storage(url)) as storage:
            storage.delete("toy")
        gone = until(told, lambda now: "error" in now)
    assert before == []
    assert begun["trials"] == 0
    assert gone["error"] == "there is no study 'toy'"


def test_a_stream_tells_a_study_as_it_grows(folder, local, server_at) -> None:
    storage = MemoryStorage()
    study = StudyEngine.open(folder / "toy.yaml", storage=storage)
    counts: list[int] = []
    with (
        server_at(storage, local) as address,
        httpx.stream("GET", f"{address}/api/studies/toy/events", timeout=300) as stream,
    ):
        lines = stream.iter_lines()
        first = next(line for line in lines if line.startswith("data:"))
        thread = threading.Thread(target=study.run)
        thread.start()
        while not counts or counts[-1] < 60:
            line = next(line for line in lines if line.startswith("data:"))
            counts.append(json.loads(line.removeprefix("data:"))["finished"])
        thread.join()
    assert stream.headers["content-type"].startswith("text/event-stream")
    assert json.loads(first.removeprefix("data:"))["finished"] == 0
    assert counts == sorted(counts)


@pytest.mark.slow
def test_a_design_is_evaluated_apart_and_nothing_is_stored(folder, local, writer) -> None:
    storage = MemoryStorage()
    StudyEngine.open(folder / "toy.yaml", storage=storage)
    body = {"values": {"a": 32, "b": 16, "mode": "slow"}, "action": "evaluate"}
    with looked_at(storage, local, "toy") as (_, client):
        told = client.post("/api/studies/toy/designs", json=body, headers=writer).json()
    assert told["outcome"]["metrics"] == {"chip.area": 515.0, "chip.time": 1000 / 512}
    assert told["outcome"]["feasible"] is True
    assert len(storage.trials("toy")) == 0


@pytest.mark.slow
def test_a_study_is_started_by_one_of_many_paused_and_gone_on_with(
    folder, local, writer, tmp_path
) -> None:
    url = f"sqlite:///{tmp_path}/run.db"
    StudyEngine.open(folder / "measured.yaml", storage=url)
    with looked_at(url, local, "measured") as (told, client), ThreadPoolExecutor(8) as browsers:

        def asked(path, **body):
            answer = client.post(f"/api/studies/measured/{path}", json=body, headers=writer)
            return answer.status_code

        assert sorted(browsers.map(asked, ["start"] * 8)) == [202] + 7 * [409]
        running = until(told, lambda now: now["finished"] >= 2 and now["drivers"])
        assert 202 in [*browsers.map(asked, ["pause"] * 8)]
        paused = until(told, lambda now: now["state"] == "paused")
        assert asked("start", measurements=300) == 202
        until(told, lambda now: now["finished"] > paused["finished"])
        log = told("/trials/0")["reports"]
    assert running["drivers"][0]["own"]
    assert (paused["counts"].get("running", 0), paused["last_words"]) == (0, "")
    assert log[0]["step"] == 1
    with closing(opened_storage(url)) as storage:  # the server has ended, and paused it again
        assert all(driver.left for driver in storage.drivers("measured"))
        assert storage.trials("measured").counts.get(State.RUNNING, 0) == 0
        assert Replay(StudyEngine.load("measured", storage)).proof().whole


def test_who_is_interrupted_before_it_could_listen_has_nothing_to_say(tmp_path) -> None:
    log, words = tmp_path / "log", [sys.executable, "-c", "print('up', flush=True); input()"]
    with (
        log.open("wb") as file,
        subprocess.Popen(words, stdin=subprocess.PIPE, stdout=file, stderr=file) as process,
    ):
        runner = Runner(process=process, log=log)
        until(log.read_text, lambda said: "up" in said)
        runner.stop()
        process.wait(300)
    assert "KeyboardInterrupt" in log.read_text()
    assert runner.last_words == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 0), (signal.SIGHUP, -signal.SIGHUP)]
)
def test_the_command_says_where_to_look_and_ends_in_peace(
    folder, tmp_path, number: int, status: int
) -> None:
    url = f"sqlite:///{tmp_path}/said.db"
    StudyEngine.open(folder / "measured.yaml", storage=url)
    words = [sys.executable, "-m", "dse", "serve", "--storage", url, "--port", "0"]
    environment = {**os.environ, "DSE_TOKEN": "chosen-by-the-user"}
    process = subprocess.Popen(words, env=environment, stderr=subprocess.PIPE, text=True)
    with process, process.stderr as said:
        address, _, token = said.readline().removeprefix("look at ").strip().partition("/#token=")
        studies = httpx.get(f"{address}/api/studies", timeout=300).json()["studies"]
        headers = {"authorization": f"Bearer {token}"}
        httpx.post(f"{address}/api/studies/measured/start", json={}, headers=headers, timeout=300)
        until(lambda: httpx.get(f"{address}/api/studies/measured", timeout=300).json(), drives)
        process.send_signal(number)
        rest = said.read()
    assert token == "chosen-by-the-user"
    assert [row["name"] for row in studies] == ["measured"]
    assert (process.returncode, "Traceback" in rest) == (status, False)
    with closing(opened_storage(url)) as storage:
        assert [driver.left for driver in storage.drivers("measured")] == [True]


def drives(now: dict) -> bool:
    """True once a process runs the study."""
    return bool(now["drivers"])


@pytest.mark.parametrize("words", [["--token", "short"], ["--port", "99999"]])
def test_a_command_that_would_not_be_safe_or_cannot_be_is_refused(words) -> None:
    answer = CliRunner().invoke(app, ["serve", *words])
    assert answer.exit_code != 0
