"""A sheet that is harmless in a spreadsheet: no text of a study is a formula there."""

from __future__ import annotations

import re

from dse.core.values import Value
from dse.interop.found_trials import FORMULA_SIGNS
from dse.report.json.columns import Sheet

_BEGINS = re.compile(rf'^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=[ "]*[{FORMULA_SIGNS}])')
"""Where a cell may begin with what makes a formula of it.

Spreadsheets of some countries divide cells at semicolons, and then do not see the quotes of a text
that stands behind a comma: a line break and a semicolon may begin a cell too, and quotes behind
them are those of that cell.

Source:
    OWASP: CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def harmless(sheet: Sheet) -> Sheet:
    """The sheet with an apostrophe before whatever would begin a formula, names included.

    Numbers, and texts that are nothing but a number, stay as they are.
    """
    return {_text(name): list(map(_cell, cells)) for name, cells in sheet.items()}


def _cell(cell: Value | None) -> Value | None:
    return _text(cell) if isinstance(cell, str) else cell


def _text(words: str) -> str:
    return words if _NUMBER.fullmatch(words) else _BEGINS.sub("'", words)
