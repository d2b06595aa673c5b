"""Batches in which a model of the user runs on its examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

_EXAMPLES = 256
_SEQUENCES = 16
"""Examples of token ids in a batch: the outputs for all places are large."""


def batch_size(feeds: Mapping[str, Any]) -> int:
    """Return the number of examples in a batch: fewer if they are sequences of token ids.

    Args:
        feeds: the inputs of the examples, (n, ...) by name.
    """
    first = next(iter(feeds.values()))
    return _SEQUENCES if first.dtype.kind == "i" and first.ndim > 1 else _EXAMPLES


def batches_of(feeds: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the inputs of a model's examples in batches.

    Args:
        feeds: the inputs of the examples, (n, ...) by name.
    """
    size = batch_size(feeds)
    for start in range(0, len(next(iter(feeds.values()))), size):
        yield {name: one[start : start + size] for name, one in feeds.items()}
