"""Every error that a user can meet: what is wrong, where, and how to mend it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from dse.system.credentials import mask
from dse.system.terminal_text import visible

_PARTS = 8
"""So many parts that were not checked are named in a message."""

_LONGEST_MESSAGE = 8_000
"""Letters of a message: a value that it shows may be a list of a million numbers."""


class DseError(Exception):
    """A mistake that the reader of the message can mend; passwords of URLs are hidden in it.

    ``part`` is for who raises it without knowing the file: the keys that lead to the mistake from
    what he was given, so that who does know tells its own line.
    """

    def __init__(
        self, problem: str, *, where: str = "", hint: str = "", part: Sequence[str | int] = ()
    ) -> None:
        self.problem = _shorten(mask(problem))
        self.where = mask(where)
        self.hint = _shorten(mask(hint))
        super().__init__(self.problem)
        self.part = tuple(part)

    def at(self, where: str) -> DseError:
        """Return the same error, with its place."""
        return type(self)(self.problem, where=where, hint=self.hint)

    def __str__(self) -> str:
        place = f"{self.where}: " if self.where else ""
        mend = f"\n  hint: {self.hint}" if self.hint else ""
        return visible(f"{place}{self.problem}{mend}")

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows in place of a traceback."""
        return [f"{type(self).__name__}: {self}"]

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _rebuilt, (type(self), self.problem, self.where, self.hint, self.part)


def _shorten(text: str) -> str:
    """Return the text, or the start and the end of a long one."""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


class SpecError(DseError):
    """Invalid content of a space or study file."""


class SpecErrors(DseError):  # noqa: N818 - it is several errors
    """All mistakes of one file at once; each is a :class:`SpecError`.

    ``unchecked`` are the parts that could not be checked because of these mistakes, each by its
    place or in words.
    """

    def __init__(self, errors: Sequence[DseError], unchecked: Sequence[str] = ()) -> None:
        self.errors = tuple(errors)
        self.unchecked = tuple(unchecked)
        last = [unchecked_words(unchecked, len(errors))] if unchecked else []
        text = "\n".join([*map(str, errors), *last])
        super().__init__(text)
        self.problem = text  # of errors that are short, each

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return SpecErrors, (self.errors, self.unchecked)


def unchecked_words(parts: Sequence[str], mistakes: int) -> str:
    """Return the sentence that lists the parts that these mistakes kept from being checked."""
    count = len(parts)
    what = "1 part was" if count == 1 else f"{count} parts were"
    cause = "these" if mistakes > 1 else "this"
    shown = ", ".join(parts[:_PARTS]) + (", ..." if count > _PARTS else "")
    return f"{what} not checked because of {cause}: {shown}"


def raise_all(errors: Sequence[DseError]) -> None:
    """Raise the errors: one as it is, several together, none not at all."""
    flat = [
        one
        for error in errors
        for one in (error.errors if isinstance(error, SpecErrors) else (error,))
    ]
    if len(flat) > 1:
        raise SpecErrors(flat)
    for error in flat:
        raise error


class DesignError(DseError):
    """A design breaks a rule of its space."""


class PluginError(DseError):
    """A plug-in, or an asset of one, is unknown, cannot be had, or was given unknown options."""


class StudyError(DseError):
    """A study does not exist, exists as something else, or cannot be compared."""


class Overtaken(StudyError):  # noqa: N818 - it is no mistake: another process was first
    """Somebody else added trials in between: look at them and ask again."""


class StorageError(DseError):
    """The storage cannot be opened, read or written."""


class StorageUnavailableError(StorageError):
    """The storage does not answer for now: the same call may succeed later.

    Raised by storages. Whether the call took effect is unknown to the caller.
    """


class StorageRefusedError(StorageUnavailableError):
    """The storage takes no writes: full, read-only, or gone. That heals only if somebody acts."""


class OutageError(StorageError):
    """The storage was away for longer than a run's patience."""


class InfeasibleError(DseError):
    """Raised by an evaluator: the design cannot exist; the problem is the reason."""


class EvaluationError(DseError):
    """Raised by an evaluator: the design could not be measured; the problem is the reason."""


