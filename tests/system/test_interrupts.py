"""Ctrl-C, SIGTERM, SIGHUP and readers that leave: commands end with a line and their status."""

import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from dse.cli import interrupts
from dse.core.design import Design
from dse.study.storage_access import opened_storage
from dse.study.study_engine import StudyEngine

SPACE = "{space: toy, parameters: {a: {integer: [1, 64]}, b: {integer: [1, 64]}}}"
STUDY = """
study: toy
space: space.yaml
evaluators:
  board: {use: command, run: [sh, board.sh], metrics: {time: s, loss: ''}, reads: [a, b]}
objectives: [{minimize: board.time}, {minimize: board.loss}]
optimizer: random
executor: EXECUTOR
budget: {measurements: 400}
"""
BOARD = 'sleep 0.05; echo \'{"time": 1, "loss": 2}\''
FIRST = (
    "import signal; from dse.cli.interrupts import leave; signal.signal(signal.SIGINT, leave); "
    "print(flush=True); from dse.__main__ import main; main()"
)
"""A command that says when it has executed its own first line: before it, Ctrl-C is Python's."""

GONE = {-signal.SIGINT, interrupts.STATUS}
DSE = Path(sys.executable).with_name("dse")


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "board.sh").write_text(BOARD)
    (tmp_path / "study.yaml").write_text(STUDY.replace("EXECUTOR", "serial"))
    return tmp_path / "study.yaml"


def begin(folder: Path, *words: str | Path, **options) -> subprocess.Popen:
    """A process in a folder, which hears Ctrl-C even where we run in a shell's background."""
    return subprocess.Popen(
        [str(word) for word in words],
        cwd=folder,
        env={**os.environ, "DSE_STORAGE": f"sqlite:///{folder}/study.db", "OMP_NUM_THREADS": "1"},
        start_new_session=True,
        stderr=subprocess.PIPE,
        **{"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, **options},
    )


def trials(folder: Path) -> int:
    with closing(opened_storage(f"sqlite:///{folder}/study.db")) as storage:
        return len(storage.trials("toy")) if "toy" in storage.studies() else 0


def until_measured(folder: Path, process: subprocess.Popen, count: int = 2) -> None:
    end = time.monotonic() + 300
    while not (folder / "study.db").exists() or trials(folder) < count:
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end
        time.sleep(0.05)


@pytest.mark.slow
@pytest.mark.parametrize("after_s", [0.0, 0.1, 0.3, 0.6])
def test_ctrl_c_in_the_first_second_ends_with_a_line(study, after_s: float) -> None:
    with begin(
        study.parent, sys.executable, "-c", FIRST, "run", "study.yaml", "--quiet"
    ) as process:
        assert process.stdout.readline()
        time.sleep(after_s)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    where = f"--storage sqlite:///{study.parent}/study.db"
    assert (process.returncode, said.decode()) in [
        (interrupts.STATUS, "interrupted\n"),
        (3, f"interrupted; what was finished is kept\ngo on with: dse resume toy {where}\n"),
    ]


@pytest.mark.proof
@pytest.mark.parametrize("after_ms", range(0, 1_520, 20))
def test_ctrl_c_at_any_moment_of_the_start_gives_no_traceback_of_ours(study, after_ms) -> None:
    with begin(study.parent, DSE, "run", "study.yaml", "--quiet") as process:
        time.sleep(after_ms / 1000)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    if b"Traceback" in said:  # Python itself was starting: it was not our turn yet
        assert b"dse/cli/app" not in said
    elif process.returncode == 3:
        assert said.startswith(b"interrupted; what was finished is kept\n")
    else:
        assert (process.returncode, said) in {(one, b"interrupted\n" * (one > 0)) for one in GONE}


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_driver_that_is_ended_gives_its_trials_back(study, number: int) -> None:
    with begin(study.parent, sys.executable, "-m", "dse", "run", "study.yaml") as process:
        until_measured(study.parent, process)
        process.send_signal(number)
        _, said = process.communicate(timeout=300)
    with closing(opened_storage(f"sqlite:///{study.parent}/study.db")) as storage:
        drivers, counts = storage.drivers("toy"), storage.trials("toy").counts
    assert (process.returncode, b"Traceback" in said) == (3, False)
    assert [one.left for one in drivers] == [True]
    assert "running" not in {state.value for state, count in counts.items() if count}


@pytest.mark.slow
def test_a_driver_whose_terminal_is_closed_gives_its_trials_back(study) -> None:
    ours, theirs = pty.openpty()
    words = [sys.executable, "-m", "dse", "run", "study.yaml"]
    environment = {**os.environ, "DSE_STORAGE": f"sqlite:///{study.parent}/study.db"}
    held = ["setsid", "--ctty", "--wait", *words]
    process = subprocess.Popen(
        held, cwd=study.parent, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    until_measured(study.parent, process)
    os.close(ours)
    process.wait(timeout=300)
    with closing(opened_storage(f"sqlite:///{study.parent}/study.db")) as storage:
        assert [one.left for one in storage.drivers("toy")] == [True]


@pytest.mark.slow
def test_a_driver_under_nohup_goes_on_when_its_terminal_is_closed(study) -> None:
    words = ["nohup", sys.executable, "-m", "dse", "run", "study.yaml", "--measurements", "6"]
    with begin(study.parent, *words) as process:
        until_measured(study.parent, process)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=300)
    assert (process.returncode, trials(study.parent)) == (0, 6)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a study that has a trial by hand, so that not all of it can be proved."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "space.yaml").write_text(SPACE)
    (folder / "board.sh").write_text(BOARD)
    (folder / "study.yaml").write_text(STUDY.replace("EXECUTOR", "serial").replace("400", "4"))
    study = StudyEngine.open(folder / "study.yaml", storage=f"sqlite:///{folder}/study.db")
    study.run()
    study.storage.add("toy", [Design({"a": 64, "b": 64})])
    return folder


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "status"),
    [
        (["trials", "toy", "--format", "csv"], 0),
        (["verify", "toy"], 1),
        (["studies", "list"], 0),
        (["space", "enumerate", "space.yaml"], 0),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_command_without_a_reader_ends_silently_with_its_status(
    finished: Path, words: list[str], status: int
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    with begin(finished, sys.executable, "-m", "dse", *words, stdout=writing) as process:
        os.close(writing)
        _, said = process.communicate(timeout=300)
    assert (process.returncode, said) == (status, b"")


def import_badly() -> None:
    """Do what C extensions do with an exception that they do not expect."""
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        raise ImportError("numpy.core.multiarray failed to import") from None


def test_an_import_that_turns_an_interrupt_into_an_error_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt), interrupts.interruptible():
        import_badly()


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interrupts.stoppable():
            signal.raise_signal(signal.SIGHUP)
            inside = signal.getsignal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert callable(inside)
    assert signal.getsignal(signal.SIGTERM) != inside


def test_an_interrupt_in_a_callback_comes_again(monkeypatch) -> None:
    monkeypatch.setattr(sys, "unraisablehook", interrupts.hear_again)

    class Forgetful:
        def __del__(self) -> None:
            raise KeyboardInterrupt

    Forgetful()
    with pytest.raises(KeyboardInterrupt):
        time.sleep(300)
