"""Where the vectors of a search come from: the user's files and arrays, or shipped vectors."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from dse_evaluators.retrieval.shipped_vectors import SHIPPED, ShippedVectors
from dse_evaluators.retrieval.vector_data import SearchData, prepare_search
from dse_evaluators.retrieval.vector_files import (
    QUERIES,
    VECTORS,
    digest_of,
    has_queries,
    read_vectors,
)

_MOST_HELD_OUT, _SHARE_HELD_OUT = 500, 10
"""Most vectors that are held out by default, and the reciprocal of their share."""


class VectorSource:
    """Vectors and queries, given by name, file or array, and read when first needed.

    Args:
        vectors: the path of a file, an array, or the name of shipped vectors.
        queries: the path of a file, an array, or ``None``.
        held_out: number of vectors to hold out as queries if there are none; ``None`` for a tenth,
            at most 500.
        distance: ``l2``, ``ip`` or ``cosine``.
        k: number of neighbours.

    Raises:
        SpecError: a file is missing, or is neither a path nor an array.
    """

    def __init__(
        self, vectors: object, queries: object, *, held_out: int | None, distance: str, k: int
    ) -> None:
        self._vectors, self._queries = vectors, queries
        self._held_out, self._distance, self._k = held_out, distance, k
        self._shipped: ShippedVectors | None = None
        if isinstance(vectors, str):
            self._shipped = SHIPPED.get(vectors)
        self.digest = str(vectors) if self._shipped else digest_of(vectors, VECTORS)
        self._beside = self._shipped is None and queries is None and has_queries(vectors)
        if queries is not None:
            self.digest += f"-{digest_of(queries, QUERIES)}"

    def __getstate__(self) -> Mapping[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "data"}

    @property
    def origin_of_queries(self) -> str:
        """A sentence on where the queries come from."""
        if self._queries is not None:
            return f"the queries are those of {_name(self._queries)}"
        if self._shipped is not None:
            return f"the queries are {self._shipped.queried_with}"
        if self._beside:
            return f"the queries are the array 'queries' of {_name(self._vectors)}"
        name = _name(self._vectors)
        if self._held_out is None and "data" not in self.__dict__:
            some = f"a tenth of the vectors of {name}, at most {_MOST_HELD_OUT} of them"
        else:
            some = f"{self._held_out or len(self.data.queries)} vectors of {name}"
        return f"{some}, drawn at random, are held out as queries"

    def check(self) -> tuple[int, int]:
        """Check the vectors and queries of the user; return the number and dimension of vectors.

        Shipped vectors are not computed for the check.

        Raises:
            PluginError: shipped vectors need an asset that is not installed.
            SpecError: the vectors or queries are invalid.
        """
        if self._shipped is not None and self._queries is None:
            self._shipped.check_installed()
            return self._shipped.shape
        return self.data.vectors.shape

    @cached_property
    def data(self) -> SearchData:
        """The vectors, queries and exact neighbours.

        Raises:
            PluginError: shipped vectors need an asset that is not installed.
            SpecError: the vectors or queries are invalid.
        """
        queries = None
        if self._shipped is not None:
            found = self._shipped.load()
            vectors, queries = found.vectors, found.queries
        else:
            vectors = read_vectors(self._vectors, VECTORS)
        if self._queries is not None:
            queries = read_vectors(self._queries, QUERIES)
        elif self._beside:
            queries = read_vectors(self._vectors, QUERIES)
        held_out = self._held_out or min(_MOST_HELD_OUT, max(len(vectors) // _SHARE_HELD_OUT, 1))
        return prepare_search(
            vectors, queries, distance=self._distance, k=self._k, held_out=held_out
        )


def _name(given: object) -> str:
    return "the array" if isinstance(given, np.ndarray) else str(given)
