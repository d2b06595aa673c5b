"""Parsing of number-format names into positional items and options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dse.errors import SpecError, nearest

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    """Name of a number format, parsed into family, items and options.

    The name has the form ``family:first,second,flag,key=value``; the value of a flag is empty.
    """

    text: str
    first: tuple[str, ...]
    options: Mapping[str, str]

    @staticmethod
    def of(text: str, *, firsts: int, known: Sequence[str]) -> FormatSpec:
        """Parse a format name with up to ``firsts`` positional items and the options ``known``.

        Raises:
            SpecError: an option is unknown or repeated.
        """
        items = [item for item in text.partition(":")[2].split(",") if item]
        options: dict[str, str] = {}
        for item in items[firsts:]:
            name, _, value = item.partition("=")
            if name not in known:
                near = nearest(name, known)
                raise SpecError(f"the format {text!r} has no option {name!r}", hint=near)
            if name in options:
                raise SpecError(f"the format {text!r} repeats the option {name!r}")
            options[name] = value
        return FormatSpec(text=text, first=tuple(items[:firsts]), options=options)

    def parts(self, place: int, pattern: str, example: str) -> tuple[str, ...]:
        """Match one positional item of a format name with a pattern; return the match's groups.

        Raises:
            SpecError: the item is missing or does not match.
        """
        found = re.fullmatch(pattern, self.first[place]) if place < len(self.first) else None
        if found is None:
            raise SpecError(f"the format {self.text!r} is not complete", hint=f"as in {example!r}")
        return found.groups()

    def whole(self, name: str, written: str, ends: tuple[int, int], *, letter: str = "") -> int:
        """Parse the text ``written`` as an integer in the closed range ``ends``.

        ``letter`` is the text before the number in the format name, used to correct the name in the
        hint.

        Raises:
            SpecError: it is not an integer or out of range; the hint is the corrected text.
        """
        low, high = ends
        if not re.fullmatch(r"-?\d{1,9}", written):
            raise SpecError(
                f"in the format {self.text!r}, {name} is {written!r}", hint="a whole number"
            )
        value = int(written)
        if not low <= value <= high:
            mended = self._correct_text(letter + written, letter + str(min(max(value, low), high)))
            raise SpecError(
                f"in the format {self.text!r}, {name} is {value}",
                hint=f"{name} goes from {low} to {high}; did you mean {mended!r}?",
            )
        return value

    def word(self, name: str, valid: Sequence[Word], default: Word) -> Word:
        """Return a word option of the format name, or its default if absent.

        The word must be one of ``valid``.

        Raises:
            SpecError: it has another value.
        """
        value = self.options.get(name, default)
        found = next((word for word in valid if word == value), None)
        if found is None:
            raise SpecError(
                f"in the format {self.text!r}, {name} cannot be {value!r}",
                hint=nearest(value, valid),
            )
        return found

    def number(self, name: str, ends: tuple[int, int], default: int) -> int:
        """Return an integer option of the format name, or its default if absent.

        The integer must be in the closed range ``ends``.

        Raises:
            SpecError: it is not an integer or out of range.
        """
        if name not in self.options:
            return default
        return self.whole(name, self.options[name], ends, letter=f"{name}=")

    def one_of(self, flags: Sequence[Word]) -> Word | None:
        """Return which of several mutually exclusive flags the format name has, or ``None``.

        Raises:
            SpecError: more than one is given.
        """
        found = [name for name in flags if name in self.options]
        if len(found) > 1:
            raise SpecError(
                f"the format {self.text!r} has both {found[0]!r} and {found[1]!r}",
                hint="leave one of them out",
            )
        return found[0] if found else None

    def _correct_text(self, wrong: str, right: str) -> str:
        head, _, rest = self.text.partition(":")
        if rest and wrong in rest:
            return f"{head}:{rest.replace(wrong, right, 1)}"
        return self.text.replace(wrong, right, 1)
