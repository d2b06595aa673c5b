"""Exceptions shown to users, each with problem, location and hint, and did-you-mean suggestions."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence

from dse.system.credentials import mask
from dse.system.terminal_text import visible

_PARTS = 8
"""Maximum number of unchecked parts listed in a message."""

_LONGEST_MESSAGE = 8_000
"""Maximum characters of a message; a value in it may be a list of a million numbers."""


class DseError(Exception):
    """Error that the user can fix; passwords of URLs are masked in its texts.

    Args:
        problem: what is wrong.
        where: the location, such as ``file:line``.
        hint: how to fix it.
        part: the key path to the error within the value that the raising code received; a caller
            that has the file replaces it by a line number.
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
        """Return the same error with a location, such as ``file:line``."""
        return type(self)(self.problem, where=where, hint=self.hint, part=self.part)

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
    """Return the text; if it is too long, only its start and its end."""
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


class SpecError(DseError):
    """Invalid content of a space or study file."""


class SpecErrors(DseError):  # noqa: N818 - it is several errors
    """Several errors raised as one, such as every :class:`SpecError` of one file.

    ``unchecked`` are the sections that could not be checked because of these errors, each by its
    location or a description.
    """

    def __init__(self, errors: Sequence[DseError], unchecked: Sequence[str] = ()) -> None:
        self.errors = tuple(errors)
        self.unchecked = tuple(unchecked)
        last = [unchecked_words(unchecked, len(errors))] if unchecked else []
        text = "\n".join([*map(str, errors), *last])
        super().__init__(text)
        self.problem = text  # not shortened: each of the errors is already

    def at(self, where: str) -> DseError:
        """Return the same errors, with the location ``where`` for those that have none."""
        placed = [one if one.where else one.at(where) for one in self.errors]
        return SpecErrors(placed, self.unchecked)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return SpecErrors, (self.errors, self.unchecked)


def unchecked_words(parts: Sequence[str], mistakes: int) -> str:
    """Return a sentence that lists the sections of a file that errors left unchecked.

    Args:
        parts: the locations or descriptions of the sections.
        mistakes: the number of errors.
    """
    count = len(parts)
    what = "1 part was" if count == 1 else f"{count} parts were"
    cause = "these" if mistakes > 1 else "this"
    shown = ", ".join(parts[:_PARTS]) + (", ..." if count > _PARTS else "")
    return f"{what} not checked because of {cause}: {shown}"


def raise_all(errors: Sequence[DseError]) -> None:
    """Raise the given errors, if any: a single one itself, several as one SpecErrors."""
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
    """Violation of a space's domain or constraint by a design."""


class PluginError(DseError):
    """Plug-in or asset that is unknown or unavailable, or a plug-in with invalid options."""


class StudyError(DseError):
    """Study that does not exist, conflicts with an existing one, or cannot be compared."""


class Overtaken(StudyError):  # noqa: N818 - a conflict, not an error: another process was first
    """Raised if another process has added trials since this process read the study."""


class StorageError(DseError):
    """Failure to open, read or write the storage of studies."""


class StorageUnavailableError(StorageError):
    """Temporary failure of the storage: the same call may succeed later.

    Whether the call took effect is unknown to the caller.
    """


class StorageRefusedError(StorageUnavailableError):
    """Refusal of writes by a storage that is full, read-only or deleted; a user must intervene."""


class OutageError(StorageError):
    """Storage outage that lasted longer than the run's ``storage_patience``."""


class InfeasibleError(DseError):
    """Infeasible design, raised by an evaluator; the text ``problem`` states the reason."""


class EvaluationError(DseError):
    """Failed evaluation of a design, raised by an evaluator; ``problem`` states the reason."""


_COMPARED = 2_000
_SHOWN = 60
_CLOSEST = 12
_SAME = 3
"""Maximum number of equally good matches suggested; more are not informative."""
_STEM = 3
"""Minimum length of a shared prefix of two words for a suggestion."""
_LONGEST = 80

_SIGNS = str.maketrans("", "", "-_. ")
"""Deletion of the separators that users often omit or confuse."""


def nearest(name: object, valid: Iterable[str], command: str = "") -> str:
    """Return a hint that suggests the closest valid name, or else lists the valid names.

    A name without dots is also compared with the last part of dotted names: ``time`` suggests
    ``bench.time``. Without a close match, the hint lists all valid names, or the closest of many.
    The hint is empty if there are no valid names.

    Args:
        name: the invalid name, as written.
        valid: the valid names.
        command: the command that lists all valid names, if any.
    """
    names, written = sorted(set(valid)), str(name)  # YAML has numbers where a name should be
    same = [one for one in names if _plain(one) == _plain(written)]
    same = same or [one for one in names if _plain(one.rpartition(".")[2]) == _plain(written)]
    if 0 < len(same) <= _SAME:
        return f"did you mean {' or '.join(map(repr, same))}?"
    near = names if len(names) <= _COMPARED else [n for n in names if n[:2] == written[:2]]
    close = difflib.get_close_matches(written[:200], near[:_COMPARED], n=8, cutoff=0.6)
    misspelt = [one for one in close if is_misspelt(written, one)]
    longer = [one for one in names if one.startswith(f"{written}_")]  # ``time_ms`` for ``time``
    found = [*(longer if len(longer) == 1 else []), *misspelt[:1]] or _stems(written, near)
    if found:
        return f"did you mean {' or '.join(map(repr, dict.fromkeys(found)))}?"
    if len(names) <= _SHOWN:
        return f"valid: {', '.join(names)}" if names else ""
    some = difflib.get_close_matches(written[:200], near[:_COMPARED], n=_CLOSEST, cutoff=0.0)
    rest = f"; {command} lists all" if command else ""
    return f"{len(names)} are valid, the closest: {', '.join(some)}{rest}"


def is_misspelt(written: str, name: str) -> bool:
    """Return whether ``written`` is probably a misspelling of ``name``.

    A text is a misspelling if the edit distance is at most one, or at most a third of the longer
    name's length, or if it abbreviates the name. A common dotted prefix and the scenario after
    ``@`` are ignored.
    """
    one, other = written.lower(), name.lower()
    other = other if "@" in one else other.partition("@")[0]  # ignore the scenario
    head, dot, _ = one.rpartition(".")
    if dot and other.startswith(head + dot):
        one, other = one[len(head) + 1 :], other[len(head) + 1 :]
    if max(len(one), len(other)) > _LONGEST:
        return True  # a formula: too long to compare further
    return _shortens(one, other) or _edits(one, other) <= max(1, max(len(one), len(other)) // 3)


def _shortens(one: str, other: str) -> bool:
    """Return whether a word abbreviates the other by omitting letters: ``pwr`` for ``power``."""
    letters = iter(other)
    whole = one[:1] == other[:1] and 2 * len(one) >= len(other)
    return whole and all(letter in letters for letter in one)


def _edits(one: str, other: str) -> int:
    """Return the edit distance of two strings (optimal string alignment).

    An edit inserts, deletes or replaces a character, or swaps two adjacent ones.
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
    """Return the valid name that shares a word stem with ``written``, as a list.

    The list is empty unless exactly one name does. Two words share a stem if one is a prefix of the
    other: ``population`` matches ``pop_size``.
    """
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
    """Return a name in lower case without separators: ``greybox`` for ``Grey-Box``."""
    return name.casefold().translate(_SIGNS)


def _rebuilt(
    kind: type[DseError], problem: str, where: str, hint: str, part: tuple[str | int, ...]
) -> DseError:
    return kind(problem, where=where, hint=hint, part=part)
