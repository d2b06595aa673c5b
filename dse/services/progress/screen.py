"""Display of a running study: a live panel, a periodic line, or nothing."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.live import Live
from rich.text import Text

from dse.report.text.console import SafeConsole
from dse.services.progress.text_scatter import FAINT

PER_SECOND = 2.0
"""Refresh rate of the panel, in 1/s."""

EVERY_S = 30.0
"""Seconds between two lines on a stream that is not an interactive terminal."""

_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PLAIN_LOCALES = ("C", "POSIX")


class Content(Protocol):
    """Interface of the content of a progress display, as a panel and as one line of text."""

    def look(self, *, finally_: bool = False) -> None:
        """Update the content to the present state of the study.

        With ``finally_``, also update values that take long to compute, for the last display of a
        run.
        """

    @property
    def line(self) -> str:
        """State of the study as one line of text, for displays without a panel."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the state of the study as a panel, by the protocol of the library rich."""


class Screen(Protocol):
    """Interface of progress displays, which show one :class:`Content` at a time."""

    def show(self, content: Content) -> None:
        """Display a content (panel and line) from now on, instead of any earlier content."""

    def tick(self) -> None:
        """Notify the display that a trial has finished; it must return fast."""

    def say(self, text: str) -> None:
        """Print a line that stays on the terminal above the display."""

    def close(self, *, wipe: bool = False) -> None:
        """End the display: leave its last state on the terminal or, with ``wipe``, erase it.

        The method may be called repeatedly.
        """


class HiddenDisplay:
    """Progress display for output that is not shown: it prints nothing."""

    def show(self, content: Content) -> None: ...

    def tick(self) -> None: ...

    def say(self, text: str) -> None: ...

    def close(self, *, wipe: bool = False) -> None: ...


class LineDisplay:
    """Progress display that prints a line at intervals: for files, pipes, dumb terminals."""

    def __init__(self, console: Console, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._console = console
        self._clock = clock
        self._content: Content | None = None
        self._next_s = clock() + EVERY_S

    def show(self, content: Content) -> None:
        self._content = content

    def tick(self) -> None:
        if self._content is not None and self._clock() >= self._next_s:
            self._next_s = self._clock() + EVERY_S
            self._content.look()
            self.say(self._content.line)

    def say(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def close(self, *, wipe: bool = False) -> None:
        if self._content is not None and not wipe:
            self._content.look(finally_=True)
            self.say(self._content.line)
        self._content = None


class PanelDisplay:
    """Progress display as a panel at the bottom of the terminal, which a thread redraws."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._content: Content | None = None
        self._ends = False
        self._live: Live | None = None
        self._drawing = (
            threading.RLock()
        )  # rich writes what it has laid out without a lock of its own
        self._closed = threading.Event()

    def show(self, content: Content) -> None:
        self._content = content
        if self._live is None:
            self._live = Live(
                get_renderable=self._render_content,
                console=self._console,
                auto_refresh=False,
                redirect_stdout=sys.stdout.isatty(),  # a redirected stdout stays unchanged
            )
            try:
                with _whole(), self._drawing:
                    self._live.start()
                self._closed = threading.Event()
                threading.Thread(target=self._redraw, args=(self._closed,), daemon=True).start()
            except BaseException:
                self.close(wipe=True)
                raise

    def tick(self) -> None: ...

    def say(self, text: str) -> None:
        with _whole(), self._drawing:
            self._console.print(Text(text, style=FAINT), highlight=False, soft_wrap=True)

    def close(self, *, wipe: bool = False) -> None:
        live, self._live = self._live, None
        self._closed.set()
        if live is not None:
            self._ends = not wipe
            live.transient = wipe
            with _whole(), self._drawing:
                live.stop()

    def _redraw(self, closed: threading.Event) -> None:
        while not closed.wait(1 / PER_SECOND):
            with self._drawing:
                if self._live is not None:
                    self._live.refresh()

    def _render_content(self) -> RenderableType:
        if self._content is None:
            return ""
        self._content.look(finally_=self._ends)
        return self._content


@contextmanager
def _whole() -> Iterator[None]:
    """Defer signals until the drawing to the terminal in the ``with`` block has finished.

    An interrupted drawing would make the next refresh erase lines that are not part of the panel.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[int, FrameType | None]] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append((number, frame))

    ours = [one for one in _HEARD if signal.getsignal(one) is not None]
    before = {one: signal.signal(one, hear) for one in ours}
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        for number, frame in heard[:1]:
            handler = before[signal.Signals(number)]
            if callable(handler):
                handler(number, frame)
            else:
                signal.raise_signal(number)


def screen_for(*, quiet: bool) -> Screen:
    """Return the progress display for standard error: panel, lines, or nothing if ``quiet``."""
    if quiet:
        return HiddenDisplay()
    console = _PlainConsole(stderr=True) if _plain() else SafeConsole(stderr=True)
    if not sys.stderr.isatty() or console.is_dumb_terminal:
        return LineDisplay(console)
    return PanelDisplay(console)


class _PlainConsole(SafeConsole):
    """Console that draws boxes, bars and dots in ASCII characters."""

    @property
    def encoding(self) -> str:
        return "ascii"


def _plain() -> bool:
    """Return whether the locale's encoding is ASCII, even where Python writes UTF-8 regardless."""
    return (os.environ.get("LC_ALL") or os.environ.get("LANG")) in _PLAIN_LOCALES
