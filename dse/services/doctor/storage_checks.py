"""Checks of the storage: that it opens, is undamaged, and that its folder is writable and fast."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from dse.errors import DseError
from dse.services.doctor.damage import damage_findings
from dse.services.doctor.finding import Finding, Verdict
from dse.study.storage_access import DEFAULT_STORAGE, opened_storage
from dse.system.credentials import mask_url

_SLOW_S = 0.25
_MENDS = {
    "sqlite": "name another file, on a disk of this machine",
    "postgresql": "is the server up, and does the URL name user, host and database? "
    "postgresql+psycopg://user@host/database",
}


def storage_findings(
    url: str | None, on_progress: Callable[[int, int], None] = lambda *_: None
) -> Iterator[Finding]:
    """Yield findings on a storage: access, damage, and the write speed of SQLite in its folder.

    Args:
        url: URL of the storage; by default, the default storage.
        on_progress: called with the number of rows checked so far, and their total.
    """
    url = url or DEFAULT_STORAGE
    try:
        storage = opened_storage(url)
        count = len(storage.studies())
    except DseError as error:
        scheme = url.partition(":")[0].partition("+")[0]
        yield Finding(
            part="storage",
            verdict=Verdict.BROKEN,
            message=f"{mask_url(url)}: {error.problem}",
            mend=error.hint or _MENDS.get(scheme, "dse plugins list shows the available storages"),
        )
        return
    many = f"{count} {'study' if count == 1 else 'studies'}"
    yield Finding(part="storage", verdict=Verdict.FINE, message=f"{mask_url(url)}, {many}")
    yield from damage_findings(storage, url, on_progress)
    if url.startswith("sqlite:///"):
        yield _writing(Path(url.removeprefix("sqlite:///")).absolute().parent)


def _writing(folder: Path) -> Finding:
    """Return a finding on the time to create a test storage in the folder and delete it."""
    if not folder.is_dir():
        mend = f"make it: {shlex.join(['mkdir', '-p', str(folder)])}"
        message = f"there is no folder {folder}"
        return Finding(part="writing", verdict=Verdict.BROKEN, message=message, mend=mend)
    try:
        with TemporaryDirectory(dir=folder, prefix=".dse-checkup-") as apart:
            started = time.perf_counter()
            opened_storage(f"sqlite:///{apart}/dse.db", begins=True).create("checkup", {})
            seconds = time.perf_counter() - started
    except (OSError, DseError) as error:
        why = error.strerror if isinstance(error, OSError) else error.problem
        return Finding(
            part="writing",
            verdict=Verdict.BROKEN,
            message=f"{folder}: {why}",
            mend="--storage sqlite:///FILE in a folder that can be written",
        )
    slow = seconds > _SLOW_S
    return Finding(
        part="writing",
        verdict=Verdict.FINE,
        message=f"creating a storage takes {seconds * 1e3:.0f} ms in {folder}",
        mend="a local disk is faster than a network disk" if slow else "",
    )
