"""All that is looked at in an installation."""

from __future__ import annotations

from collections.abc import Callable

from dse.services.doctor.finding import Finding
from dse.services.doctor.machine import machine_findings
from dse.services.doctor.packages import package_findings
from dse.services.doctor.storages import storage_findings


def findings(
    storage: str | None = None, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> list[Finding]:
    """Packages, plug-ins, threads, memory, storage and GPU, each with how to mend it.

    Args:
        storage: the URL of the storage that is meant; without one, the usual one.
        on_progress: called with how many rows of how many in the storage were checked.
    """
    stored = storage_findings(storage, on_progress)
    return [*package_findings(), *machine_findings(), *stored]
