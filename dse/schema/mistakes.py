"""Mistakes: collected, so that a reader sees all of a file's and not just the first."""

from __future__ import annotations

from collections.abc import Callable

from dse.errors import DseError, SpecError, SpecErrors

MOST_TOLD = 60
"""A file that is no space at all would be answered with thousands."""


class HiddenError(SpecError):
    """About a name whose own mistake was told already, so that this one need not be."""


class Mistakes:
    """Collects errors; one that is found twice is told once."""

    def __init__(self) -> None:
        self.errors: list[DseError] = []
        self._told: set[tuple[str, str]] = set()

    def add(self, error: DseError, where: str = "") -> None:
        """Keep an error, with a place if it has none."""
        for one in error.errors if isinstance(error, SpecErrors) else (error,):
            if isinstance(one, HiddenError):
                continue
            placed = one.at(where) if where and not one.where else one
            key = (placed.where, placed.problem)
            if key not in self._told:
                self._told.add(key)
                self.errors.append(placed)

    def check(self) -> None:
        """Raise what was collected. Raises SpecErrors if there is any."""
        if not self.errors:
            return
        errors = sorted(self.errors, key=self._reading_order())
        told, rest = errors[:MOST_TOLD], len(errors) - MOST_TOLD
        if rest > 0:
            told = [*told, SpecError(f"and {rest} more mistakes like these", where=told[-1].where)]
        raise SpecErrors(told)

    def _reading_order(self) -> Callable[[DseError], tuple[int, int]]:
        """By file in the order in which they first had a mistake, then by line."""
        files = dict.fromkeys(error.where.rpartition(":")[0] for error in self.errors)
        rank = {file: place for place, file in enumerate(files)}

        def place(error: DseError) -> tuple[int, int]:
            file, _, line = error.where.rpartition(":")
            return rank[file], int(line) if line.isdecimal() else 0

        return place
