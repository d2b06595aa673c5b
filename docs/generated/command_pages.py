"""The reference of the command line: what ``--help`` says of each command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from dse.cli.app import app

_WIDTH = 96


def command_line() -> str:
    """The page of all commands."""
    found = list(_commands(typer.main.get_command(app), ("dse",)))
    lines = ["# Command line", "", "What `--help` says of each command.", ""]
    lines += ["| command | what |", "|---|---|"]
    lines += [f"| [`{' '.join(p)}`](#{'-'.join(p)}) | {_summary(c)} |" for p, c in found]
    for path, command in found:
        lines += ["", f"## {' '.join(path)} {{#{'-'.join(path)}}}", "", "```text"]
        lines += [_help(command, path), "```"]
    return "\n".join([*lines, ""])


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands that do something, each with the words that call it."""
    if not hasattr(command, "commands"):
        yield path, command
        return
    for name, below in command.commands.items():
        yield from _commands(below, (*path, name))


def _help(command: Any, path: tuple[str, ...]) -> str:
    context = command.make_context(
        " ".join(path), [], resilient_parsing=True, terminal_width=_WIDTH, max_content_width=_WIDTH
    )
    return str(command.get_help(context)).rstrip()


def _summary(command: Any) -> str:
    return str(command.help).split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
