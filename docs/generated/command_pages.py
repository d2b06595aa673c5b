"""The reference of the command line: what ``--help`` says of each command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from dse.cli.app import app
from in_python import IN_PYTHON

_WIDTH = 96
_INTRODUCTION = (
    "The `--help` text of each command, and the equivalent Python code. It needs `import dse` and",
    "`from dse import Space, Study, supplies`; `study` and `other` are studies, such as",
    '`Study.load("first")`, and `space` is a space, such as `Space.read("space.yaml")`.',
)


def command_line() -> str:
    """The page of all commands."""
    found = list(_commands(typer.main.get_command(app), ("dse",)))
    lines = ["# Command line", "", *_INTRODUCTION, ""]
    lines += ["| command | description |", "|---|---|"]
    lines += [f"| [`{' '.join(p)}`](#{'-'.join(p)}) | {_summary(c)} |" for p, c in found]
    for path, command in found:
        lines += ["", f"## {' '.join(path)} {{#{'-'.join(path)}}}", "", "```text"]
        lines += [_help(command, path), "```", "", *_in_python(path)]
    return "\n".join([*lines, ""])


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that do something, each with the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, below in command.commands.items():
        yield from _commands(below, (*path, name))


def _in_python(path: tuple[str, ...]) -> list[str]:
    """What is written in Python instead; the page of a new command cannot be made without it."""
    return ["In Python:", "", "```python", *IN_PYTHON[" ".join(path[1:])], "```"]


def _help(command: Any, path: tuple[str, ...]) -> str:
    context = command.make_context(
        " ".join(path), [], resilient_parsing=True, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    return str(command.get_help(context)).rstrip()


def _summary(command: Any) -> str:
    return str(command.help).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
