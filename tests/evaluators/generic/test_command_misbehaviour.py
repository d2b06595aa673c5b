"""Programs that crash, hang, flood or leave children behind cost one design and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dse.core.batch import Batch
from dse.core.metric import Failure, Metrics
from dse.system import process_tree
from dse_evaluators.generic.command import Command


def told(script: str, folder: Path, **options: object) -> Metrics:
    path = folder / "program.py"
    path.write_text(script)
    options = {"timeout": 300, **options}
    command = Command(run=[sys.executable, str(path)], metrics={"power": "W"}, **options)
    return command.evaluate(Batch.of([{"rows": 8}]))


def failure(script: str, folder: Path, **options: object) -> Failure:
    return told(script, folder, **options).failures[0]


def gone(pid: int) -> bool:
    """True if the process has ended, if only as a zombie that nobody has reaped yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX"
    except FileNotFoundError:
        return True


def soon(path: Path) -> int:
    """The process id that a file will hold."""
    deadline = time.monotonic() + 300
    while not (path.exists() and path.read_text().endswith("\n")):
        assert time.monotonic() < deadline, f"{path} was never written"
        time.sleep(0.01)
    return int(path.read_text())


def ends(pid: int) -> bool:
    deadline = time.monotonic() + 300
    while not gone(pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


CHILD = """
import os, pathlib, signal, subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
pathlib.Path(__file__).with_name("child").write_text(f"{child.pid}\\n")
"""
"""A grandchild of the test that holds the pipes open for ten minutes."""


DAEMON = """
import os, pathlib, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for end in (0, 1, 2):
            os.close(end)
        pathlib.Path(__file__).with_name("child").write_text(f"{os.getpid()}\\n")
        time.sleep(600)
    os._exit(0)
os.wait()
while not pathlib.Path(__file__).with_name("child").exists():
    time.sleep(0.01)
"""
"""A process in a session of its own whose parent has ended."""


def test_a_child_with_a_session_of_its_own_does_not_outlive_the_trial(tmp_path: Path) -> None:
    assert told(DAEMON + "print('{\"power\": 1}')", tmp_path).columns["power"] == [1.0]
    assert ends(soon(tmp_path / "child"))


def test_nor_does_it_outlive_a_timeout(tmp_path: Path) -> None:
    assert failure(DAEMON + "time.sleep(600)", tmp_path, timeout=2).kind == "timeout"
    assert ends(soon(tmp_path / "child"))


@pytest.mark.parametrize(
    "kill", [lambda pid: os.kill(pid, signal.SIGKILL), process_tree.end], ids=["alone", "tree"]
)
def test_nor_does_it_outlive_a_driver_that_is_killed(kill, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(DAEMON + "time.sleep(600)")
    driver = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"""
from dse.core.batch import Batch
from dse_evaluators.generic.command import Command
command = Command(run=[{sys.executable!r}, {str(tmp_path / "program.py")!r}], metrics={{"p": ""}})
command.evaluate(Batch.of([{{"rows": 8}}]))
""",
        ]
    )
    child = soon(tmp_path / "child")
    kill(driver.pid)
    driver.wait()
    assert ends(child)


def test_an_exit_status_is_a_failure_with_the_last_words(tmp_path: Path) -> None:
    seen = failure("import sys; print('no board', file=sys.stderr); sys.exit(7)", tmp_path)
    assert seen == Failure(kind="raised", reason="exit status 7: no board")


def test_an_answer_before_a_failure_does_not_count(tmp_path: Path) -> None:
    seen = failure("import sys; print('{\"power\": 1}'); sys.exit(1)", tmp_path)
    assert seen.kind == "raised"


def test_the_last_words_are_cut_to_two_thousand_characters(tmp_path: Path) -> None:
    seen = failure("import sys; sys.exit('x' * 50_000 + 'the end')", tmp_path)
    assert (len(seen.reason) < 2_100, seen.reason.endswith("the end")) == (True, True)


def test_a_crash_names_the_signal(tmp_path: Path) -> None:
    seen = failure("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", tmp_path)
    assert (seen.kind, seen.reason.startswith("killed by SIGSEGV")) == ("crashed", True)


def test_a_program_that_is_not_there_is_named() -> None:
    command = Command(run=["no-such-bench"], metrics={"power": "W"})
    seen = command.evaluate(Batch.of([{"rows": 8}])).failures[0]
    assert (seen.kind, "No such file" in seen.reason) == ("raised", True)
    assert "no-such-bench" in seen.reason


def test_a_program_that_may_not_be_run_is_named(tmp_path: Path) -> None:
    (tmp_path / "bench").write_text("#!/bin/sh\n")
    command = Command(run=[str(tmp_path / "bench")], metrics={"power": "W"})
    seen = command.evaluate(Batch.of([{"rows": 8}])).failures[0]
    assert (seen.kind, "Permission denied" in seen.reason) == ("raised", True)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    seen = failure("", tmp_path, cwd=str(tmp_path / "nowhere"))
    assert (seen.kind, "nowhere" in seen.reason) == ("raised", True)


