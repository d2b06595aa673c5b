"""Every distribution that the program imports is declared: for all, or for an extra."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
OWN = {"dse", "dse_evaluators", "hatch_build"}
OTHERWISE = {"zigzag": "zigzag-dse"}
"""Distributions of packages that live in environments of their own."""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def declared(*extras: str) -> set[str]:
    lines = [
        *PROJECT["dependencies"],
        *(x for e in extras for x in PROJECT["optional-dependencies"][e]),
    ]
    return {distribution(re.match(r"[\w.-]+", line).group()) for line in lines}


def distribution(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def imported(path: Path) -> Iterator[str]:
    """The top-level packages of elsewhere that a file imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


def sources() -> list[Path]:
    return [*(ROOT / "dse").rglob("*.py"), *(ROOT / "evaluators").rglob("*.py")]


def needed() -> dict[str, str]:
    """Each package of elsewhere, and a file that imports it."""
    found = {
        name: str(path.relative_to(ROOT))
        for path in sources()
        if "dse/testing" not in path.as_posix()
        for name in imported(path)
    }
    known = {*sys.stdlib_module_names, *OWN}
    return {name: path for name, path in sorted(found.items()) if name not in known}


@pytest.mark.parametrize(("package", "path"), needed().items())
def test_what_is_imported_is_declared(package, path):
    extras = list(PROJECT["optional-dependencies"])
    installed = packages_distributions().get(package, [OTHERWISE.get(package, package)])
    of = {distribution(one) for one in installed}
    assert of & declared(*extras), f"{path} imports {package}, of {of}"


ELSEWHERE = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
"""Of Python on POSIX alone: what imports them at once cannot be imported on Windows."""


def test_the_program_can_be_imported_anywhere():
    found = {
        (str(path.relative_to(ROOT)), alias.name)
        for path in sources()
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import)
        for alias in node.names
        if alias.name in ELSEWHERE
    }
    assert found == set()
