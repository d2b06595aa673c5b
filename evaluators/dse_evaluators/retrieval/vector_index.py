"""The evaluator ``retrieval.index``: indexes of vectors, built, searched and timed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from itertools import cycle
from typing import Any, ClassVar

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError, PluginError, SpecError, nearest
from dse.evaluation.timing.call_time import CallTime, time_call
from dse_evaluators.amounts import amount
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.measured.kernel_timing import (
    count_processors,
    limits_of,
    refuse_without_effect,
    settings_of,
)
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import NumberInput, Reading, one_of
from dse_evaluators.retrieval.index_cache import IndexCache
from dse_evaluators.retrieval.index_kinds import KINDS, SCALAR_CODES, BuiltIndex
from dse_evaluators.retrieval.vector_data import DISTANCES, SearchData
from dse_evaluators.retrieval.vector_source import VectorSource

_INPUTS: Mapping[str, Reading] = {
    "index": one_of(KINDS, "hnsw"),
    "nlist": NumberInput(1, 1 << 20, default=256, whole=True),
    "nprobe": NumberInput(1, 1 << 20, default=8, whole=True),
    "pq_m": NumberInput(1, 1 << 14, default=16, whole=True),
    "pq_bits": NumberInput(4, 12, default=8, whole=True),
    "sq_type": one_of(SCALAR_CODES, "8bit"),
    "hnsw_m": NumberInput(2, 256, default=16, whole=True),
    "ef_construction": NumberInput(1, 1 << 16, default=100, whole=True),
    "ef_search": NumberInput(1, 1 << 16, default=64, whole=True),
    "batch": NumberInput(1, 1 << 16, default=1, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
}
_KINDS_OF: Mapping[str, tuple[str, ...]] = {
    name: tuple(
        index for index, kind in KINDS.items() if name in (*kind.built_with, *kind.searched_with)
    )
    for name in _INPUTS.keys() - {"index", "batch", "threads"}
}
"""The kinds of index that have a parameter."""

_METRICS = (
    Metric(name="recall", goal="maximize"),
    Metric(name="latency", unit="s", goal="minimize"),
    Metric(name="size", unit="B", goal="minimize"),
    Metric(name="build_time", unit="s", goal="minimize"),
    Metric(name="readings"),
    Metric(name="disturbed", goal="minimize"),
)


class VectorIndex(
    DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"
):
    """Recall, time per query and size of an index of vectors, measured on the user's vectors.

    ``recall`` is the mean share of the ``k`` nearest neighbours that a search finds, compared with
    an exact search. ``latency`` is the time of a query: that of a call with ``batch`` queries,
    divided by ``batch``; the calls take all queries in turn. ``size`` is the size in bytes of the
    index in a file, with the vectors if it holds them. An index is built once for designs that
    differ only in ``nprobe``, ``ef_search``, ``batch`` or ``threads``, as long as it is among the
    last 8 and all fit into memory. An index that is larger than memory is infeasible, and is not
    built.

    Args:
        vectors: the vectors: a path of ``.npy``, ``.npz``, ``.parquet`` or ``.csv``, in Python also
            an array, (n, d); or ``minilm-plays``, 50,000 sentence embeddings (384 dimensions),
            ``movielens-factors``, factors of 1,682 movies, or ``drawn``, 2,000 drawn at random.
        queries: the queries, in the same forms. By default the array ``queries`` of an ``.npz``
            file, or else vectors that are held out.
        held_out: number of vectors that are held out as queries if there are none; by default a
            tenth of them, at most 500.
        distance: ``l2``, ``ip`` (inner product) or ``cosine``.
        k: number of neighbours that a query asks for.
        memory: the most bytes of the index, such as ``2 GB``; by default the free memory.
        build_threads: threads that build an index. With more than one, graphs of ``hnsw`` and their
            recall differ slightly from build to build.
        precision: relative half-width of the 95 % interval of the latency at which timing ends.
        limit: time limit of the timing of a design: seconds, or a text such as ``5 s``.
        pin: pin the calling thread to the least busy processors.

    Inputs:
        index: ``flat`` compares all vectors, ``ivf-flat`` those of the nearest lists, ``ivf-pq``
            their product-quantized codes, ``scalar`` codes of all vectors; ``hnsw`` is a graph.
        nlist: number of lists; ``ivf-flat`` and ``ivf-pq`` only.
        nprobe: lists that a query searches, at most ``nlist``.
        pq_m: sub-vectors of a code, a divisor of the dimension; ``ivf-pq`` only.
        pq_bits: bits of each sub-vector's code; ``ivf-pq`` only.
        sq_type: code of each number; ``scalar`` only.
        hnsw_m: links of a vector; ``hnsw`` only.
        ef_construction: candidates while the graph is built; ``hnsw`` only.
        ef_search: candidates of a search, at least ``k``; ``hnsw`` only.
        batch: queries in a call.
        threads: threads of a search.

    Limits:
        Searches without filters, insertions or deletions. Needs the extra ``retrieval``.

    Error:
        Recall is exact on the queries; with q queries its standard error is at most .5/sqrt(q).

    Source:
        Douze et al.: The Faiss library, 2024; Malkov, Yashunin: HNSW graphs, 2018 (hnswlib).

    Example:
        options: {vectors: drawn, limit: 50 ms, precision: 0.5}
        parameters: {index: [flat, ivf-flat, hnsw], batch: [1, 8]}
        objectives: {recall: maximize, latency: minimize}

    Raises:
        PluginError: an option is invalid.
        SpecError: the vectors or queries cannot be read, or do not fit each other or ``k``.
    """

    user_options: ClassVar[Sequence[str]] = ("vectors", "queries")

    vectors: object
    queries: object = None
    held_out: int | None = None
    distance: str = "l2"
    k: int = 10
    memory: float | str | None = None
    build_threads: int = 1
    index: str | None = None
    batch: int | None = None
    threads: int | None = None
    precision: float = 0.05
    limit: float | str = "2 s"
    pin: bool = False

    def __post_init__(self) -> None:
        self._limits = limits_of(self.precision, self.limit, pin=self.pin)
        for name in ("held_out", "k", "build_threads"):
            number = getattr(self, name)
            if name == "held_out" and number is None:
                continue
            if isinstance(number, bool) or not isinstance(number, int) or number < 1:
                problem = f"{name} is {number!r}"
                raise PluginError(problem, hint="write a whole number of 1 or more", part=[name])
        if self.distance not in DISTANCES:
            hint = nearest(str(self.distance), DISTANCES)
            problem = f"there is no distance {self.distance!r}"
            raise PluginError(problem, hint=hint, part=["distance"])
        limit = None if self.memory is None else amount("memory", self.memory, "B", least=1.0)
        self._source = VectorSource(
            self.vectors,
            self.queries,
            held_out=self.held_out,
            distance=self.distance,
            k=self.k,
        )
        self._indexes = IndexCache(limit, self.build_threads)
        self.version = f"{type(self).version}-{self._source.digest}"
        super().__post_init__()

    @property
    def missing(self) -> str:
        """Reason why the vector index cannot be built on this machine; empty if it can."""
        for package in ("faiss", "hnswlib"):
            if find_spec(package) is None:
                return f"it needs the package {package}: pip install 'dse-engine[retrieval]'"
        return ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Origin of the queries, as a sentence."""
        return (self._source.origin_of_queries,)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        super().check_values(values)
        count, width = self._source.check()
        found: Mapping[str, Sequence[Any]] = values
        for pq_m in found.get("pq_m", ()):
            if width % pq_m:
                raise SpecError(f"pq_m may be {pq_m}, {_divide(width)}", hint=_divisors(width))
        for nlist in found.get("nlist", ()):
            if nlist > count:
                problem = f"nlist may be {nlist}, and there are {count} vectors to index"
                raise SpecError(problem, hint=f"at most {count}")

    def evaluate(self, batch: Batch) -> Metrics:
        """Build, search and time n designs, one at a time; return metrics, (n,)."""
        return one_by_one(batch, tuple(self.provides), self._measure, uncertain=("latency",))

    def close(self) -> None:
        """Drop the vector indexes that are cached for later designs."""
        self._indexes.clear()

    def _measure(self, design: Mapping[str, Value]) -> Found:
        chosen = settings_of(self.readings, design)
        kind = KINDS[str(chosen["index"])]
        own = (*kind.built_with, *kind.searched_with)
        for name in design:
            if name in _KINDS_OF and name not in own:
                refuse_without_effect(design, (name,), f"index in {list(_KINDS_OF[name])}")
        data = self._source.data
        problem = _misfit(chosen, own, data)
        if problem:
            raise InfeasibleError(problem)
        built = self._indexes.get(data, chosen)
        return _search(built, data, chosen, self._time)

    def _time(self, built: BuiltIndex, data: SearchData, chosen: Mapping[str, Any]) -> CallTime:
        step = int(chosen["batch"])
        starts = range(0, len(data.queries) - step + 1, step)
        calls = cycle([data.queries[start : start + step] for start in starts])
        return time_call(
            lambda: built.search(next(calls)),
            precision=self._limits.precision,
            limit_s=self._limits.limit_s,
            cpus=int(chosen["threads"]) if self._limits.pin else 0,
        )


