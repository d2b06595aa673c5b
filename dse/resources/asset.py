"""Assets: pinned wheels whose files are read as data, and the cache folder that holds them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from dse.errors import PluginError


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """Package of model or data files: a wheel, pinned by version and hash, that is not imported.

    ``used_by``, ``purpose`` and ``licence`` inform the user who decides whether to install it;
    ``reads`` are the files that evaluators read, as glob patterns relative to the asset's folder.
    The wheel is never imported, and its dependencies are not installed.
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
        """Folder of the asset's files, which exists only once they are installed."""
        return assets_folder() / f"{self.name}-{self.version}"

    @property
    def installed(self) -> bool:
        """Whether the asset is installed: its folder exists only once it is complete."""
        return self.folder.is_dir()

    def check_installed(self) -> None:
        """Check that the asset is installed.

        Raises:
            PluginError: the asset is not installed.
        """
        if not self.installed:
            needs = "needs" if len(self.used_by) == 1 else "need"
            raise PluginError(
                f"{' and '.join(self.used_by)} {needs} the asset {self.name!r}: {self.purpose}",
                hint=f"dse assets install {self.name}",
            )


def cache_folder() -> Path:
    """Return the cache folder, whose contents can be built or downloaded again.

    The folder is ``$DSE_CACHE``, else ``dse-engine`` in ``$XDG_CACHE_HOME``, else in ``~/.cache``.

    Source:
        XDG Base Directory Specification 0.8: a path that is not absolute is to be ignored.
    """
    chosen = os.environ.get("DSE_CACHE")
    if chosen:
        return Path(chosen)
    caches = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "dse-engine"


def assets_folder() -> Path:
    """Return the folder that contains a subfolder per installed asset."""
    return cache_folder() / "assets"
