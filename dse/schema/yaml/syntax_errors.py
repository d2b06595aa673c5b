"""Explanations of YAML syntax errors in plain language instead of the parser's terms."""

from __future__ import annotations

import re

import yaml

from dse.errors import SpecError

_OPEN = {"{": "}", "[": "]"}
_QUOTED_KEY = re.compile(r"^\s*- (['\"]).*?\1\s*\S")
_KEY = re.compile(r"^\s*(?:- )?[\w.-]+:(?=[^\s/])")
_NO_COLON = re.compile(r"^\s*(?:- )?[\w.-]+ +[{\[]")
_UNQUOTED = re.compile(r":\s+([%@`])")


def explain_fault(error: yaml.MarkedYAMLError, text: str, path: str) -> SpecError:
    """Return the error for a YAML syntax error: its line, its likely cause and a fix.

    Args:
        error: the parser's error.
        text: the text of the complete file.
        path: the file's path for display.
    """
    lines = text.splitlines() or [""]
    at = min(error.problem_mark.line if error.problem_mark else 0, len(lines) - 1)
    begun = min(error.context_mark.line, at) if error.context_mark else at
    line, problem, hint = _fault(error, lines, begun, at)
    return SpecError(problem, where=f"{path}:{line + 1}", hint=hint)


def _fault(
    error: yaml.MarkedYAMLError, lines: list[str], begun: int, at: int
) -> tuple[int, str, str]:
    context, problem = error.context or "", error.problem or error.context or ""
    tabbed = next((n for n in (at, at - 1) if n >= 0 and "\t" in _indent(lines[n])), None)
    if tabbed is not None:
        return tabbed, "a tab indents this line", "indent by spaces: put spaces where the tab is"
    if "scalar" in context and "quoted" in context:
        hint = "close it, or put the other kind of quotes around a text that holds one"
        return begun, "a quote is opened here and never closed", hint
    if "flow" in context:
        return _flow_fault(lines, begun, at)
    return _block_fault(lines, at, problem)


def _flow_fault(lines: list[str], begun: int, at: int) -> tuple[int, str, str]:
    """Return line, problem and hint for a syntax error within braces or brackets."""
    part = "\n".join(lines[begun : at + 1])
    opened = [mark for mark in _OPEN if lines[begun].count(mark) > lines[begun].count(_OPEN[mark])]
    if opened:
        mark = opened[-1]
        return begun, f"{mark!r} is opened here and never closed", f"add {_OPEN[mark]!r}"
    if part.count("'") % 2 or part.count('"') % 2:
        return begun, "a quote is opened here and never closed", "add the closing quote"
    hint = "within [...] and {...} a text with brackets, commas or ': ' of its own goes in quotes"
    return at, "this is no YAML: a ',' or the closing bracket is missing", hint


def _block_fault(lines: list[str], at: int, problem: str) -> tuple[int, str, str]:
    """Return line, problem and hint for a syntax error outside of braces and brackets."""
    line, before = lines[at], lines[at - 1] if at else ""
    if found := _UNQUOTED.search(line):
        hint = f"put the text in quotes: it begins with {found[1]!r}"
        return at, f"{found[1]!r} cannot begin a text", hint
    if _QUOTED_KEY.match(line):
        hint = "put all of it in quotes: - \"'fc' in dense\""
        return at, "a quote ends before its text does", hint
    for place in (at, at - 1):
        if place >= 0 and _KEY.match(lines[place]):
            return place, "a space is missing after the colon", "write 'key: value'"
        if place >= 0 and _NO_COLON.match(lines[place]):
            return place, "a colon is missing after the key", "write 'key: value'"
    if "mapping values are not allowed" in problem:
        hint = "put a text that holds ': ' in quotes; else look for a wrong indentation"
        return at, "there is a second ': ' here", hint
    own, above = len(_indent(line)), len(_indent(before))
    if own != above and line.strip():
        told = f"this line is indented by {own} spaces, the one above by {above}"
        return at, f"the indentation does not fit: {told}", "indent entries of one section alike"
    hint = "look for a missing colon, quote or indentation just before"
    return at, f"this is no YAML: {problem}", hint


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
