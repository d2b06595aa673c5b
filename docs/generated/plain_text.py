"""Docstrings as Markdown: roles, literals and signs that Markdown would take for its own."""

from __future__ import annotations

import re

_ROLE = re.compile(r":\w+:`~?\.?(?:[\w.]+\.)?(\w+)`")
_LITERAL = re.compile(r"``(.+?)``", re.DOTALL)
_SIGNS = re.compile(r"(?<!`)([*<])")
_CODE = re.compile(r"(`[^`]*`)")


def prose(text: str) -> str:
    """A docstring's text, on one line for each paragraph."""
    text = _LITERAL.sub(r"`\1`", _ROLE.sub(r"`\1`", text))
    paragraphs = (" ".join(part.split()) for part in text.split("\n\n"))
    return "\n\n".join(escaped(part) for part in paragraphs)


def cell(text: str) -> str:
    """Text that stands in a cell of a table; within code a bar is no border."""
    parts = _CODE.split(text.replace("\n\n", " "))
    return "".join(p if p.startswith("`") else p.replace("|", "\\|") for p in parts)


def escaped(text: str) -> str:
    """Markdown with its signs escaped where it is not code."""
    parts = _CODE.split(text)
    return "".join(p if p.startswith("`") else _SIGNS.sub(r"\\\1", p) for p in parts)
