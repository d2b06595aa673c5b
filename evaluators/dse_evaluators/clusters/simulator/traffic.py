"""Request traces: arrival times and token counts, drawn at random or read from a CSV file."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from dse.core.values import Floats, Ints
from dse.errors import SpecError

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
        SpecError: the file cannot be read, lacks a column, has a cell that is not a number, has a
            token count out of range, or is not sorted by arrival.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_row(row, path) for row in islice(csv.DictReader(file), most)]
    except OSError as error:
        raise SpecError(f"cannot read {path}", hint="a CSV file, one request a row") from error
    if not rows:
        raise SpecError(f"{path} has no requests", hint=f"columns {', '.join(_COLUMNS)}")
    arrival, prompt, answer = np.array(rows).T
    if (np.diff(arrival) < 0).any():
        raise SpecError(f"arrivals in {path} are not ascending", hint="sort it by arrival")
    return RequestTrace(
        arrival=arrival - arrival[0],
        prompt=prompt.astype(np.int64),
        answer=answer.astype(np.int64),
    )


def _row(row: dict[str, str], path: Path) -> list[float]:
    try:
        found = [float(row[name]) for name in _COLUMNS]
    except (KeyError, TypeError, ValueError) as error:
        raise SpecError(
            f"{path} has a row without {' or '.join(_COLUMNS)}", hint="each must be a number"
        ) from error
    if not all(1 <= tokens < _LONGEST for tokens in found[1:]):
        raise SpecError(f"{path} has a request of {found[1]:g} and {found[2]:g} tokens")
    return found
