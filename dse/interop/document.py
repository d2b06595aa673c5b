"""Another tool's JSON: its text with the places of its names, and what its names become."""

from __future__ import annotations

import json
import re
from typing import Any

from dse.core.expressions.parser import RESERVED
from dse.errors import SpecError

_LONGEST = 180
"""What is longer is no name; there is room for a number that tells two apart."""


class Document:
    """A JSON text with the places of its names, so that a mistake can be pointed at."""

    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self._text = text
        try:
            self.value: Any = json.loads(text)
        except ValueError as error:  # no JSON, or a number of thousands of digits
            line = getattr(error, "lineno", 1)
            raise SpecError(f"this is no JSON: {error}", where=f"{file}:{line}") from error
        except RecursionError as error:
            raise SpecError("this JSON is nested too deeply", where=f"{file}:1") from error
        if not isinstance(self.value, dict):
            raise SpecError("a JSON object is expected here", where=f"{file}:1")

    def place(self, name: str) -> str:
        """``file:line`` of the first line that holds the name as a JSON text."""
        spellings = [json.dumps(name), json.dumps(name, ensure_ascii=False)]
        at = max(0, *(self._text.find(spelling) for spelling in spellings))
        return f"{self.file}:{self._text.count(chr(10), 0, at) + 1}"


class NameMap:
    """Their names, each as one that our expressions can hold, and no two alike."""

    def __init__(self) -> None:
        self.ours: dict[str, str] = {}
        self._taken: set[str] = set()

    def add(self, theirs: str) -> str:
        """Our name for this one."""
        name = base = legal_name(theirs)
        number = 2
        while name in self._taken:
            name, number = f"{base}_{number}", number + 1
        self._taken.add(name)
        self.ours[theirs] = name
        return name

    @property
    def warnings(self) -> list[str]:
        """One sentence for each name that had to change."""
        return [
            f"{theirs!r} is called {ours} here: a name has letters, digits, '_' and '.'"
            for theirs, ours in self.ours.items()
            if theirs != ours
        ]


def legal_name(text: str) -> str:
    """The text as a name of our language: ``classifier:svc:C`` is ``classifier.svc.C``."""
    words = []
    for part in re.split(r"[.:]+", text.strip(".:")):
        word = re.sub(r"\W+", "_", part).strip("_") or "_"
        starts_well = word.isidentifier() and word not in RESERVED
        words.append(word if starts_well else f"_{word}")
    return ".".join(words)[:_LONGEST].rstrip(".")
