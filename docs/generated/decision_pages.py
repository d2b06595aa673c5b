"""The list of design decisions, each with its title and what was chosen."""

from __future__ import annotations

import re
from pathlib import Path

INDEX = "decisions/index.md"

_FIRST = (
    re.compile(r"(?sm)^\*\*(?:(Superseded)|What we chose|Chosen)[^*]*\*\*:? *(.+?[.:])(?:\s|$)"),
    re.compile(r"(?sm)^()Chosen: (.+?[.:])(?:\s|$)"),
    re.compile(r"(?sm)^()\*\*[^*]+\*\*:? *(.+?[.:])(?:\s|$)"),
    re.compile(r"(?sm)^()(\w.+?[.:])(?:\s|$)"),
)
"""The first sentence of what was chosen, in the ways in which pages begin, best first."""
_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")


def decisions_in(docs: str | Path) -> list[str]:
    """The pages of the decisions, from the folder of the documentation, by their numbers."""
    folder = Path(docs) / "decisions"
    return [f"decisions/{path.name}" for path in sorted(folder.glob("[0-9]*.md"))]


def decisions(docs: str | Path) -> str:
    """The page that lists them."""
    rows = [_row(Path(docs) / page) for page in decisions_in(docs)]
    head = ["# Design decisions", "", "Decisions that may need an explanation, with reasons.", ""]
    return "\n".join([*head, "| | decision | in short |", "|---|---|---|", *rows, ""])


def _row(path: Path) -> str:
    title, _, text = path.read_text(encoding="utf-8").partition("\n")
    title = re.sub(r"^# (\d+\. )?", "", title)
    found = next((first for way in _FIRST if (first := way.search(text))), None)
    mark, told = found.groups() if found else ("", "")
    short = f"{mark}: {told}" if mark else told
    short = short[:1].upper() + short[1:]
    short = " ".join(_LINK.sub(r"\1", short).split()).rstrip(":").replace("|", "\\|")
    return f"| {int(path.name[:4])} | [{title}]({path.name}) | {short} |"
