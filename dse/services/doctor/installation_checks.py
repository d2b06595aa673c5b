"""All checks of an installation that ``dse doctor`` runs."""

from __future__ import annotations

from collections.abc import Callable

from dse.services.doctor.finding import Finding
from dse.services.doctor.machine import machine_findings
from dse.services.doctor.packages import package_findings
from dse.services.doctor.storage_checks import storage_findings


def findings(
    storage: str | None = None, *, on_progress: Callable[[int, int], None] = lambda *_: None
) -> list[Finding]:
    """Check packages, plug-ins, threads, memory, GPU and storage; return the findings.

    Args:
        storage: URL of the storage to check; by default, the default storage.
        on_progress: called with the number of storage rows checked so far, and their total.
    """
    stored = storage_findings(storage, on_progress)
    return [*package_findings(), *machine_findings(), *stored]
