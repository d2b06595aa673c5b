"""A format's text taken apart: the family, what stands first, and the options."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from dse.errors import SpecError, nearest

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class FormatSpec:
    """``family:first,second,flag,key=value``; a flag is an option without a value."""

    text: str
    first: tuple[str, ...]
    options: Mapping[str, str]

    @staticmethod
    def of(text: str, *, firsts: int, known: Sequence[str]) -> FormatSpec:
        """The parts of a text whose family has so many positions and knows these options.

        Raises:
            SpecError: a position is missing, or an option is unknown or told twice.
        """
        items = [item for item in text.partition(":")[2].split(",") if item]
        options: dict[str, str] = {}
        for item in items[firsts:]:
            name, _, value = item.partition("=")
            if name not in known:
                near = nearest(name, known)
                raise SpecError(f"the format {text!r} has no option {name!r}", hint=near)
            if name in options:
                raise SpecError(f"the format {text!r} says {name!r} twice")
            options[name] = value
        return FormatSpec(text=text, first=tuple(items[:firsts]), options=options)

    def parts(self, place: int, pattern: str, example: str) -> tuple[str, ...]:
        """Return the groups that this pattern matches in the text at a position.

        Raises:
            SpecError: it does not fit.
        """
        found = re.fullmatch(pattern, self.first[place]) if place < len(self.first) else None
        if found is None:
            raise SpecError(f"the format {self.text!r} is not complete", hint=f"as in {example!r}")
        return found.groups()

    def whole(self, name: str, written: str, ends: tuple[int, int], *, letter: str = "") -> int:
        """A whole number within the ends; ``letter`` stands before it in the text.

        Raises:
            SpecError: it is none, or not within; the hint is the text with the nearest that is.
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
        """The value of an option that is one of some words.

        Raises:
            SpecError: it is another.
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
        """The value of an option that is a whole number.

        Raises:
            SpecError: it is none, or not within the ends.
        """
        if name not in self.options:
            return default
        return self.whole(name, self.options[name], ends, letter=f"{name}=")

    def one_of(self, flags: Sequence[Word]) -> Word | None:
        """Return the one of these options that is given, or ``None``.

        Raises:
            SpecError: more than one is.
        """
        found = [name for name in flags if name in self.options]
        if len(found) > 1:
            raise SpecError(
                f"the format {self.text!r} says both {found[0]!r} and {found[1]!r}",
                hint="leave one of them out",
            )
        return found[0] if found else None

    def _correct_text(self, wrong: str, right: str) -> str:
        head, _, rest = self.text.partition(":")
        if rest and wrong in rest:
            return f"{head}:{rest.replace(wrong, right, 1)}"
        return self.text.replace(wrong, right, 1)
