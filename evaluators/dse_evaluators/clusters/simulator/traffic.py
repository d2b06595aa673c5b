"""Request traces: arrival times and token counts, drawn at random or read from a CSV file."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError
from dse_evaluators.csv_files.csv_rows import CsvRow, parse_number, read_csv_rows

_COLUMNS = ("arrival", "prompt", "answer")

_LONGEST = 2.0**31


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTrace:
    """Trace of r requests in the order of arrival; every field is (r,)."""

    arrival: Floats
    """Seconds, at a mean rate of one request per second or as in the file; unused if closed."""
    prompt: Ints
    """Tokens, at least 1."""
    answer: Ints
    """Tokens, at least 1."""

    @property
    def full(self) -> Ints:
        """Total tokens of each request, prompt plus answer, (r,)."""
        return self.prompt + self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """Lognormal distribution of a number of tokens per request; constant if ``spread`` is 0."""

    mean: float
    spread: float = 0.0
    """Coefficient of variation: standard deviation over the mean."""

    def of(self, normal: Floats) -> Ints:
        """Return lognormal token counts, at least 1, computed from standard normal draws."""
        variance = np.log1p(self.spread**2)
        drawn = self.mean * np.exp(np.sqrt(variance) * normal - variance / 2.0)
        return np.maximum(np.rint(drawn), 1.0).astype(np.int64)


def draw_traffic(count: int, prompt: Lengths, answer: Lengths, *, seed: int) -> RequestTrace:
    """Draw ``count`` requests with Poisson arrivals at a mean rate of one per second.

    The same seed gives the same arrival gaps and the same quantiles of lengths, for any length
    distribution: designs are compared under common random numbers.
    """
    rng = np.random.default_rng([20_220_711, seed])
    gaps = rng.exponential(size=count)
    normal = rng.standard_normal((count, 2))
    return RequestTrace(
        arrival=np.cumsum(gaps), prompt=prompt.of(normal[:, 0]), answer=answer.of(normal[:, 1])
    )


def trace(path: Path, most: int) -> RequestTrace:
    """Read up to ``most`` requests from a CSV file with columns arrival [s], prompt and answer.

    ``prompt`` and ``answer`` are the input and output tokens; arrivals are shifted to start at 0.

    Raises:
        SpecError: the file cannot be read, lacks a column, has a cell that is not a finite number,
            has a token count out of range, or is not sorted by arrival.
    """
    rows = [_read_request(row) for row in islice(read_csv_rows(path, _COLUMNS), most)]
    arrival, prompt, answer = np.array([row.numbers for row in rows]).T
    late = np.flatnonzero(np.diff(arrival) < 0)
    if late.size:
        place = rows[int(late[0]) + 1].place
        raise SpecError(f"{place}: arrivals are not ascending", hint="sort the rows by arrival")
    return RequestTrace(
        arrival=arrival - arrival[0],
        prompt=prompt.astype(np.int64),
        answer=answer.astype(np.int64),
    )


class _RequestRow(NamedTuple):
    """Arrival [s], prompt and answer [tokens] of a request, and its place in the file."""

    place: str
    numbers: tuple[float, ...]


def _read_request(row: CsvRow) -> _RequestRow:
    numbers = tuple(parse_number(row, name) for name in _COLUMNS)
    for name, tokens in zip(_COLUMNS[1:], numbers[1:], strict=True):
        if not 1 <= tokens < _LONGEST:
            problem = f"{row.place}: {name} is {row.cells[name]!r}"
            raise SpecError(problem, hint="1 token or more")
    return _RequestRow(row.place, numbers)
