"""All that is looked at in an installation."""

from __future__ import annotations

from dse.checkup.finding import Finding
from dse.checkup.machine import machine_findings
from dse.checkup.packages import package_findings
from dse.checkup.storages import storage_findings


def findings(storage: str | None = None) -> list[Finding]:
    """Packages, plug-ins, threads, memory, storage and GPU, each with how to mend it.

    Args:
        storage: the URL of the storage that is meant; without one, the usual one.
    """
    return [*package_findings(), *machine_findings(), *storage_findings(storage)]
