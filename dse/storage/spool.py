"""Outcomes that could not be stored, in a local file until a run stores them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dse.core.metric import Fault
from dse.core.trial import Outcome, State

_PREFIX = "outcomes-"
_SUFFIX = ".json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """Outcomes that one driver measured and could not store.

    ``entry`` is the mark with which the driver entered its study: it says which record, of which
    database, the outcomes belong to.
    """

    entry: str
    study: str
    driver: int
    outcomes: Mapping[int, Outcome]


def write_spool(spooled: Spooled) -> Path | None:
    """Write the outcomes to the disk in place of those written before.

    Returns:
        The file; ``None`` where no folder takes one.
    """
    for folder in spool_folders():
        file = folder / f"{_PREFIX}{spooled.entry}{_SUFFIX}"
        with suppress(OSError, ValueError):  # what is no number is no outcome: storages refuse it
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_whole(file, json.dumps(_fields(spooled), default=_fields, allow_nan=False))
            return file
    return None


def remove_spool(entry: str) -> None:
    """Remove the file of an entry, if there is one."""
    for folder in spool_folders():
        with suppress(OSError):
            (folder / f"{_PREFIX}{entry}{_SUFFIX}").unlink()


def find_spools(entries: Mapping[str, int]) -> Iterator[Spooled]:
    """Yield what drivers with these marks could not store; files that were cut are skipped.

    Args:
        entries: the drivers of a study by their marks.
    """
    for folder in spool_folders():
        with suppress(OSError):
            for file in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
                entry = file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
                if entry in entries:
                    with suppress(OSError, ValueError, KeyError, TypeError):
                        yield _parse_spool(file)


def spool_folders() -> list[Path]:
    """Return where spool files may be: this user's folder for states, else the temporary one.

    The first is ``$DSE_STATE``, else ``dse-engine`` in ``$XDG_STATE_HOME``, else in
    ``~/.local/state``. The second one counts only if nobody else could have written there.
    """
    found = []
    with suppress(RuntimeError):  # there may be no home
        states = Path(os.environ.get("XDG_STATE_HOME", ""))
        home = states if states.is_absolute() else Path.home() / ".local" / "state"
        found.append(Path(os.environ.get("DSE_STATE") or home / "dse-engine"))
    owner = os.geteuid() if hasattr(os, "geteuid") else 0
    spare = Path(tempfile.gettempdir()) / f"dse-engine-{owner}"
    if not spare.exists() or (not spare.is_symlink() and spare.stat().st_uid == owner):
        found.append(spare)
    return found


def _write_whole(file: Path, text: str) -> None:
    """Write a file that is there whole or not at all, whatever happens meanwhile."""
    part = file.with_suffix(".part")
    try:
        with part.open("w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        part.replace(file)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _fields(value: Any) -> dict[str, Any]:  # whatever JSON has no word for
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _parse_spool(file: Path) -> Spooled:
    kept = json.loads(file.read_text())
    outcomes = {int(number): _outcome_of(one) for number, one in kept["outcomes"].items()}
    return Spooled(**{**kept, "outcomes": outcomes})


def _outcome_of(kept: Mapping[str, Any]) -> Outcome:
    fault = None if kept["fault"] is None else Fault(**kept["fault"])
    return Outcome(**{**kept, "state": State(kept["state"]), "fault": fault})
