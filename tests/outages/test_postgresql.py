"""A server that is killed, that stops where it is, and that is replaced behind a pooler."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from dse import Metric, Study, Trial, evaluator
from dse.storage.memory import MemoryStorage
from dse.storage.sql.database_storage import SqlStorage
from dse.study.replay import Replay
from tests.postgresql_servers import USER, OwnServer, find_program, words_as_server

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not find_program("initdb"), reason="PostgreSQL: no initdb here"),
]
needs_pgbouncer = pytest.mark.skipif(
    not shutil.which("pgbouncer", path="/usr/sbin:/usr/bin"), reason="pgbouncer is not installed"
)

SPACE = {"rows": (1, 40), "cols": (1, 40)}
ASKED: dict[str, Any] = {"optimizer": "random", "executor": "serial", "budget": {"trials": 8}}
RUNS: Counter[tuple[int, int]] = Counter()
POOLER = """
[databases]
dse = host={host} user=dse
[pgbouncer]
unix_socket_dir = {folder}
listen_addr =
pidfile = {folder}/pid
logfile = {folder}/log
auth_type = any
pool_mode = transaction
server_login_retry = 1
query_wait_timeout = 1
"""


@evaluator(Metric("time", goal="minimize"), version="1")
def board(rows: int, cols: int) -> dict[str, float]:
    """Count the runs of each design."""
    RUNS[rows, cols] += 1
    return {"time": rows * cols}


def new_folder() -> Path:
    """A short path: those of sockets have at most 107 letters."""
    folder = Path(tempfile.mkdtemp(prefix="dse-"))
    if os.geteuid() == 0:
        shutil.chown(folder, USER, USER)
    return folder


@pytest.fixture
def server() -> Iterator[OwnServer]:
    server = OwnServer(folder=new_folder())
    server.create()
    yield server
    server.kill()
    shutil.rmtree(server.folder)


@pytest.fixture
def standby(server: OwnServer) -> Iterator[OwnServer]:
    """A server that has what the other one has acknowledged, before it is acknowledged."""
    standby = OwnServer(folder=new_folder())
    standby.copy_from(server)
    server.execute("ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
    yield standby
    standby.kill()
    shutil.rmtree(standby.folder)


@pytest.fixture
def pooler() -> Iterator[Path]:
    """The folder of a pooler, and of its socket."""
    folder = new_folder()
    yield folder
    shutil.rmtree(folder)


def check_survives(url: str, deed: Callable[[], None], back: Callable[[], None]) -> list[str]:
    """Run a study; at its third trial the deed is done, and undone from another thread."""
    storage = SqlStorage(url)
    thread = Thread(target=back)
    said: list[str] = []

    def disturb(trial: Trial) -> None:
        if trial.number == 2:
            deed()
            thread.start()

    RUNS.clear()
    study = Study("s", SPACE, [board], storage=storage, **ASKED)
    study.engine.run(on_finished=disturb, on_notice=said.append)
    thread.join()
    runs = dict(RUNS)
    twin = Study("s", SPACE, [board], storage=MemoryStorage(), **ASKED)
    twin.run()
    assert [replace(t, cost_s=0.0) for t in study.trials] == [
        replace(t, cost_s=0.0) for t in twin.trials
    ]
    assert [one.worker for one in storage.asks("s")] == [0] * 8
    assert set(runs.values()) == {1}
    assert Replay(study.engine).proof().whole
    storage.close()
    return said


def test_a_server_that_is_killed_and_comes_back_loses_nothing(server):
    def back() -> None:
        time.sleep(1.0)
        server.start()

    said = check_survives(server.url, server.kill, back)
    assert [text.split(" ")[3] for text in said] == ["away", "back"]


@pytest.mark.parametrize(
    "seconds", [2.0, pytest.param(65.0, marks=pytest.mark.proof)], ids=["short", "a minute"]
)
def test_a_server_that_stops_where_it_is_loses_nothing(server, seconds):
    def back() -> None:
        time.sleep(seconds)
        server.thaw()

    check_survives(server.url, server.freeze, back)


@needs_pgbouncer
def test_a_server_that_is_replaced_behind_a_pooler_in_transaction_mode_loses_nothing(
    server, standby, pooler
):
    file = pooler / "pooler.ini"
    file.write_text(POOLER.format(host=server.folder, folder=pooler))
    process = subprocess.Popen(words_as_server(["/usr/sbin/pgbouncer", "-q", str(file)]))
    while not (pooler / ".s.PGSQL.6432").exists():
        assert process.poll() is None
        time.sleep(0.05)

    def back() -> None:
        time.sleep(2.5)  # the pooler lets a client wait for a second
        standby.promote()
        standby.execute("ALTER SYSTEM RESET ALL", "SELECT pg_reload_conf()")
        file.write_text(POOLER.format(host=standby.folder, folder=pooler))
        process.send_signal(signal.SIGHUP)

    url = f"postgresql+psycopg://dse@/dse?host={pooler}&port=6432"
    try:
        said = check_survives(url, server.kill, back)
    finally:
        process.terminate()
        process.wait()
        server.start()  # for whoever tidies up
    assert [text.split(" ")[3] for text in said] == ["away", "back"]
