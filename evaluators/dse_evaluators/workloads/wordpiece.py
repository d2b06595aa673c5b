"""WordPiece tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

_INSIDE = "##"
_UNKNOWN = "[UNK]"
_FRAME = ("[CLS]", "[SEP]")

Vocabulary = Mapping[str, int]


def vocabulary(path: Path) -> dict[str, int]:
    """Return the code of each word piece: its line number in the vocabulary file, from zero."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return {piece: code for code, piece in enumerate(lines)}


def encode_word(word: str, pieces: Vocabulary) -> tuple[int, ...]:
    """Return the word-piece codes of one word, between the codes of [CLS] and [SEP].

    Source:
        Devlin et al., BERT, 2019: WordPiece, greedy longest match first.
    """
    left, right = _FRAME
    return tuple(pieces[piece] for piece in (left, *_cut(word.lower(), pieces), right))


def _cut(word: str, pieces: Vocabulary) -> tuple[str, ...]:
    found: list[str] = []
    start = 0
    while start < len(word):
        mark = _INSIDE if start else ""
        ends = range(len(word), start, -1)
        end = next((end for end in ends if mark + word[start:end] in pieces), None)
        if end is None:
            return (_UNKNOWN,)
        found.append(mark + word[start:end])
        start = end
    return tuple(found)
