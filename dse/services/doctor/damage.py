"""Integrity check of a storage: the check sum of every row, and the database itself."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator

from dse.errors import DseError
from dse.interop.archive.salvage import DamageNotes, damage_text
from dse.protocols import Storage, SupportsReading
from dse.services.doctor.finding import Finding, Verdict
from dse.system.credentials import storage_words

Progress = Callable[[int, int], None]

_DATABASE = (
    "restore a backup; to export the intact rows of a study: dse studies export NAME --salvage -o "
    "FILE.jsonl; to recover a complete file: sqlite3 FILE .recover"
)


def damage_findings(storage: Storage, url: str, on_progress: Progress) -> Iterator[Finding]:
    """Check all rows of a storage; yield a finding per damaged study, kind of row and reason.

    If no row is damaged, a single finding reports that.

    Args:
        storage: the storage to check; skipped if it does not support reading past damage.
        url: the storage's URL, for the commands that repair it.
        on_progress: called with the number of rows checked so far, and their total.
    """
    if not isinstance(storage, SupportsReading):
        return
    broken = 0
    for found in _findings(storage, url, on_progress):
        broken += found.verdict is Verdict.BROKEN
        yield found
    if not broken:
        rows = sum(one.rows for one in storage.summaries())
        message = f"all {rows:,} rows are as they were written"
        yield Finding(part="check sums", verdict=Verdict.FINE, message=message)


def _findings(storage: SupportsReading, url: str, on_progress: Progress) -> Iterator[Finding]:
    try:
        for message in storage.check_database():
            yield Finding(part="database", verdict=Verdict.BROKEN, message=message, mend=_DATABASE)
        summaries = storage.summaries()
    except DseError as error:
        yield _broken(error)
        return
    done, total = 0, sum(one.rows for one in summaries)
    for one in summaries:
        notes = DamageNotes()
        try:
            with storage.reader(one.study, notes.take) as reader:
                for count in reader.check():
                    done += count
                    on_progress(done, max(done, total))
        except DseError as error:
            yield _broken(error, one.study)
        yield from _study_findings(one.study, notes, url)


def _study_findings(study: str, notes: DamageNotes, url: str) -> Iterator[Finding]:
    words = ["dse", "studies", "export", study, "--salvage", "-o", "FILE.jsonl"]
    export = f"{shlex.join(words)} {storage_words(url)}"
    for damage in notes.damages:
        message = f"study {study!r}: {damage_text(damage)}"
        yield Finding(
            part="check sums",
            verdict=Verdict.BROKEN,
            message=message,
            mend=f"restore a backup, or export the intact rows: {export}",
            study=study,
        )


def _broken(error: DseError, study: str = "") -> Finding:
    message, mend = error.problem, error.hint or _DATABASE
    return Finding(
        part="check sums", verdict=Verdict.BROKEN, message=message, mend=mend, study=study
    )
