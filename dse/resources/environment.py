"""Separate virtual environments for packages whose pins conflict with this program's."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from dse.errors import PluginError
from dse.resources.asset import cache_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Virtual environment of one package and its dependencies, pinned by version and hash.

    ``requirements`` is the requirements file, with hashes, that pip installs; ``size_bytes`` is the
    size on disk, for the user who decides whether to install it. The packages are never imported
    into this process; the environment's own Python is started.
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
        """Folder of the environment, which exists only once it is installed.

        Its name contains a hash of the requirements file.
        """
        pinned = hashlib.sha256(self.requirements.read_bytes()).hexdigest()
        return environments_folder() / f"{self.name}-{self.version}-{pinned[:8]}"

    @property
    def python(self) -> Path:
        """Path of the environment's Python interpreter."""
        return python_in(self.folder)

    @property
    def installed(self) -> bool:
        """Whether the environment is installed: its folder exists only once it is complete."""
        return self.folder.is_dir()

    def check_installed(self) -> None:
        """Check that the environment is installed.

        Raises:
            PluginError: the environment is not installed.
        """
        if not self.installed:
            raise PluginError(
                f"{' and '.join(self.used_by)} needs the environment {self.name!r}: {self.purpose}",
                hint=f"dse environments install {self.name}",
            )


def environments_folder() -> Path:
    """Return the folder that contains a subfolder per installed environment."""
    return cache_folder() / "environments"


def python_in(folder: Path) -> Path:
    """Return the path of the Python interpreter in a virtual environment."""
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
