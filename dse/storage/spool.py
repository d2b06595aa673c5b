"""Spool files: outcomes that could not be stored, kept on local disk until a run stores them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from dse.core.metric import Failure
from dse.core.trial import Outcome, State

_PREFIX = "outcomes-"
_SUFFIX = ".json"
_FORMER_FIELDS = {"fault": "failure"}
"""Names of fields in files of older versions, with the present names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spooled:
    """Outcomes that a process measured and could not store during a storage outage.

    ``entry`` is the unique mark of the driver's registration with its study; it identifies the
    database and the record that the outcomes belong to.
    """

    entry: str
    study: str
    driver: int
    outcomes: Mapping[int, Outcome]


def write_spool(spooled: Spooled) -> Path | None:
    """Write unstored outcomes to the process's spool file, replacing its earlier content.

    Returns:
        The file; ``None`` if no folder is writable or a number is not finite.
    """
    for folder in spool_folders():
        file = folder / f"{_PREFIX}{spooled.entry}{_SUFFIX}"
        with suppress(OSError, ValueError):  # ValueError: storages refuse NaN and infinity too
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _write_whole(file, json.dumps(_fields(spooled), default=_fields, allow_nan=False))
            return file
    return None


def remove_spool(entry: str) -> None:
    """Delete the spool file (saved outcomes) of a process, if it exists.

    ``entry`` is the unique mark in the file's name.
    """
    for folder in spool_folders():
        with suppress(OSError):
            (folder / f"{_PREFIX}{entry}{_SUFFIX}").unlink()


def find_spools(entries: Mapping[str, int]) -> Iterator[Spooled]:
    """Yield the outcomes in the spool files of a study's processes; skip unreadable files.

    Args:
        entries: the number of each driver of a study by the unique mark of its registration.
    """
    for folder in spool_folders():
        with suppress(OSError):
            for file in sorted(folder.glob(f"{_PREFIX}*{_SUFFIX}")):
                entry = file.name.removeprefix(_PREFIX).removesuffix(_SUFFIX)
                if entry in entries:
                    with suppress(OSError, ValueError, KeyError, TypeError):
                        yield _parse_spool(file)


def spool_folders() -> list[Path]:
    """Return the folders for spool files: the user's state folder, then a temporary folder.

    The first folder is ``$DSE_STATE``, else ``dse-engine`` in ``$XDG_STATE_HOME``, else
    ``dse-engine`` in ``~/.local/state``. The second is used only if no other user owns it.
    """
    found = []
    with suppress(RuntimeError):  # the user may have no home folder
        states = Path(os.environ.get("XDG_STATE_HOME", ""))
        home = states if states.is_absolute() else Path.home() / ".local" / "state"
        found.append(Path(os.environ.get("DSE_STATE") or home / "dse-engine"))
    owner = os.geteuid() if hasattr(os, "geteuid") else 0
    spare = Path(tempfile.gettempdir()) / f"dse-engine-{owner}"
    if not spare.exists() or (not spare.is_symlink() and spare.stat().st_uid == owner):
        found.append(spare)
    return found


def _write_whole(file: Path, text: str) -> None:
    """Write a file atomically, by renaming a temporary file."""
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


def _fields(value: Any) -> dict[str, Any]:  # types that JSON lacks
    if isinstance(value, Mapping):
        return dict(value)
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _parse_spool(file: Path) -> Spooled:
    kept = json.loads(file.read_text())
    outcomes = {int(number): _outcome_of(one) for number, one in kept["outcomes"].items()}
    return Spooled(**{**kept, "outcomes": outcomes})


def _outcome_of(kept: Mapping[str, Any]) -> Outcome:
    found = {_FORMER_FIELDS.get(name, name): one for name, one in kept.items()}
    failure = None if found["failure"] is None else Failure(**found["failure"])
    return Outcome(**{**found, "state": State(found["state"]), "failure": failure})
