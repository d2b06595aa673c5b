"""What is shown while a program runs a study: a panel where there is a terminal, else nothing."""

import os
import pty
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from dse import Metric, Study, evaluator

PROGRAM = """
import sys
from dse import Metric, Study, evaluator

@evaluator(Metric("time", "us", goal="minimize"), Metric("memory", goal="minimize"))
def kernel(tile: int):
    if sys.argv[2] == "interrupted" and len(study.trials.finished) == 4:
        raise KeyboardInterrupt
    return {"time": 1000 / tile, "memory": tile}

study = Study("tiles", {"tile": (1, 30)}, [kernel], storage="memory://", optimizer="sobol")
try:
    print(study.run(measurements=12, progress={"None": None, "True": True, "False": False}[sys.argv[1]]))
except KeyboardInterrupt:
    print(len(study.trials.finished))
"""


def ran(progress, how="whole", **streams):
    words = [sys.executable, "-c", PROGRAM, str(progress), how]
    environment = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": "100",
        "LINES": "40",
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        timeout=100,
        **streams,
    )


def in_terminal(progress, how="whole"):
    """What the program prints, and what its terminal is sent."""
    ours, theirs = pty.openpty()
    with ThreadPoolExecutor(1) as reading:
        shown = reading.submit(lambda: b"".join(sent(ours)).decode())
        try:
            done = ran(progress, how, stderr=theirs)
        finally:
            os.close(theirs)
        told = shown.result()
    os.close(ours)
    return done.stdout, told


def sent(stream):
    """All that a terminal is sent, piece by piece, until nobody sends any more."""
    with suppress(OSError):  # which says so
        while True:
            yield os.read(stream, 1 << 16)


@pytest.mark.slow
def test_a_terminal_shows_the_panel_and_prints_what_the_program_prints():
    printed, shown = in_terminal(None)
    assert printed == "12 measurements are done\n"
    assert "12/12 measurements" in shown
    assert "tiles" in shown


@pytest.mark.slow
def test_an_interrupt_says_how_to_go_on():
    printed, shown = in_terminal(None, "interrupted")
    assert printed == "4\n"
    assert "interrupted; call run() to continue" in shown


@pytest.mark.slow
def test_a_terminal_stays_as_it_is_where_nothing_is_to_be_shown():
    printed, shown = in_terminal(progress=False)
    assert (printed, shown) == ("12 measurements are done\n", "")


@pytest.mark.slow
@pytest.mark.parametrize(("progress", "lines"), [(None, 0), (False, 0), (True, 1)])
def test_a_file_gets_a_line_only_where_it_is_asked_for(progress, lines):
    done = ran(progress, stderr=subprocess.PIPE)
    assert done.stderr.count("12/12 measurements") == lines
    assert done.stdout == "12 measurements are done\n"


def test_who_asks_is_told_each_trial(capsys):
    kernel = evaluator(Metric("time", goal="minimize"))(lambda tile: {"time": tile})
    study = Study("told", {"tile": (1, 30)}, {"k": kernel}, storage="memory://", optimizer="sobol")
    told = []
    study.run(measurements=5, on_finished=told.append, progress=True)
    assert [trial.number for trial in told] == [0, 1, 2, 3, 4]
    assert "5/5 measurements" in capsys.readouterr().err
