"""Inspection functions: check files, diagnose the installation, list and describe plug-ins."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.report.schemas.plugins_schema import PluginFacts, PluginRow
    from dse.report.schemas.reproduction import JudgedFile
    from dse.services.doctor.finding import Finding


def check(file: str | Path) -> JudgedFile:
    """Check a study or space file without running measurements.

    Models are evaluated on a few designs, and no program is started. Mistakes are returned, not
    raised.

    Example:
        ``check("library:studies/quickstart.yaml")["ok"]``

    Args:
        file: a path, or ``library:studies/...`` for a shipped one.

    Returns:
        A mapping: whether the file is ``ok``, a description of it, and its ``errors``, each with
            its line and a fix.
    """
    from dse.services.doctor.check_files import judged_file

    return judged_file(str(file))


def doctor(storage: str | None = None) -> list[Finding]:
    """Check packages, plug-ins, threads, memory, storage and GPU; return the findings.

    Example:
        ``[one.mend for one in doctor() if one.verdict == "broken"]``

    Args:
        storage: the URL of the storage to check; default: ``sqlite:///dse.db``.
    """
    from dse.services.doctor.installation_checks import findings

    return findings(storage)


def plugins() -> list[PluginRow]:
    """Return all plug-ins, each with its kind, name and the distribution that provides it.

    Example:
        ``[row["name"] for row in plugins() if row["kind"] == "optimizers"]``
    """
    from dse.report.json.plugins_json import plugin_rows

    return plugin_rows()


def plugin(name: str) -> list[PluginFacts]:
    """Return the descriptions of the plug-ins with a given name: options, inputs and metrics.

    Example:
        ``plugin("tpe")[0]["options"]``

    Returns:
        One entry, or one per kind if several kinds of plug-ins share the name.

    Raises:
        PluginError: there is no such plug-in, or importing it failed.
    """
    from dse.report.json.plugins_json import plugin_facts

    return plugin_facts(name)
