"""Kinds of index: their parameters, sizes before they are built, and how they are built."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse_evaluators.formats.arrays import Single
from dse_evaluators.retrieval.vector_data import SearchData

Knobs = Mapping[str, Any]

SCALAR_CODES: Mapping[str, int] = {"fp16": 16, "8bit": 8, "6bit": 6, "4bit": 4}
"""Bits of each number by code."""

_SCALAR_TYPES = {"fp16": "QT_fp16", "8bit": "QT_8bit", "6bit": "QT_6bit", "4bit": "QT_4bit"}
_ID, _LINK, _SINGLE = 8, 4, 4  # bytes
_SEED = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexKind:
    """Kind of vector index, such as an inverted file or a graph.

    ``built_with`` are the parameters of building an index, ``searched_with`` those of a search.
    ``size`` returns the bytes of an index before it is built, from n, d and the parameters.
    """

    built_with: tuple[str, ...]
    searched_with: tuple[str, ...]
    size: Callable[[int, int, Knobs], float]
    build: Callable[[SearchData, Knobs, int], BuiltIndex]


class BuiltIndex:
    """Vector index, with the seconds of its construction and its size in bytes.

    Args:
        search: finds the rows of the k nearest vectors, (b, k), of b queries, (b, d).
        prepare: sets the parameters and the threads of the searches that follow.
        size: bytes of the index.
        build_s: seconds in which it was built.
    """

    def __init__(
        self,
        search: Callable[[Single], NDArray[np.int64]],
        prepare: Callable[[Knobs], None],
        size: int,
        build_s: float,
    ) -> None:
        self.search, self.prepare = search, prepare
        self.size, self.build_s = size, build_s


def build_index(data: SearchData, knobs: Knobs, threads: int) -> BuiltIndex:
    """Build the vector index of a design, with a number of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(threads):
        return KINDS[knobs["index"]].build(data, knobs, threads)


def _build_faiss(data: SearchData, knobs: Knobs, _threads: int) -> BuiltIndex:
    import faiss

    metric = faiss.METRIC_L2 if data.is_l2 else faiss.METRIC_INNER_PRODUCT
    width = data.vectors.shape[1]
    index: Any
    match knobs["index"]:
        case "flat":
            index = faiss.IndexFlat(width, metric)
        case "scalar":
            code = getattr(faiss.ScalarQuantizer, _SCALAR_TYPES[knobs["sq_type"]])
            index = faiss.IndexScalarQuantizer(width, code, metric)
        case _:
            index = _make_inverted(data, knobs, metric)
    begun_s = time.perf_counter()
    index.train(data.vectors)
    index.add(data.vectors)
    build_s = time.perf_counter() - begun_s

    def prepare(knobs: Knobs) -> None:
        if hasattr(index, "nprobe"):
            index.nprobe = int(knobs["nprobe"])

    def search(queries: Single) -> NDArray[np.int64]:
        found: NDArray[np.int64] = index.search(queries, data.k)[1]
        return found

    return BuiltIndex(search, prepare, _count_bytes(index), build_s)


def _make_inverted(data: SearchData, knobs: Knobs, metric: int) -> Any:
    import faiss

    width, nlist = data.vectors.shape[1], int(knobs["nlist"])
    coarse = faiss.IndexFlat(width, metric)
    index: Any
    if knobs["index"] == "ivf-flat":
        index = faiss.IndexIVFFlat(coarse, width, nlist, metric)
    else:
        pq = int(knobs["pq_m"]), int(knobs["pq_bits"])
        index = faiss.IndexIVFPQ(coarse, width, nlist, *pq, metric)
    index.cp.min_points_per_centroid = 1  # faiss else warns on the terminal
    if knobs["index"] == "ivf-pq":
        index.pq.cp.min_points_per_centroid = 1
    return index


def _count_bytes(index: Any) -> int:
    """Return the bytes of a written index, without holding them in memory."""
    faiss: Any = import_module("faiss")  # its types lack the writer
    sizes = list[int]()
    writer = faiss.PyCallbackIOWriter(lambda part: sizes.append(len(part)))
    faiss.write_index(index, writer)
    return sum(sizes)


def _build_hnsw(data: SearchData, knobs: Knobs, threads: int) -> BuiltIndex:
    import hnswlib

    count, width = data.vectors.shape
    index = hnswlib.Index("l2" if data.is_l2 else "ip", width)
    index.init_index(
        max_elements=count,
        M=int(knobs["hnsw_m"]),
        ef_construction=int(knobs["ef_construction"]),
        random_seed=_SEED,
    )
    begun_s = time.perf_counter()
    index.add_items(data.vectors, num_threads=threads)
    build_s = time.perf_counter() - begun_s

    def prepare(knobs: Knobs) -> None:
        index.set_ef(int(knobs["ef_search"]))
        index.set_num_threads(int(knobs["threads"]))

    def search(queries: Single) -> NDArray[np.int64]:
        return np.asarray(index.knn_query(queries, k=data.k)[0], np.int64)

    return BuiltIndex(search, prepare, int(index.index_file_size()), build_s)


def _flat_bytes(count: int, width: int, _: Knobs) -> float:
    return _SINGLE * count * width


def _scalar_bytes(count: int, width: int, knobs: Knobs) -> float:
    return count * -(-width * SCALAR_CODES[knobs["sq_type"]] // 8)


def _inverted_bytes(count: int, width: int, knobs: Knobs) -> float:
    return count * (_SINGLE * width + _ID) + _SINGLE * knobs["nlist"] * width


def _product_bytes(count: int, width: int, knobs: Knobs) -> float:
    code = -(-int(knobs["pq_m"]) * int(knobs["pq_bits"]) // 8)
    centroids = _SINGLE * width * (knobs["nlist"] + 2 ** knobs["pq_bits"])
    return count * (code + _ID) + centroids


def _graph_bytes(count: int, width: int, knobs: Knobs) -> float:
    """Return the bytes of a hierarchical graph, with twice the links in its lowest layer.

    A vector is in each higher layer with a probability of 1/M of that below.

    Source:
        Malkov, Yashunin: Efficient and robust approximate nearest neighbor search using
        Hierarchical Navigable Small World graphs, 2018, sections 4 and 4.2.
    """
    links = knobs["hnsw_m"]
    lowest = _LINK * (2 * links + 1) + _SINGLE * width + _ID
    above = _LINK * (links + 1) / (links - 1)
    return count * (lowest + _LINK + above)


KINDS: Mapping[str, IndexKind] = {
    "flat": IndexKind(built_with=(), searched_with=(), size=_flat_bytes, build=_build_faiss),
    "ivf-flat": IndexKind(
        built_with=("nlist",), searched_with=("nprobe",), size=_inverted_bytes, build=_build_faiss
    ),
    "ivf-pq": IndexKind(
        built_with=("nlist", "pq_m", "pq_bits"),
        searched_with=("nprobe",),
        size=_product_bytes,
        build=_build_faiss,
    ),
    "scalar": IndexKind(
        built_with=("sq_type",), searched_with=(), size=_scalar_bytes, build=_build_faiss
    ),
    "hnsw": IndexKind(
        built_with=("hnsw_m", "ef_construction"),
        searched_with=("ef_search",),
        size=_graph_bytes,
        build=_build_hnsw,
    ),
}