def _search(
    built: BuiltIndex,
    data: SearchData,
    chosen: Mapping[str, Any],
    take_time: Callable[[BuiltIndex, SearchData, Mapping[str, Any]], CallTime],
) -> Found:
    """Search all queries once for the recall, and repeatedly for the time of a query."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(int(chosen["threads"])):
        built.prepare(chosen)
        recall = data.recall(built.search(data.queries))
        found = take_time(built, data, chosen)
    per_query = 1 / float(chosen["batch"])
    return Found(
        values={
            "recall": recall,
            "latency": found.median_s * per_query,
            "size": float(built.size),
            "build_time": built.build_s,
            "readings": float(found.readings),
            "disturbed": float(found.disturbed),
        },
        errors={"latency": found.stderr_s * per_query},
    )


def _misfit(chosen: Mapping[str, Any], own: Sequence[str], data: SearchData) -> str:
    """Return why a design cannot be built or searched; empty if it can."""
    count, width = data.vectors.shape
    nlist, nprobe, pq_m = (chosen[name] for name in ("nlist", "nprobe", "pq_m"))
    if "nlist" in own and nlist > count:
        return f"nlist is {nlist}, and there are {count} vectors"
    if "nlist" in own and nprobe > nlist:
        return f"nprobe is {nprobe}, and there are {nlist} lists"
    if "pq_m" in own and width % pq_m:
        return f"pq_m is {pq_m}, {_divide(width)}: {_divisors(width)}"
    if "pq_bits" in own and 2 ** chosen["pq_bits"] > count:
        return f"{chosen['pq_bits']} bits of a code need more than the {count} vectors"
    if "ef_search" in own and chosen["ef_search"] < data.k:
        return f"ef_search is {chosen['ef_search']}, and k is {data.k}"
    if chosen["batch"] > len(data.queries):
        return f"batch is {chosen['batch']}, and there are {len(data.queries)} queries"
    if chosen["threads"] > count_processors():
        return f"{chosen['threads']} threads, and {count_processors()} processors"
    return ""


def _divide(width: int) -> str:
    return f"which does not divide the dimension {width}"


def _divisors(width: int) -> str:
    return f"divisors: {', '.join(str(one) for one in range(1, width + 1) if width % one == 0)}"
