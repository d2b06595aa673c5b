"""Every distribution that the program imports is declared: for all, or for an extra."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
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


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """The top-level packages that these statements import."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


@pytest.fixture(scope="module")
def sources() -> dict[str, ast.Module]:
    """Each file of the program, read once."""
    paths = [*(ROOT / "dse").rglob("*.py"), *(ROOT / "evaluators").rglob("*.py")]
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text(encoding="utf-8"))
        for path in paths
    }


def test_what_is_imported_is_declared(sources):
    found = {
        name: path
        for path, module in sources.items()
        if not path.startswith("dse/testing/")
        for name in imported(ast.walk(module))
    }
    named = declared(*PROJECT["optional-dependencies"])
    installed = packages_distributions()
    undeclared = {
        name: path
        for name, path in found.items()
        if name not in {*sys.stdlib_module_names, *OWN}
        and not named & {*map(distribution, installed.get(name, [OTHERWISE.get(name, name)]))}
    }
    assert undeclared == {}
    assert {"numpy", "ray"} <= {*found}


ELSEWHERE = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "termios", "tty"}
"""Of Python on POSIX alone: what imports them at once cannot be imported on Windows."""


def test_the_program_can_be_imported_anywhere(sources):
    found = {
        (path, name)
        for path, module in sources.items()
        for name in imported(module.body)
        if name in ELSEWHERE
    }
    assert found == set()
