"""Commands and options that were renamed: the old names are accepted, with a warning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dse.cli.options import say
from dse.system.deprecation import UNTIL

COMMANDS: Mapping[tuple[str, str], str] = {("space", "why"): "explain"}
"""The present word for the last one of an old command."""

OPTIONS: Mapping[tuple[str, str], str] = {
    ("run", "--gain"): "--min-improvement",
    ("resume", "--gain"): "--min-improvement",
    ("compare", "--over"): "--budget-axis",
    ("compare", "--at"): "--budget",
    ("compare", "--may-differ"): "--ignore",
}
"""The present option for a command's old one."""


def rename_words(words: Sequence[str]) -> list[str]:
    """Return a command line with present names in place of old ones; warn of each on stderr."""
    if not words:
        return []
    renamed = list(words)
    command = (renamed[0], renamed[1]) if len(renamed) > 1 else ("", "")
    if command in COMMANDS:
        new = COMMANDS[command]
        _warn(f"dse {' '.join(command)}", f"dse {command[0]} {new}")
        renamed[1] = new
    for place, word in enumerate(renamed):
        if word == "--":
            break
        option, equals, value = word.partition("=")
        present = OPTIONS.get((renamed[0], option))
        if present is not None:
            _warn(option, present)
            renamed[place] = f"{present}{equals}{value}"
    return renamed


def _warn(old: str, new: str) -> None:
    say(f"warning: '{old}' is called '{new}' now; the old name is read until version {UNTIL}")
