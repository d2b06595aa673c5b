"""Requests to an inference server: drawn with a seed, or read from a file of lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.errors import PluginError, nearest
from dse_evaluators.csv_files.csv_rows import parse_whole, read_csv_rows

_COLUMNS = ("prompt_tokens", "output_tokens")
_DEFAULTS: Mapping[str, Any] = {
    "requests": 16,
    "prompt_tokens": 128,
    "output_tokens": 32,
    "first_id": 100,
    "last_id": 250,
    "seed": 0,
    "file": None,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedRequest:
    """Request to a language-model server: prompt token ids and a number of tokens to generate."""

    prompt: tuple[int, ...]
    output_tokens: int


class Requests:
    """Requests of the user's traffic, with prompts of random token ids.

    Args:
        options: ``requests``, their number; ``prompt_tokens`` and ``output_tokens``, each a length
            or the two ends of a uniform distribution; ``first_id`` and ``last_id``, the range of
            token ids; ``seed``; or ``file``, a CSV file with the columns ``prompt_tokens`` and
            ``output_tokens``, one row per request, in place of the three first.

    Raises:
        PluginError: an option or the file is invalid.
    """

    def __init__(self, options: Any) -> None:
        if not isinstance(options, Mapping | None):
            raise PluginError(f"traffic is {options!r}", hint="write traffic: {requests: 16}")
        given = dict(options or {})
        for name in given:
            if name not in _DEFAULTS:
                hint = nearest(str(name), _DEFAULTS)
                raise PluginError(f"traffic has no {name!r}", hint=hint, part=["traffic"])
        drawn = sorted({"requests", *_COLUMNS} & set(given))
        if given.get("file") is not None and drawn:
            problem = f"traffic has a file, so {drawn[0]!r} has no effect"
            raise PluginError(problem, hint="remove one of the two", part=["traffic"])
        one = {**_DEFAULTS, **given}
        self.seed = _whole("seed", one["seed"], 0)
        self._ids = _ends("first_id", one["first_id"])[0], _ends("last_id", one["last_id"])[0]
        if self._ids[0] > self._ids[1]:
            raise PluginError("traffic: first_id is above last_id", part=["traffic"])
        self._lengths = self._from(one)
        self.longest = max(prompt + output for prompt, output in self._lengths)

    def _from(self, one: Mapping[str, Any]) -> Sequence[tuple[int, int]]:
        """Return the lengths of prompt and output of each request."""
        if one["file"] is not None:
            return _read_lengths(Path(str(one["file"])))
        count = _whole("requests", one["requests"], 1)
        random = np.random.default_rng(self.seed)
        lengths = [
            random.integers(*_ends(name, one[name]), size=count, endpoint=True) for name in _COLUMNS
        ]
        return [(int(prompt), int(output)) for prompt, output in zip(*lengths, strict=True)]

    def draw(self, repeat: int) -> list[ServedRequest]:
        """Return the requests of a repeat; no two repeats share a prompt, so no cache helps."""
        random = np.random.default_rng((self.seed, repeat))
        first, last = self._ids
        return [
            ServedRequest(
                prompt=tuple(random.integers(first, last, size=prompt, endpoint=True).tolist()),
                output_tokens=output,
            )
            for prompt, output in self._lengths
        ]

    def arrivals_s(self, repeat: int, rate: float) -> list[float]:
        """Return the times of arrival, in seconds, of a Poisson process of ``rate`` per second."""
        random = np.random.default_rng((self.seed, repeat, 1))
        gaps = random.exponential(1.0 / rate, size=len(self._lengths))
        return [float(time) for time in np.cumsum(gaps) - gaps[0]]


def _read_lengths(path: Path) -> list[tuple[int, int]]:
    """Return the lengths in a CSV file.

    Raises:
        SpecError: the file is missing, or a row is invalid; the error has its line.
    """
    prompt, output = _COLUMNS
    return [
        (parse_whole(row, prompt, 1), parse_whole(row, output, 1))
        for row in read_csv_rows(path, _COLUMNS)
    ]


def _ends(name: str, given: Any) -> tuple[int, int]:
    """Return the two ends of a range of lengths, which are equal if one length is given."""
    pair = given if isinstance(given, list | tuple) else [given, given]
    if len(pair) != 2:
        raise PluginError(f"traffic: {name} is {given!r}", hint="write 128 or [64, 256]")
    low, high = (_whole(name, one, 1) for one in pair)
    if low > high:
        raise PluginError(f"traffic: {name} is {given!r}", hint="write the smaller end first")
    return low, high


def _whole(name: str, given: Any, least: int) -> int:
    text = isinstance(given, str) and given.strip().isdecimal()
    if not text and (isinstance(given, bool) or not isinstance(given, int)):
        raise PluginError(f"{name} is {given!r}", hint=f"it is an integer of at least {least}")
    if int(given) < least:
        raise PluginError(f"{name} is {given}", hint=f"it is at least {least}")
    return int(given)
