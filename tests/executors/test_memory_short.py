"""What the kernel ends for want of memory is told from what crashed."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dse.system.process_guard import count_memory_kills

GROUPS = Path("/sys/fs/cgroup/memory")
LIMIT_BYTES = 400 << 20

DRIVER = """
import os, sys
from pathlib import Path
Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
from dse.core.trial import Outcome, State
from dse.executors.processes import Processes
from dse.protocols import Task
from dse.core.design import Design

def work(tasks):
    held = [bytearray(1 << 20) for _ in range(tasks[0].design["mebibytes"])]
    return [Outcome(state=State.DONE) for _ in tasks]

if __name__ == "__main__":
    executor = Processes(work, workers=1)
    for number, mebibytes in enumerate([1, 2000]):
        executor.submit(Task(number=number, design=Design({"mebibytes": mebibytes})))
        (outcome,) = executor.collect().values()
        print(outcome.failure.kind if outcome.failure else outcome.state.value)
    executor.close()
"""


@pytest.fixture
def narrow() -> Iterator[Path]:
    """A control group in which 400 MiB are all there is."""
    group = GROUPS / f"dse-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(LIMIT_BYTES))
    except OSError as error:
        pytest.skip(f"no control group of memory can be made here: {error}")
    yield group
    removed(group)


def removed(group: Path) -> None:
    """The group, taken away as soon as its last process is gone from the kernel's books."""
    until = time.monotonic() + 300
    while group.exists():
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)


@pytest.mark.slow
def test_a_worker_that_the_kernel_ends_for_want_of_memory_ran_out_of_memory(tmp_path, narrow):
    (tmp_path / "driver.py").write_text(DRIVER)
    done = subprocess.run(
        [sys.executable, tmp_path / "driver.py", narrow],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.split() == ["done", "memory"], done.stderr


def test_the_count_of_such_ends_is_there_or_nothing():
    assert count_memory_kills() >= 0
