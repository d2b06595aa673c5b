"""Work functions for executor tests: the design names the action (compute, raise, crash, hang)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dse.core.design import Design
from dse.core.trial import Outcome, State
from dse.core.values import Value
from dse.protocols import Needs, Task


def task(number: int, do: str, at: Value = 0) -> Task:
    """Return a task for :func:`perform` that runs one test action, such as a crash.

    Args:
        number: the task's number.
        do: the action's name, a key of ``_DEEDS``, such as a crash.
        at: the action's argument.
    """
    return Task(number=number, design=Design({"do": do, "at": at}))


def perform(tasks: Sequence[Task]) -> list[Outcome]:
    """Perform the action of each test task; return outcomes with the process id as a metric."""
    return [Outcome(state=State.DONE, metrics=_done(one)) for one in tasks]


class Loaded:
    """Variant of :func:`perform` with a metric of how often its process has unpickled it."""

    def __init__(self) -> None:
        self.loads = 0

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        return [Outcome(state=State.DONE, metrics={**_done(t), "loads": self.loads}) for t in tasks]

    def __getstate__(self) -> dict[str, int]:
        return {"loads": self.loads}

    def __setstate__(self, _: object) -> None:
        os.environ["DSE_TEST_LOADS"] = str(int(os.environ.get("DSE_TEST_LOADS", "0")) + 1)
        self.loads = int(os.environ["DSE_TEST_LOADS"])


class Slow:
    """Variant of :func:`perform` that takes three seconds to unpickle."""

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        return perform(tasks)

    def __setstate__(self, _: object) -> None:
        time.sleep(3.0)

    def __getstate__(self) -> dict[str, bool]:
        return {"slow": True}


class Needy:
    """Variant of :func:`perform` that requires a machine with the given resources."""

    def __init__(self, needs: Needs) -> None:
        self.needs = needs

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        return perform(tasks)


class Stillborn:
    """Variant of :func:`perform` that kills the first processes that unpickle it.

    Args:
        file: path of a file that gets a line for each process that unpickles it.
        deaths: number of processes that kill themselves.
        number: the signal that they use.
    """

    def __init__(self, file: str, deaths: int, number: int) -> None:
        self._about = file, deaths, number

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        return perform(tasks)

    def __getstate__(self) -> tuple[str, int, int]:
        return self._about

    def __setstate__(self, about: tuple[str, int, int]) -> None:
        file, deaths, number = about
        with Path(file).open("a+") as births:
            births.write("born\n")
            births.seek(0)
            if len(births.readlines()) <= deaths:
                births.flush()
                os.kill(os.getpid(), number)


class Unloadable:
    """Work that can be pickled but not unpickled, as if its module were missing."""

    def __call__(self, tasks: Sequence[Task]) -> list[Outcome]:
        return perform(tasks)

    def __reduce__(self) -> tuple[Callable[[], None], tuple[()]]:
        return _no_such_module, ()


def _no_such_module() -> None:
    raise ImportError("no module named 'gone'")


def _done(one: Task) -> dict[str, float]:
    deed = _DEEDS[str(one.design["do"])]
    return {"pid": os.getpid(), **(deed(one.design["at"]) or {})}


def _square(x: Value) -> dict[str, float]:
    return {"square": float(x) * float(x)}


def _raise(text: Value) -> None:
    raise ValueError(text)


def _sleep(seconds: Value) -> None:
    time.sleep(float(seconds))


def _mark_and_exit(path: Value) -> None:
    _mark(str(path))
    os._exit(1)


def _hang_once(path: Value) -> None:
    again = Path(str(path)).exists()
    _mark(str(path))
    time.sleep(0.0 if again else 600.0)


def _mark(path: str) -> None:
    with Path(path).open("a") as file:
        file.write("tried\n")


def _environment(name: Value) -> dict[str, float]:
    return {"value": float(os.environ.get(str(name), "nan"))}


def _survive_signal(signal_number: Value) -> dict[str, float]:
    os.kill(os.getpid(), int(signal_number))
    time.sleep(0.2)
    return {"survived": 1.0}


def _large(count: Value) -> dict[str, float]:
    return {f"metric {place}": 0.5 for place in range(int(count))}


def _child(path: Value) -> None:
    _with_child(Path(str(path)), own_session=False)


def _stray_child(path: Value) -> None:
    _with_child(Path(str(path)), own_session=True)


def _with_child(path: Path, *, own_session: bool) -> None:
    """Start a child process that sleeps, write both process ids to ``path``, and sleep too."""
    child = subprocess.Popen(["sleep", "600"], start_new_session=own_session)  # noqa: S607
    path.with_suffix(".part").write_text(f"{os.getpid()} {child.pid}")
    path.with_suffix(".part").rename(path)
    time.sleep(600)


_DEEDS: Mapping[str, Callable[[Value], Mapping[str, float] | None]] = {
    "square": _square,
    "raise": _raise,
    "quit": lambda word: sys.exit(str(word)),
    "exit": lambda status: os._exit(int(status)),
    "signal": lambda number: os.kill(os.getpid(), int(number)),
    "survive": _survive_signal,
    "sleep": _sleep,
    "mark and exit": _mark_and_exit,
    "hang once": _hang_once,
    "unsendable": lambda _: {"function": lambda: 0.0},  # type: ignore[dict-item] # the point of it
    "environment": _environment,
    "large": _large,
    "child": _child,
    "stray child": _stray_child,
}
