"""Mistakes: collected, so that a reader sees all of a file's and not just the first."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dse.errors import DseError, SpecError, SpecErrors
from dse.schema.yaml.source import SourceDocument

MOST_TOLD = 60
"""A file that is no space at all would be answered with thousands."""


class HiddenError(SpecError):
    """Error about a name whose own mistake was reported already, so that this one need not be."""


class ErrorCollector:
    """Collection of errors; one that is found twice is reported once."""

    def __init__(self) -> None:
        self.errors: list[DseError] = []
        self.unchecked: dict[str, None] = {}
        self._told: set[tuple[str, str]] = set()

    def add(self, error: DseError, where: str = "") -> None:
        """Keep an error, with a place if it has none."""
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            if isinstance(one, HiddenError):
                self.skip(where)
                continue
            placed = one.at(where) if where and not one.where else one
            key = (placed.where, placed.problem)
            if key not in self._told:
                self._told.add(key)
                self.errors.append(placed)

        for part in error.unchecked if isinstance(error, SpecErrors) else ():
            self.skip(part)

    def add_in(self, error: DseError, source: SourceDocument, path: Sequence[str | int]) -> None:
        """Keep an error of a part of a file; each of several at its own line."""
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            self.add(one, source.place([*path, *one.part]))

    def skip(self, what: str) -> None:
        """Note a part that cannot be checked because of mistakes elsewhere: a place, or words."""
        self.unchecked[what] = None

    def check(self) -> None:
        """Raise what was collected. Raises SpecErrors if there is any."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=self._reading_order())
        told, rest = errors[:MOST_TOLD], len(errors) - MOST_TOLD
        if rest > 0:
            told = [*told, SpecError(f"and {rest} more mistakes like these", where=told[-1].where)]
        lines = {error.where for error in self.errors}
        raise SpecErrors(told, [part for part in self.unchecked if part and part not in lines])

    def _reading_order(self) -> Callable[[DseError], tuple[int, int]]:
        """By file in the order in which they first had a mistake, then by line."""
        files = dict.fromkeys(error.where.rpartition(":")[0] for error in self.errors)
        rank = {file: place for place, file in enumerate(files)}

        def place(error: DseError) -> tuple[int, int]:
            file, _, line = error.where.rpartition(":")
            return rank[file], int(line) if line.isdecimal() else 0

        return place
