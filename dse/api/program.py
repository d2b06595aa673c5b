"""The program itself: files judged, the installation looked at, plug-ins listed and explained."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dse.report.schemas.plugins import PluginFacts, PluginRow
    from dse.report.schemas.reproduction import JudgedFile
    from dse.services.doctor.finding import Finding


def check(file: str | Path) -> JudgedFile:
    """Judge a study or space file without running what is measured.

    Models are tried on a few designs, and no program is started. Mistakes are told, not raised.

    Example:
        ``check("library:studies/quickstart.yaml")["ok"]``

    Args:
        file: a path, or ``library:studies/...`` for a shipped one.

    Returns:
        Whether it is ``ok``, what it describes, and its ``errors``, each with place and mend.
    """
    from dse.services.doctor.check_files import judged_file

    return judged_file(str(file))


def doctor(storage: str | None = None) -> list[Finding]:
    """Look at packages, plug-ins, threads, memory, storage and GPU.

    Example:
        ``[one.mend for one in doctor() if one.verdict == "broken"]``

    Args:
        storage: the URL of the storage that is meant; ``sqlite:///dse.db`` without.
    """
    from dse.services.doctor.doctor import findings

    return findings(storage)


def plugins() -> list[PluginRow]:
    """All plug-ins by kind, with the distribution that each comes from.

    Example:
        ``[row["name"] for row in plugins() if row["kind"] == "optimizers"]``
    """
    from dse.report.json.plugins import plugin_rows

    return plugin_rows()


def plugin(name: str) -> list[PluginFacts]:
    """All about the plug-ins of that name: options, and what evaluators read and provide.

    Example:
        ``plugin("tpe")[0]["options"]``

    Returns:
        One, unless two kinds of plug-ins share the name.

    Raises:
        PluginError: there is none, or importing it failed.
    """
    from dse.report.json.plugins import plugin_facts

    return plugin_facts(name)
