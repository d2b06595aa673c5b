"""Representations of categorical features: tables, hashed inputs of an MLP, or both."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.reading_table import NumberInput, Reading, one_of

KINDS = ("table", "hash", "hybrid")
MOST_LAYERS = 4
HASHED = ("hashes", "width", "layers")
"""Inputs of designs that hash."""

DESIGN: Mapping[str, Reading] = {
    "representation": one_of(KINDS),
    "dim": NumberInput(1, 1024, default=32, whole=True),
    "hashes": NumberInput(1, 1 << 14, default=256, whole=True),
    "width": NumberInput(1, 1 << 14, default=128, whole=True),
    "layers": NumberInput(1, MOST_LAYERS, default=2, whole=True),
}
"""Inputs that describe a representation."""

_SINGLE = 4  # bytes
HASH_BYTES = 8
"""Bytes of a hash function: two integers of 32 bits."""

_PRIME = 2**31 - 1
_BUCKETS = 1_000_000


@dataclass(frozen=True, slots=True)
class Representation:
    """Method by which the values of categorical features become vectors.

    A ``table`` has a row of ``dim`` numbers for each value. A ``hash`` gives a value ``hashes``
    numbers, from as many hash functions; an MLP with ``layers`` hidden layers of ``width`` maps
    them to ``dim`` numbers, and belongs to one feature. ``hybrid`` has both, one behind the other.
    """

    kind: str
    dim: int
    hashes: int
    width: int
    layers: int

    @property
    def has_table(self) -> bool:
        """Whether the representation has a table with a row for each value."""
        return self.kind != "hash"

    @property
    def has_hash(self) -> bool:
        """Whether the representation computes vectors from hashed values."""
        return self.kind != "table"

    @property
    def length(self) -> int:
        """Length of the vector of a value."""
        return self.dim * (self.has_table + self.has_hash)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Outputs and inputs of each layer of a feature's MLP; none without hashing."""
        widths = (self.hashes, *[self.width] * self.layers, self.dim)
        return tuple((after, before) for before, after in pairwise(widths)) if self.has_hash else ()

    def count_bytes(self, rows: int) -> int:
        """Return the bytes of a categorical feature with ``rows`` values, in single precision."""
        table = rows * self.dim if self.has_table else 0
        mlp = sum(after * before + after for after, before in self.shapes)
        return _SINGLE * (table + mlp) + HASH_BYTES * self.hashes * self.has_hash

    def count_flops(self) -> int:
        """Return the operations of a feature's MLP for one vector, without the hash functions."""
        return sum(2 * after * before for after, before in self.shapes)


def check_effect(chosen: Mapping[str, object], design: Collection[str]) -> None:
    """Check that a design without hashing sets no input that only hashing has.

    Args:
        chosen: the inputs by name.
        design: names of the inputs that the design sets.

    Raises:
        EvaluationError: it sets one.
    """
    idle = [name for name in HASHED if name in design]
    if idle and chosen["representation"] == "table":
        hint = f"write {idle[0]}: {{..., when: representation != 'table'}} in the space"
        raise EvaluationError(f"{idle[0]} has no effect with a table", hint=hint)


def hash_values(values: Ints, hashes: int, feature: int) -> Single:
    """Return numbers between -1 and 1 for each value, (n, hashes), the same for equal values.

    Args:
        values: codes of values, (n,), below 2 ** 31.
        hashes: number of hash functions.
        feature: place of the feature, whose hash functions are its own.

    Source:
        Carter, Wegman: Universal Classes of Hash Functions, 1979, class H1; Kang et al.: Learning
        to Embed Categorical Features without Embedding Tables for Recommendation, KDD 2021,
        section 3.1 (dense hash encoding).
    """
    rng = np.random.default_rng(feature)
    factors, offsets = rng.integers(1, _PRIME, size=(2, hashes))
    buckets = (values[:, None] * factors + offsets) % _PRIME % _BUCKETS
    return (buckets * (2 / (_BUCKETS - 1)) - 1).astype(np.float32)
