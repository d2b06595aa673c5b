"""Real processes that look at a stranger's study: no child of theirs is ever in the process table."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx2 as httpx
import pytest

from tests.trust.test_pages_start_nothing import LOOKING

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the process table is /proc"),
]
LASTS = "touch CANARY; exec sleep 600 #"
"""What no look at the process table every 20 ms can miss."""


def children(pid: int) -> Iterator[str]:
    """The command lines of all that descends from a process."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield Path(f"/proc/{child}/cmdline").read_text().replace("\0", " ").strip()
                yield from children(int(child))


@contextmanager
def watched(*words: str) -> Iterator[tuple[subprocess.Popen[str], set[str]]]:
    """A process of dse with the set of all command lines that were seen below it."""
    seen: set[str] = set()
    over = threading.Event()
    process = subprocess.Popen(
        [sys.executable, "-m", "dse", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )

    def watch() -> None:
        while not over.is_set():
            seen.update(children(process.pid))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield process, seen
    finally:
        process.terminate()
        process.communicate(timeout=300)
        over.set()
        watcher.join()


@pytest.fixture
def lasting(victim, tmp_path):
    """The stranger's study, whose programs last as long as they are let."""
    text = (tmp_path / "theirs.yaml").read_text()
    canary = victim.folder / "canaries" / "started"
    (tmp_path / "lasting.yaml").write_text(
        text.replace(f"touch {canary}; ", LASTS.replace("CANARY", str(canary)))
    )
    return victim


def test_the_server_has_no_child_while_all_of_its_pages_are_read(lasting):
    with watched("serve", "--port", "0") as (process, seen):
        assert process.stdout is not None
        line = next(line for line in process.stdout if "http://" in line)
        address = "http://" + line.partition("http://")[2].partition("/#")[0]
        for paths in LOOKING.values():
            for path in paths:
                assert httpx.get(address + path, timeout=300).status_code == 200
    assert seen == set()
    assert lasting.left == []


@pytest.mark.parametrize(
    "words", [["check", "lasting.yaml"], ["report", "modelled", "-o", "report.html"]]
)
def test_a_command_that_looks_has_no_child(lasting, words):
    with watched(*words) as (process, seen):
        assert process.wait(timeout=300) == 0
    assert seen == set()
    assert lasting.left == []


def test_the_watch_sees_a_program_that_is_started(lasting):
    with watched("evaluate", "lasting.yaml", "--set", "a=1", "--set", "b=1") as (_, seen):
        until = time.monotonic() + 300
        while not any("sleep 600" in line for line in seen) and time.monotonic() < until:
            time.sleep(0.02)
    assert any("sleep 600" in line for line in seen)
    assert lasting.left == ["started"]
