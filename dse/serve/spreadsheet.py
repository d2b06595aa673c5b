"""Protection against CSV injection: no text of a study becomes a formula in a spreadsheet."""

from __future__ import annotations

import re

from dse.core.values import Value
from dse.interop.found_trials import FORMULA_SIGNS
from dse.report.json.columns import Sheet

_BEGINS = re.compile(rf'^(?=[\t\r\n])|(?:^|(?<=[;\t\r\n]))(?=[ "]*[{FORMULA_SIGNS}])')
"""Pattern of the positions at which a cell may begin with a formula sign.

In some locales spreadsheets split cells at semicolons and ignore the quotes of a text after a
comma. A cell may therefore also begin after a line break or a semicolon, and quotes after them
belong to that cell.

Source:
    OWASP: CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection.
"""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def harmless(sheet: Sheet) -> Sheet:
    """Return the table with an apostrophe before each text that a spreadsheet takes for a formula.

    Column names are treated alike. Numbers, and texts that consist of a number only, are not
    changed.
    """
    return {_text(name): list(map(_cell, cells)) for name, cells in sheet.items()}


def _cell(cell: Value | None) -> Value | None:
    return _text(cell) if isinstance(cell, str) else cell


def _text(words: str) -> str:
    return words if _NUMBER.fullmatch(words) else _BEGINS.sub("'", words)
