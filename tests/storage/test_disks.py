"""A disk that is full or read-only, a file that is locked, a clock that steps back."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from threading import Barrier

import pytest

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.errors import StorageError
from dse.storage.sql.database_storage import SqlStorage

DESIGNS = [Design({"tp": tp, "name": "a design that takes some room"}) for tp in range(100)]
NOBODY = 65534
DONE = Outcome(state=State.DONE, metrics={"energy": 1.5})

WRITER = """
import resource, sys
from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.errors import StorageError
from dse.storage.sql.database_storage import SqlStorage

if len(sys.argv) > 2:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]),) * 2)
designs = [Design({"tp": tp, "name": "a design that takes some room"}) for tp in range(20)]
storage = SqlStorage(sys.argv[1])
storage.create("edge", {})
try:
    while True:
        numbers = [trial.number for trial in storage.add("edge", designs)]
        print("added", *numbers, flush=True)
        storage.finish("edge", {n: Outcome(state=State.DONE) for n in numbers})
        print("finished", *numbers, flush=True)
except StorageError as error:
    print("refused", error.problem, error.hint, sep="|", flush=True)
"""


def said(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    return done.stdout.splitlines()


def promised(lines: list[str], verb: str) -> list[int]:
    return [int(word) for line in lines if line.startswith(verb) for word in line.split()[1:]]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("no small disk: this user may not mount one")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.fixture
def closed_folder() -> Iterator[Path]:
    """A folder with a study file, both read-only; root reads as somebody who may write nowhere."""
    folder = Path(tempfile.mkdtemp())
    with closing(SqlStorage(f"sqlite:///{folder}/study.db")) as storage:
        storage.create("edge", {"seed": 7})
    (folder / "study.db").chmod(0o444)
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    yield folder
    if root:
        os.seteuid(0)
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/study.db"


@pytest.fixture
def storage(url: str) -> Iterator[SqlStorage]:
    storage = SqlStorage(url)
    storage.create("edge", {"seed": 7})
    storage.add("edge", DESIGNS)
    yield storage
    storage.close()


@pytest.mark.slow
def test_a_full_disk_is_told_and_keeps_what_was_acknowledged(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(200_000))
    url = f"sqlite:///{small_disk}/study.db"
    lines = said([sys.executable, "-c", WRITER, url])
    assert lines[-1].split("|")[0] == "refused"
    assert "make room on the disk" in lines[-1]
    ballast.unlink()
    with closing(SqlStorage(url)) as again:
        added = [trial.number for trial in again.trials("edge")]
        assert set(promised(lines, "added")) <= set(added)
        assert again.finished_order("edge") == promised(lines, "finished")
        assert [trial.number for trial in again.add("edge", DESIGNS[:1])] == [len(added)]


@pytest.mark.slow
def test_a_file_that_may_not_grow_is_told_and_keeps_what_was_acknowledged(url: str) -> None:
    lines = said([sys.executable, "-c", WRITER, url, "600000"])
    assert lines[-1].split("|")[0] == "refused"
    with closing(SqlStorage(url)) as again:
        added = [trial.number for trial in again.trials("edge")]
        assert set(promised(lines, "added")) <= set(added)
        assert set(promised(lines, "finished")) <= set(again.finished_order("edge"))


@pytest.mark.parametrize("name", ["study.db", "new.db"])
def test_a_folder_that_is_read_only_is_told(closed_folder: Path, name: str) -> None:
    with pytest.raises(StorageError) as caught:
        SqlStorage(f"sqlite:///{closed_folder}/{name}")
    assert caught.value.where == str(closed_folder / name)
    assert "write" in caught.value.hint


def test_a_file_that_another_program_keeps_is_told_after_a_while(
    url: str, storage: SqlStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dse.storage.sql.database.BUSY_TIMEOUT_S", 0.2)
    with closing(SqlStorage(url)) as impatient, storage._database.writing():
        with pytest.raises(StorageError, match="locked") as caught:
            impatient.add("edge", DESIGNS)
        assert "another program" in caught.value.hint
        assert len(impatient.trials("edge")) == len(DESIGNS)
    assert len(storage.trials("edge")) == len(DESIGNS)


def test_many_that_open_a_new_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    together = Barrier(4, timeout=60)  # the others end too where one fails

    def open_each(_: int) -> None:
        for number in range(60):
            together.wait()
            SqlStorage(f"sqlite:///{tmp_path}/{number}.db").close()

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(open_each, range(4))) == [None] * 4


def test_a_clock_that_steps_back_changes_nothing(
    storage: SqlStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    back = count(int(time.time()), -3600)
    monkeypatch.setattr(time, "time", lambda: float(next(back)))
    storage.finish("edge", {1: DONE})
    storage.finish("edge", {0: DONE})
    storage.add("edge", DESIGNS[:1])
    assert storage.finished_order("edge") == [1, 0]
    assert [trial.number for trial in storage.trials("edge")] == list(range(101))