_COMPARED = 2_000
_SHOWN = 60
_CLOSEST = 12
_SAME = 3
"""So many names with one last word are told; more say nothing."""
_STEM = 3
"""A name that begins with so many letters of another one, up to a mark, is taken for it."""
_LONGEST = 80

_SIGNS = str.maketrans("", "", "-_. ")
"""Signs that a name is often written without, or with another one of them."""


def nearest(name: object, valid: Iterable[str], command: str = "") -> str:
    """A hint that names the valid name closest to ``name``, or all of them; of many, the closest.

    A name that is the last word of dotted ones stands for them: ``time`` for ``bench.time``. Names
    that are far from it are not suggested. Where there is no valid name at all the hint is empty.

    Args:
        name: what was written.
        valid: what there is.
        command: what lists all of it.
    """
    names, written = sorted(set(valid)), str(name)  # YAML has numbers where a name should be
    same = [one for one in names if _plain(one) == _plain(written)]
    same = same or [one for one in names if _plain(one.rpartition(".")[2]) == _plain(written)]
    if 0 < len(same) <= _SAME:
        return f"did you mean {' or '.join(map(repr, same))}?"
    near = names if len(names) <= _COMPARED else [n for n in names if n[:2] == written[:2]]
    close = difflib.get_close_matches(written[:200], near[:_COMPARED], n=8, cutoff=0.6)
    misspelt = [one for one in close if is_misspelt(written, one)]
    for one in (*misspelt, *_stems(written, near)):
        return f"did you mean {one!r}?"
    if len(names) <= _SHOWN:
        return f"valid: {', '.join(names)}" if names else ""
    some = difflib.get_close_matches(written[:200], near[:_COMPARED], n=_CLOSEST, cutoff=0.0)
    rest = f"; {command} lists all" if command else ""
    return f"{len(names)} are valid, the closest: {', '.join(some)}{rest}"


def is_misspelt(written: str, name: str) -> bool:
    """True if few letters are to be changed: at most a third.

    Of dotted names with one beginning it is a third of the rest.
    """
    one, other = written.lower(), name.lower()
    other = other if "@" in one else other.partition("@")[0]  # under any scenario
    head, dot, _ = one.rpartition(".")
    if dot and other.startswith(head + dot):
        one, other = one[len(head) + 1 :], other[len(head) + 1 :]
    if max(len(one), len(other)) > _LONGEST:
        return True  # a formula, whose words are compared no further
    return _shortens(one, other) or _edits(one, other) <= max(1, max(len(one), len(other)) // 3)


def _shortens(one: str, other: str) -> bool:
    """True if a word is the other one without some letters: ``pwr`` for ``power``."""
    letters = iter(other)
    whole = one[:1] == other[:1] and 2 * len(one) >= len(other)
    return whole and all(letter in letters for letter in one)


def _edits(one: str, other: str) -> int:
    """Return the number of edits between two strings.

    An edit adds, drops or replaces a letter, or swaps it with the next one.
    """
    before, row = list[int](), list(range(len(other) + 1))
    for i, letter in enumerate(one, start=1):
        last, before, row = before, row, [i]
        for j, mark in enumerate(other, start=1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != mark))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == mark:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def _stems(written: str, names: Iterable[str]) -> list[str]:
    """The only name of which one word begins what was written, or is begun by it: ``pop_size``."""
    low = written.lower()
    if len(low) < _STEM or not low.isalpha():
        return []
    found = []
    for name in names:
        words = [word for word in re.split(r"[^a-z0-9]+", name.lower()) if len(word) >= _STEM]
        if any(low.startswith(word) or word.startswith(low) for word in words):
            found.append(name)
    return found if len(found) == 1 else []


def _plain(name: str) -> str:
    """Return a name without case and signs: ``greybox`` of ``Grey-Box``."""
    return name.casefold().translate(_SIGNS)


def _rebuilt(
    kind: type[DseError], problem: str, where: str, hint: str, part: tuple[str | int, ...]
) -> DseError:
    return kind(problem, where=where, hint=hint, part=part)
