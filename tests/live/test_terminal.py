"""A study on a real terminal: it is seen to run, and Ctrl-C leaves nothing but words."""

import fcntl
import io
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from rich.console import Console

from dse.services.progress.screen import PanelDisplay, _whole

SPACE = """
space: s
parameters:
  x: {real: [0, 1]}
  y: {real: [0, 1]}
"""

STUDY = """
study: seen
space: space.yaml
evaluators:
  m: {use: command, run: [PYTHON, -S, -E, m.py], metrics: {a: s, b: J}, timeout: 60 s}
objectives:
  - minimize: m.a
  - maximize: m.b
reference: {m.a: 3 s, m.b: -2 J}
executor: serial
optimizer: random
budget: {measurements: 200}
"""

MEASURE = """
import json, sys, time
d = json.loads(sys.stdin.read())
time.sleep(0.05)
print(json.dumps({"a": d["x"] + d["y"], "b": d["x"] - d["y"] ** 2}))
"""

pytestmark = pytest.mark.slow

BRAILLE = re.compile("[\u2801-\u28ff]")
ERASED = "\x1b[2K"


@dataclass
class Seen:
    """What a terminal was sent, and how the command ended."""

    text: str
    code: int


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "space.yaml").write_text(SPACE)
    (tmp_path / "study.yaml").write_text(STUDY.replace("PYTHON", sys.executable))
    (tmp_path / "m.py").write_text(MEASURE)
    return tmp_path


def on_a_terminal(folder: Path, *words: str, until: str = "", size=(30, 90), **changed) -> Seen:
    """Run dse on a terminal of so many rows and columns; Ctrl-C once ``until`` was seen."""
    begun = {**os.environ, "TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "", **changed}
    for name in ("COLUMNS", "LINES", "NO_COLOR", "DSE_STORAGE", "FORCE_COLOR"):
        if name not in changed:
            begun.pop(name, None)
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        modes = termios.tcgetattr(1)
        modes[3] |= termios.NOFLSH  # else Ctrl-C throws away what is drawn and not yet read
        termios.tcsetattr(1, termios.TCSANOW, modes)
        os.execve(sys.executable, [sys.executable, "-m", "dse", *words], begun)
    told, stopped, ends = b"", False, time.monotonic() + 300
    while time.monotonic() < ends:
        if not select.select([screen], [], [], 0.2)[0]:
            continue
        try:
            told += os.read(screen, 1 << 16)
        except OSError:  # the other side has hung up
            break
        if until and not stopped and until in told.decode(errors="ignore"):
            os.write(screen, b"\x03")
            stopped = True
    _, status = os.waitpid(child, 0)
    os.close(screen)
    return Seen(told.decode(errors="replace"), os.waitstatus_to_exitcode(status))


def left(text: str) -> str:
    """What is on the screen at the end, as far as lines are erased from below."""
    shown = [""]
    for piece in re.split(r"(\x1b\[\d*[A-Za-z]|\x1b\[\?25[hl]|\x1b\[[\d;]*m|\r|\n)", text):
        if piece == "\n":
            shown.append("")
        elif piece == "\x1b[1A":
            shown.pop()
        elif piece == ERASED:
            shown[-1] = ""
        elif not piece.startswith(("\x1b", "\r")):
            shown[-1] += piece
    return "\n".join(shown)


def test_a_study_is_drawn_and_ctrl_c_leaves_what_to_do_next(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", until="/200")
    assert seen.code == 3
    assert "measurements" in seen.text
    assert left(seen.text).split("\n") == [
        "interrupted; what was finished is kept",
        "go on with: dse resume seen",
        "",
    ]
    assert seen.text.rindex("\x1b[?25h") > seen.text.rindex("\x1b[?25l")  # the cursor is back


def test_the_front_is_a_scatter_of_braille(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", "--measurements", "30")
    assert seen.code == 0
    panel = left(seen.text)
    assert "30/30 measurements" in panel
    assert "m.a (less is better)" in panel
    assert "m.b (more is better)" in panel
    assert len(BRAILLE.findall(panel)) > 5
    assert re.search(r"\x1b\[1;38;5;\d+m[\u2800-\u28ff]", seen.text)


def test_quiet_says_nothing(folder) -> None:
    assert on_a_terminal(folder, "run", "study.yaml", "--measurements", "3", "-q").text == ""


def test_a_plain_locale_gets_ascii(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", "--measurements", "12", LANG="C")
    panel = left(seen.text).partition("seen: ")[0]
    assert panel.isascii()
    assert "o the front" in panel


def test_without_colours_none_are_sent(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", "--measurements", "12", NO_COLOR="1")
    assert not re.search(r"\x1b\[[\d;]*[34]\d[;m]", seen.text)
    assert "the front" in seen.text


def test_a_dumb_terminal_gets_a_line_at_the_end(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", "--measurements", "3", TERM="dumb")
    assert "\x1b" not in seen.text
    assert seen.text.count("3/3 measurements") == 1


def test_a_narrow_terminal_is_never_overrun(folder) -> None:
    seen = on_a_terminal(folder, "run", "study.yaml", "--measurements", "20", size=(40, 40))
    assert max(map(len, left(seen.text).split("\n"))) <= 40


def test_a_sweep_tells_which_study_of_how_many(folder) -> None:
    words = ["sweep", "study.yaml", "--seeds", "2", "--measurements", "25"]
    seen = on_a_terminal(folder, *words)
    assert "1/2 studies: seen.random.0, 25/25 measurements" in seen.text
    assert "2/2 studies: seen.random.1, 25/25 measurements" in seen.text
    assert "eta" in seen.text


def test_an_interrupt_waits_until_the_panel_is_drawn_whole() -> None:
    """Else as many lines would be erased as were to be drawn, and some of them the user's."""
    done = []

    def drawing() -> None:
        with _whole():
            signal.raise_signal(signal.SIGINT)
            done.append("drawn")

    with pytest.raises(KeyboardInterrupt):
        drawing()
    assert done == ["drawn"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_waits_until_a_line_above_the_panel_is_written_whole() -> None:
    written: list[str] = []

    class Interrupted(io.StringIO):
        def write(self, text: str) -> int:
            signal.raise_signal(signal.SIGINT)
            written.append(text)
            return len(text)

    screen = PanelDisplay(Console(file=Interrupted(), width=80))
    with pytest.raises(KeyboardInterrupt):
        screen.say("auto picked tpe")
    assert "".join(written) == "auto picked tpe\n"


def test_lines_above_the_panel_erase_nothing_else_while_the_panel_grows(monkeypatch) -> None:
    monkeypatch.setattr("dse.services.progress.screen.PER_SECOND", 2_000)
    written = io.StringIO()
    screen = PanelDisplay(
        Console(file=written, width=80, force_terminal=True, _environ={"TERM": "xterm"})
    )

    class Growing:
        line = ""

        def look(self, *, finally_: bool = False) -> None: ...

        def __rich_console__(self, console, options):
            time.sleep(5e-4)  # the other thread draws meanwhile
            yield "\n".join("x" * 10 for _ in range(1 + time.perf_counter_ns() // 1000 % 9))

    screen.show(Growing())
    for number in range(200):
        screen.say(f"line {number}")
    screen.close(wipe=True)
    assert left(written.getvalue()).split("\n") == [*(f"line {n}" for n in range(200)), ""]
