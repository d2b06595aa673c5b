"""Collection of errors, so that all errors of a file are reported and not only the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dse.errors import DseError, SpecError, SpecErrors
from dse.schema.yaml.source import SourceDocument

MOST_REPORTED = 60
"""Maximum number of errors reported; a file that is not a space at all would give thousands."""


class HiddenError(SpecError):
    """Error in a rule that is due to another reported error; it is not reported itself."""


class ErrorCollector:
    """Collector of distinct errors.

    It also collects the parts of the files that could not be checked because of them.
    """

    def __init__(self) -> None:
        self.errors: list[DseError] = []
        self.unchecked: dict[str, None] = {}
        self._reported: set[tuple[str, str]] = set()

    def add(self, error: DseError, where: str = "") -> None:
        """Record an error, or each error of a :class:`SpecErrors`, if it is not recorded yet.

        ``where`` is the location of an error without one of its own. A :class:`HiddenError` is not
        recorded; the location is recorded as unchecked instead.
        """
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            if isinstance(one, HiddenError):
                self.skip(where)
                continue
            placed = one.at(where) if where and not one.where else one
            key = (placed.where, placed.problem)
            if key not in self._reported:
                self._reported.add(key)
                self.errors.append(placed)

        for part in error.unchecked if isinstance(error, SpecErrors) else ():
            self.skip(part)

    def add_in(self, error: DseError, source: SourceDocument, path: Sequence[str | int]) -> None:
        """Record an error at its location within the part of a file at the key path ``path``.

        Of a :class:`SpecErrors`, each error is recorded at its own line.
        """
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            self.add(one, source.place([*path, *one.part]))

    def skip(self, what: str) -> None:
        """Record a part of a file, by location or description, that errors left unchecked."""
        self.unchecked[what] = None

    def check(self) -> None:
        """Raise SpecErrors with the recorded errors, sorted by file and line, if there are any."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=self._reading_order())
        reported, rest = errors[:MOST_REPORTED], len(errors) - MOST_REPORTED
        if rest > 0:
            reported = [
                *reported,
                SpecError(f"and {rest} more mistakes like these", where=reported[-1].where),
            ]
        lines = {error.where for error in self.errors}
        raise SpecErrors(reported, [part for part in self.unchecked if part and part not in lines])

    def _reading_order(self) -> Callable[[DseError], tuple[int, int]]:
        """Return a sort key for errors: file, in order of first recorded errors, then line."""
        files = dict.fromkeys(error.where.rpartition(":")[0] for error in self.errors)
        rank = {file: place for place, file in enumerate(files)}

        def place(error: DseError) -> tuple[int, int]:
            file, _, line = error.where.rpartition(":")
            return rank[file], int(line) if line.isdecimal() else 0

        return place
