"""An environment of its own for a program whose pins conflict with ours, and its folder."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from dse.errors import PluginError
from dse.resources.asset import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """One package with all that it needs, every file pinned by version and hash.

    ``requirements`` is the list that pip installs, with the hashes; ``size_bytes`` is what it
    takes on disk, for the person who decides whether to install it. It is never imported by us:
    its Python is started.
    """

    name: str
    package: str
    version: str
    requirements: Path
    size_bytes: int
    licence: str
    used_by: tuple[str, ...]
    purpose: str

    @property
    def folder(self) -> Path:
        """Folder of the environment, which need not exist yet.

        Another list of requirements gives another folder.
        """
        pinned = hashlib.sha256(self.requirements.read_bytes()).hexdigest()
        return environments_folder() / f"{self.name}-{self.version}-{pinned[:8]}"

    @property
    def python(self) -> Path:
        """Its Python."""
        return python_in(self.folder)

    @property
    def installed(self) -> bool:
        """True if it is there: the folder gets its name when it is complete."""
        return self.folder.is_dir()

    def check_installed(self) -> None:
        """Nothing, if it is there.

        Raises:
            PluginError: it is not.
        """
        if not self.installed:
            raise PluginError(
                f"{' and '.join(self.used_by)} needs the environment {self.name!r}: {self.purpose}",
                hint=f"dse environments install {self.name}",
            )


def environments_folder() -> Path:
    """Return the folder of all environments, each in a subfolder of its own."""
    return cache_folder() / "environments"


def python_in(folder: Path) -> Path:
    """The Python of a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