def test_a_program_that_hangs_is_ended_in_time(tmp_path: Path) -> None:
    seen = failure("import time; time.sleep(600)", tmp_path, timeout="0.5 s")
    assert (seen.kind, "0.5 s" in seen.reason) == ("timeout", True)


@pytest.mark.slow
def test_a_program_may_tidy_up_before_it_is_killed(tmp_path: Path) -> None:
    script = """
import pathlib, signal, sys, time
def tidy(*_):
    pathlib.Path(__file__).with_name("tidy").touch()
    sys.exit("tidied")
signal.signal(signal.SIGTERM, tidy)
time.sleep(600)
"""
    seen = failure(script, tmp_path, timeout=5)
    assert (seen.kind, seen.reason.endswith(": tidied")) == ("timeout", True)
    assert (tmp_path / "tidy").exists()


@pytest.mark.slow
def test_a_program_that_ignores_sigterm_is_killed_after_a_grace(tmp_path: Path) -> None:
    script = CHILD + "signal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)"
    seen = failure(script, tmp_path, timeout=5)
    assert (seen.kind, ends(soon(tmp_path / "child"))) == ("timeout", True)


@pytest.mark.slow
def test_a_timeout_ends_the_programs_children_too(tmp_path: Path) -> None:
    seen = failure(CHILD + "time.sleep(600)", tmp_path, timeout=5)
    assert (seen.kind, ends(soon(tmp_path / "child"))) == ("timeout", True)


def test_children_that_hold_the_pipe_do_not_hold_up_the_answer(tmp_path: Path) -> None:
    got = told(CHILD + "print('{\"power\": 3}', flush=True)", tmp_path)
    assert got.columns["power"].tolist() == [3]
    assert ends(soon(tmp_path / "child"))


def test_a_child_that_left_the_session_does_not_hold_up_the_answer(tmp_path: Path) -> None:
    script = CHILD.replace('600)"]', '600)"], start_new_session=True')
    got = told(script + "print('{\"power\": 3}', flush=True)", tmp_path)
    os.kill(soon(tmp_path / "child"), signal.SIGKILL)
    assert got.columns["power"].tolist() == [3]


@pytest.mark.slow
def test_closing_the_pipes_is_not_ending(tmp_path: Path) -> None:
    script = "import os, time; os.close(1); os.close(2); time.sleep(600)"
    assert failure(script, tmp_path, timeout=0.5).kind == "timeout"


@pytest.mark.slow
@pytest.mark.parametrize("pipe", ["stdout", "stderr"])
def test_a_flood_does_not_eat_memory(tmp_path: Path, pipe: str) -> None:
    """A quarter of a gigabyte passes through a process that may grow by an eighth of that."""
    flood = tmp_path / "flood.py"
    flood.write_text(
        "import sys\n"
        f"for _ in range(256): sys.{pipe}.write('y' * 2**20)\n"
        "print('\\n{\"power\": 3}')\n"
    )
    driver = f"""
import resource
from dse.core.batch import Batch
from dse_evaluators.generic.command import Command
command = Command(run=[{sys.executable!r}, {str(flood)!r}], metrics={{"power": "W"}}, timeout=300)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
got = command.evaluate(Batch.of([{{}}]))
grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
print(got.columns["power"][0], grown_kib < 32 * 1024, got.failures)
"""
    done = subprocess.run(
        [sys.executable, "-c", driver], check=False, capture_output=True, text=True
    )
    assert done.stdout == "3.0 True {}\n", done.stdout + done.stderr


def test_a_program_need_not_read_its_design(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text("print('{\"power\": 3}')")
    command = Command(run=[sys.executable, str(path)], metrics={"power": "W"}, timeout=300)
    got = command.evaluate(Batch.of([{f"parameter_{n}": "x" * 1_000 for n in range(200)}]))
    assert got.columns["power"].tolist() == [3]


DRIVER = """
import sys
from dse.core.batch import Batch
from dse_evaluators.generic.command import Command
command = Command(run=[sys.executable, sys.argv[1]], metrics={"power": "W"}, timeout=600)
command.evaluate(Batch.of([{"rows": 8}]))
"""


def driven(folder: Path) -> subprocess.Popen[bytes]:
    program = folder / "program.py"
    program.write_text(
        CHILD + "pathlib.Path(__file__).with_name('own').write_text(f'{os.getpid()}\\n')\n"
        "time.sleep(600)\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", DRIVER, str(program)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_driver_that_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    driver = driven(tmp_path)
    own, child = soon(tmp_path / "own"), soon(tmp_path / "child")
    driver.send_signal(number)
    driver.wait(300)
    assert (ends(own), ends(child)) == (True, True)


def test_no_process_is_left_when_all_went_well(tmp_path: Path) -> None:
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    before = children.read_text()
    told("print('{\"power\": 3}')", tmp_path)
    assert children.read_text() == before
