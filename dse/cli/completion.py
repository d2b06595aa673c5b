"""Shell completion of the names of studies, plug-ins, assets and files.

The shell blocks on each Tab. So imports are kept to a minimum, each listing is limited to
:data:`PATIENCE_S`, and errors are not reported: what cannot be read completes to nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import signal
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

import typer

from dse.system.terminal_text import is_visible

PATIENCE_S = 1.0
"""Time limit of a completion; names that cannot be listed in time complete to nothing."""

VARIABLE = "_DSE_COMPLETE"
"""Environment variable by which a shell requests completions instead of running a command."""

_JOINED = ":="
"""Characters at which bash splits words, such as ``library:x`` and ``--storage=x``."""

_STUDY, _SPACE = (re.compile(rf"^{key}:".encode(), re.MULTILINE) for key in ("study", "space"))
_HEAD_BYTES = 1 << 16
_NAMES = "SELECT name FROM dse_studies ORDER BY name"


def study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of the studies in the command's storage, or in the default one."""
    return _matching(lambda: _studies(ctx.params.get("storage")), incomplete)


def study_files(incomplete: str) -> list[str]:
    """Return the study files in the folder typed so far, or else the shipped ones."""
    return _matching(lambda: _files(["studies"], incomplete), incomplete)


def space_files(incomplete: str) -> list[str]:
    """Return the space files in the folder typed so far, or else the shipped ones."""
    return _matching(lambda: _files(["spaces"], incomplete), incomplete)


def any_files(incomplete: str) -> list[str]:
    """Return the study and space files in the folder typed so far, or else the shipped ones."""
    return _matching(lambda: _files(["studies", "spaces"], incomplete), incomplete)


def optimizers(incomplete: str) -> list[str]:
    """Return the names of the optimizers of all installed packages, and ``auto``."""
    return _matching(lambda: ["auto", *_plugins("optimizers")], incomplete)


def executors(incomplete: str) -> list[str]:
    """Return the names of the executors of all installed packages, and ``auto``."""
    return _matching(lambda: ["auto", *_plugins("executors")], incomplete)


def plugins(incomplete: str) -> list[tuple[str, str]]:
    """Return the names of all plug-ins, each with its kind."""
    from dse.registry import GROUPS

    kinds = {name: group[:-1] for group in GROUPS for name in _plugins(group)}
    return [(name, kinds[name]) for name in _matching(lambda: kinds, incomplete)]


def assets(incomplete: str) -> list[str]:
    """Return the names of the assets of all installed packages."""
    return _matching(lambda: _brought("assets"), incomplete)


def environments(incomplete: str) -> list[str]:
    """Return the names of the environments of all installed packages."""
    return _matching(lambda: _brought("environments"), incomplete)


def complete(app: Callable[[], Any]) -> None:
    """Print the words that complete a partly typed command line, as a shell requests.

    For bash, rejoin the words that it split at the characters of :data:`_JOINED`, and cut from each
    completion the part up to the last of these characters, which bash keeps itself.

    Raises:
        SystemExit: always, as the app has ended.
    """
    if not os.environ[VARIABLE].endswith("_bash"):
        app()
    words, cursor = rejoin_words(
        os.environ["COMP_WORDS"].split("\n"), int(os.environ["COMP_CWORD"])
    )
    os.environ["COMP_WORDS"], os.environ["COMP_CWORD"] = "\n".join(words), str(cursor)
    current = words[cursor] if cursor < len(words) else ""
    known = max(current.rfind(mark) for mark in _JOINED) + 1
    captured = io.StringIO()
    try:
        with contextlib.redirect_stdout(captured):
            app()
    finally:
        for line in filter(None, captured.getvalue().splitlines()):
            typer.echo(line[known:].replace(" ", "\\ "))


def rejoin_words(words: Sequence[str], cursor: int) -> tuple[list[str], int]:
    """Join the words that bash split; return them and the index of the word at the cursor."""
    joined: list[str] = []
    place = 0
    for number, word in enumerate(words):
        glued = joined and (_is_mark(word) or _is_mark(words[number - 1]))
        if glued and number > 1 and joined[-1]:
            joined[-1] += word
        else:
            joined.append(word)
        if number <= cursor:
            place = len(joined) - 1
    return joined, place + max(cursor - len(words) + 1, 0)


def _is_mark(word: str) -> bool:
    return bool(word) and not word.strip(_JOINED)


def _matching(known: Callable[[], Iterable[str]], incomplete: str) -> list[str]:
    """Return the known names that start with the typed text; none if listing takes too long."""
    with contextlib.suppress(Exception), _in_time(), contextlib.redirect_stderr(io.StringIO()):
        return [one for one in known() if one.startswith(incomplete) and is_visible(one)]
    return []


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """Raise TimeoutError inside the block after :data:`PATIENCE_S` seconds."""

    def late(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, late)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _studies(storage: str | None) -> Iterable[str]:
    """Return the study names of a storage; SQLite files are read without the slower SQLAlchemy."""
    url = storage or "sqlite:///dse.db"
    scheme, _, file = url.partition(":///")
    if scheme != "sqlite":
        from dse.registry import make

        return list(make("storages", re.split(r"[:+]", url)[0], url).studies())
    path = Path(file).resolve()
    with contextlib.closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        return [name for (name,) in connection.execute(_NAMES)]


def _files(kinds: Sequence[str], incomplete: str) -> Iterable[str]:
    """Return the study or space files in the typed folder, or else those of the library."""
    if not incomplete.startswith("library:"):
        here = [file for file, kind in _beside(incomplete) if kind in kinds]
        if here or (incomplete and not "library:".startswith(incomplete)):
            return here
    from dse.schema.yaml.files import library

    found = sorted(path for kind in kinds for path in (library() / kind).rglob("*.yaml"))
    return [f"library:{path.relative_to(library()).as_posix()}" for path in found]


def _beside(incomplete: str) -> Iterator[tuple[str, str]]:
    """Yield the YAML files in the typed folder and its subfolders, each with what it describes."""
    folder = incomplete.rpartition("/")[0]
    begun = f"{folder}/" if "/" in incomplete else ""
    base = Path(begun or ".").expanduser()
    for path in sorted(chain(base.glob("*.y*ml"), base.glob("[!.]*/*.y*ml"))):
        completed = begun + path.relative_to(base).as_posix()
        if completed.startswith(incomplete):
            yield completed, _kind(path)


def _kind(path: Path) -> str:
    """Return what a YAML file describes: ``studies``, ``spaces`` or, if neither, ``""``.

    A study file names its space too, and counts as a study.
    """
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    if _STUDY.search(head):
        return "studies"
    return "spaces" if _SPACE.search(head) else ""


def _plugins(group: Any) -> Iterable[str]:
    from dse.registry import names

    return names(group)


def _brought(group: Any) -> Iterable[str]:
    """Return the names of the assets or environments that installed packages register.

    The packages' tables are read instead of the catalogues, which would import the installers.
    """
    from dse.registry import load, names

    return [name for table in names(group) for name in load(group, table)]
