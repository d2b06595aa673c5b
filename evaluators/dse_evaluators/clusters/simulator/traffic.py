"""Requests and their arrival times: drawn once for all designs, or read from a file."""

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
    """r requests in the order in which they come; every field is (r,)."""

    arrival: Floats
    """Seconds at one request a second, or those of a trace; a closed loop looks at none."""
    prompt: Ints
    """Tokens, at least 1."""
    answer: Ints
    """Tokens, at least 1."""

    @property
    def full(self) -> Ints:
        """Tokens of prompt and answer."""
        return self.prompt + self.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lengths:
    """The law of a number of tokens: one number, or lognormal with this mean and deviation."""

    mean: float
    spread: float = 0.0
    """The standard deviation over the mean."""

    def of(self, normal: Floats) -> Ints:
        """Lengths at standard normal numbers."""
        variance = np.log1p(self.spread**2)
        drawn = self.mean * np.exp(np.sqrt(variance) * normal - variance / 2.0)
        return np.maximum(np.rint(drawn), 1.0).astype(np.int64)


def draw_traffic(count: int, prompt: Lengths, answer: Lengths, *, seed: int) -> RequestTrace:
    """Draw ``count`` requests with random arrivals, one a second on the mean.

    The same seed gives the same gaps and the same quantiles of lengths, whatever their laws are:
    designs, rates and lengths meet common random numbers.
    """
    rng = np.random.default_rng([20_220_711, seed])
    gaps = rng.exponential(size=count)
    normal = rng.standard_normal((count, 2))
    return RequestTrace(
        arrival=np.cumsum(gaps), prompt=prompt.of(normal[:, 0]), answer=answer.of(normal[:, 1])
    )


def trace(path: Path, most: int) -> RequestTrace:
    """The first requests of a CSV file with columns arrival [s], prompt and answer [tokens].

    Raises:
        SpecError: the file is not there, lacks a column, has no number where one is due, or does
            not go forward in time.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [_row(row, path) for row in islice(csv.DictReader(file), most)]
    except OSError as error:
        raise SpecError(f"cannot read {path}", hint="a CSV file with a row for each") from error
    if not rows:
        raise SpecError(f"{path} has no request", hint=f"columns {', '.join(_COLUMNS)}")
    arrival, prompt, answer = np.array(rows).T
    if (np.diff(arrival) < 0).any():
        raise SpecError(f"{path} goes back in time", hint="sort it by arrival")
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
            f"{path} has a row without {' or '.join(_COLUMNS)}", hint="numbers in each of them"
        ) from error
    if not all(1 <= tokens < _LONGEST for tokens in found[1:]):
        raise SpecError(f"{path} has a request of {found[1]:g} and {found[2]:g} tokens")
    return found
