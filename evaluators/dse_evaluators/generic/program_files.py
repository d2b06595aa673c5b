"""Checks that a program and its script exist on this machine, for `dse check`; runs nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from dse.errors import PluginError, nearest
from dse_evaluators.generic.process import Program

_INTERPRETERS = ("python", "bash", "sh", "perl", "ruby", "Rscript", "julia", "node", "lua")
_CODE = ("-c", "-m", "-e")
"""Options of interpreters after which no script follows."""


def check_program(program: Program) -> None:
    """Check that a program can be started here, and that an interpreter's script exists.

    Raises:
        PluginError: the working directory, the program or the script does not exist.
    """
    folder = Path(program.cwd or ".")
    if not folder.is_dir():
        hint = nearest(folder.name, _names_in(folder.parent))
        raise PluginError(f"there is no folder {str(folder)!r}", hint=hint, part=["cwd"])
    _check_executable(program, folder)
    script = _script_of(program.run)
    if script and not (folder / script).is_file():
        inside = (folder / script).parent
        same = [name for name in _names_in(inside) if Path(name).suffix == Path(script).suffix]
        hint = nearest(Path(script).name, same)
        raise PluginError(f"there is no file {script!r}", hint=hint, part=["run"])


def _check_executable(program: Program, folder: Path) -> None:
    name = program.run[0]
    if "$" in name:
        problem = f"{name!r} is no program: no shell reads the command"
        raise PluginError(problem, hint="write the program's own name or path", part=["run"])
    if "/" in name:
        _check_path(name, folder / name)
    elif shutil.which(name, path=program.env.get("PATH")) is None:
        folders = os.get_exec_path({**os.environ, **program.env})
        hint = nearest(name, {one for each in folders for one in _names_in(Path(each))})
        close = hint if hint.startswith("did you mean") else "is it installed, and in PATH?"
        problem = f"there is no program {name!r} on this machine"
        raise PluginError(problem, hint=close, part=["run"])


def _check_path(name: str, path: Path) -> None:
    if not path.is_file():
        hint = nearest(path.name, _names_in(path.parent))
        raise PluginError(f"there is no file {name!r}", hint=hint, part=["run"])
    if not os.access(path, os.X_OK):
        first = f"write run: [python3, {path.name}], or " if path.suffix == ".py" else ""
        problem = f"{name!r} is not executable"
        raise PluginError(problem, hint=f"{first}chmod +x {name}", part=["run"])


def _script_of(run: Sequence[str]) -> str:
    """Return the path of the script in an interpreter's command line; empty without one."""
    if not Path(run[0]).name.startswith(_INTERPRETERS):
        return ""
    for word in run[1:]:
        if word in _CODE or not word:
            return ""
        if not word.startswith("-"):
            return word if Path(word).suffix else ""
    return ""


def _names_in(folder: Path) -> list[str]:
    try:
        return sorted(one.name for one in folder.iterdir())
    except OSError:
        return []
