"""Installation and removal of evaluators' virtual environments, each atomic.

An interrupted installation leaves no environment.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path

from dse.errors import PluginError
from dse.resources.environment import Environment, environments_folder, python_in
from dse.resources.fetch import end, reason
from dse.resources.install import settle, sweep
from dse.system.credentials import children_environment

Watch = Callable[[str], None]
"""Callback that receives each line of pip's output."""

_PIP = (
    "install",
    "--require-hashes",
    "--no-deps",
    "--no-warn-script-location",
    "--progress-bar=off",
    "--no-input",
    "--disable-pip-version-check",
)


def build(environment: Environment, watch: Watch = lambda _: None) -> bool:
    """Create a virtual environment with its pinned packages; return false if it exists already.

    The environment is built in a temporary folder, which the last step renames. The environment's
    Python locates its packages relative to itself, so it survives the rename; the packages' scripts
    would not, and are not used.

    Raises:
        PluginError: a package is unavailable or is not the pinned file, or the folder cannot be
            written.
    """
    if environment.installed:
        return False
    try:
        folder = environments_folder()
        folder.mkdir(parents=True, exist_ok=True)
        sweep(folder)
        with tempfile.TemporaryDirectory(dir=folder, prefix=".draft-") as draft:
            files = Path(draft) / "files"
            venv.create(files, symlinks=sys.platform != "win32", with_pip=False)
            _install(environment, files, watch)
            settle(files, environment.folder)
    except OSError as error:
        raise PluginError(
            f"the environment {environment.name!r} cannot be stored: {error}",
            hint="set DSE_CACHE to another folder",
        ) from error
    return True


def demolish(environment: Environment) -> bool:
    """Delete a virtual environment; return false if it is not installed.

    Raises:
        PluginError: it cannot be deleted.
    """
    if not environment.installed:
        return False
    try:
        with tempfile.TemporaryDirectory(dir=environments_folder(), prefix=".draft-") as draft:
            environment.folder.rename(Path(draft) / "files")
    except OSError as error:
        raise PluginError(
            f"the environment {environment.name!r} cannot be removed: {error}"
        ) from error
    return True


def _install(environment: Environment, files: Path, watch: Watch) -> None:
    """Install the environment's pinned packages into the folder ``files`` with this program's pip.

    Raises:
        PluginError: pip failed; the message has pip's error.
    """
    run = subprocess.Popen(  # noqa: S603 - this program's Python, and a pinned list
        [
            *(sys.executable, "-m", "pip", "--python", str(python_in(files)), *_PIP),
            *("-r", str(environment.requirements)),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=children_environment(),
        text=True,
        errors="replace",
    )
    output: list[str] = []
    assert run.stdout is not None
    try:
        with run.stdout as lines:
            for line in lines:
                output.append(line)
                watch(line.strip())
        run.wait()
    finally:
        end(run)
    if run.returncode != 0:
        raise PluginError(
            f"{environment.package} {environment.version} cannot be installed: "
            f"{reason(''.join(output))}",
            hint="pip uses the index of `pip config list`; nothing was installed",
        )
