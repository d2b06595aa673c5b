"""JSON document of another tool, with line numbers for errors, and the mapping of its names."""

from __future__ import annotations

import json
import re
from typing import Any

from dse.core.expressions.parser import RESERVED
from dse.errors import SpecError

_LONGEST = 180
"""Length to which a name is cut; it leaves room for a numeric suffix that makes it unique."""


class Document:
    """Parsed JSON text that can find the line of a name, for error messages."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._text = text
        try:
            self.value: Any = json.loads(text)
        except ValueError as error:  # invalid JSON, or an integer of thousands of digits
            line = getattr(error, "lineno", 1)
            raise SpecError(f"this is no JSON: {error}", where=f"{file}:{line}") from error
        except RecursionError as error:
            raise SpecError("this JSON is nested too deeply", where=f"{file}:1") from error
        if not isinstance(self.value, dict):
            raise SpecError("a JSON object is expected here", where=f"{file}:1")

    def place(self, name: str) -> str:
        """Return ``file:line`` of the first occurrence of the name as a JSON string."""
        spellings = [json.dumps(name), json.dumps(name, ensure_ascii=False)]
        at = max(0, *(self._text.find(spelling) for spelling in spellings))
        return f"{self.file}:{self._text.count(chr(10), 0, at) + 1}"


class NameMap:
    """Mapping of another tool's names to distinct names that are valid in expressions."""

    def __init__(self) -> None:
        self.ours: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, theirs: str) -> str:
        """Add a name of the other tool; return the valid name that replaces it in the space."""
        name = base = legal_name(theirs)
        number = 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        self.ours[theirs] = name
        return name

    @property
    def warnings(self) -> list[str]:
        """Warnings, one for each name that was changed."""
        return [
            f"{theirs!r} is called {ours} here: a name has letters, digits, '_' and '.'"
            for theirs, ours in self.ours.items()
            if theirs != ours
        ]


def legal_name(text: str) -> str:
    """Return the text as a valid name in expressions: ``cls:svc:C`` becomes ``cls.svc.C``."""
    words = []
    for part in re.split(r"[.:]+", text.strip(".:")):
        word = re.sub(r"\W+", "_", part).strip("_") or "_"
        starts_well = word.isidentifier() and word not in RESERVED
        words.append(word if starts_well else f"_{word}")
    return ".".join(words)[:_LONGEST].rstrip(".")
