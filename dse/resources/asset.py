"""A pinned wheel whose files are read as data, and the folder where it lies unpacked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dse.errors import PluginError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One wheel of a package registry, by version and hash.

    ``used_by``, ``purpose`` and ``licence`` are for the person who decides whether to install it;
    ``reads`` are the files that are looked at, as patterns below the folder. Nothing of it is
    imported, and what it depends on is not installed.
    """

    name: str
    package: str
    version: str
    wheel: str
    sha256: str
    size_bytes: int
    licence: str
    used_by: tuple[str, ...]
    purpose: str
    reads: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Folder of the asset's files, which need not exist yet."""
        return assets_folder() / f"{self.name}-{self.version}"

    @property
    def installed(self) -> bool:
        """True if its files are there: the folder gets its name when it is complete."""
        return self.folder.is_dir()

    def check_installed(self) -> None:
        """Nothing, if its files are there.

        Raises:
            PluginError: they are not.
        """
        if not self.installed:
            needs = "needs" if len(self.used_by) == 1 else "need"
            raise PluginError(
                f"{' and '.join(self.used_by)} {needs} the asset {self.name!r}: {self.purpose}",
                hint=f"dse assets install {self.name}",
            )


def cache_folder() -> Path:
    """Return the folder of all that can be made or fetched again.

    ``$DSE_CACHE``, else ``dse-engine`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``.

    Source:
        XDG Base Directory Specification 0.8: a path that is not absolute is to be ignored.
    """
    chosen = os.environ.get("DSE_CACHE")
    if chosen:
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "dse-engine"


def assets_folder() -> Path:
    """Return the folder of all assets, each in a subfolder of its own."""
    return cache_folder() / "assets"
