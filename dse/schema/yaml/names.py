"""Validity of the names of parameters, lists, data, arguments and includes."""

from __future__ import annotations

import re

from dse.core.expressions.parser import RESERVED

NAME_HINT = "letters, digits and '_', a letter first, and no word of the expression language"

_LONGEST = 200
_WORD = re.compile(r"[^\W\d]\w*")


def is_name(text: str) -> bool:
    """Return whether the text is a valid name: identifiers joined by dots, none a reserved word."""
    return len(text) <= _LONGEST and all(
        _WORD.fullmatch(word) and word not in RESERVED for word in text.split(".")
    )
