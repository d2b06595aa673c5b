"""The evaluator ``kernels.tiled-gemm``: a matrix product in tiles, compiled and timed here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import InfeasibleError
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.kernels.measured.compiled_c import bind_arrays, load_kernel
from dse_evaluators.kernels.measured.kernel_timing import (
    C_TYPES,
    COMMON_METRICS,
    FORMATS,
    PreparedKernel,
    count_processors,
    limits_of,
    measure_kernel,
    measure_kernels,
    refuse_without_effect,
    rounding_bound,
    settings_of,
)
from dse_evaluators.kernels.measured.languages import LANGUAGES, check_language, missing_language
from dse_evaluators.one_by_one import Found
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_ORDERS = ("mnk", "mkn", "nmk", "nkm", "kmn", "knm")
_ONLY_C = ("vector", "rows", "unroll")
_WIDTHS = (1, 2, 4, 8, 16)
_SIZE = NumberInput(1, 1 << 14, default=256, whole=True)
_TILE = NumberInput(1, 1 << 14, whole=True)
_INPUTS: Mapping[str, Reading] = {
    **dict.fromkeys(("m", "n", "k"), _SIZE),
    "language": one_of(LANGUAGES, "c"),
    "format": one_of(FORMATS, "float32"),
    "order": one_of(_ORDERS, "mnk"),
    **dict.fromkeys(("tile_m", "tile_n", "tile_k"), _TILE),
    "vector": NumberInput(1, max(_WIDTHS), default=8, whole=True),
    "rows": NumberInput(1, 16, default=4, whole=True),
    "unroll": NumberInput(1, 16, default=2, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
}
_METRICS = (*COMMON_METRICS, Metric(name="rate", unit="FLOP/s", goal="maximize"))


class TiledGemm(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"):
    """Measured time of a tiled matrix product on this machine's processor.

    The kernel is compiled for each design. The product of two matrices of random numbers is
    compared with numpy's before and after the timing; a design whose result is wrong fails.
    ``rate`` is 2 m n k divided by ``latency``. ``error`` is the largest difference from the product
    in double precision, relative to the largest element. ``energy`` is that of the processor
    package, where a counter can be read. ``readings`` are the timed repeats, ``disturbed`` those
    that other programs affected.

    A design is infeasible if its rows or vectors do not fill its tile, if the tile exceeds the
    matrix by more than its own size, or if there are fewer processors than threads.

    Args:
        precision: relative half-width of the 95 % interval of the latency at which timing ends.
        limit: time limit of the timing of a design: seconds, or a text such as ``5 s``.
        pin: pin the calling thread to the least busy processors.

    Inputs:
        m: rows of the product.
        n: columns of the product.
        k: length of its dot products.
        language: ``c`` needs a C compiler, ``numba`` the extra ``kernels``.
        order: loops over tiles, from the outside in.
        tile_m, tile_n, tile_k: tile sizes.
        vector: elements of a vector: 1, 2, 4, 8 or 16; only in C.
        rows: rows of the product that are kept in registers; only in C.
        unroll: vectors of a row that are kept in registers; only in C.
        threads: they share the rows.

    Limits:
        Nothing is packed into contiguous buffers, as libraries do. numba vectorizes the innermost
        loop by itself.

    Error:
        The standard error is of the median of readings on this machine. Clocks and temperature
        that change between trials are not in it.

    Source:
        Goto, van de Geijn: Anatomy of High-Performance Matrix Multiplication, 2008: tiles and
        register blocks.

    Example:
        options: {m: 32, n: 32, k: 32, limit: 1 s, precision: 0.1}
        parameters: {tile_m: [16, 32], tile_n: [32], tile_k: [16, 32]}

    Raises:
        PluginError: an option is invalid.
    """

    m: int | None = None
    n: int | None = None
    k: int | None = None
    language: str | None = None
    format: str | None = None
    threads: int | None = None
    precision: float = 0.02
    limit: float | str = "5 s"
    pin: bool = False

    def __post_init__(self) -> None:
        self._limits = limits_of(self.precision, self.limit, pin=self.pin)
        super().__post_init__()

    @property
    def missing(self) -> str:
        """Reason why the kernel cannot run on this machine; empty if it can."""
        return missing_language(self.language)

    def evaluate(self, batch: Batch) -> Metrics:
        """Compile, check and time n designs, one at a time; return metrics, (n,)."""
        return measure_kernels(batch, self.provides, self._measure)

    def _measure(self, design: Mapping[str, Value]) -> Found:
        if design.get("language", self.language) == "numba":
            refuse_without_effect(design, _ONLY_C, "language == 'c'")
        chosen = settings_of(self.readings, design)
        problem = _misfit(chosen)
        if problem:
            raise InfeasibleError(problem)
        check_language(str(chosen["language"]))
        found = measure_kernel(_prepare(chosen), self._limits, int(chosen["threads"]))
        work = 2.0 * int(chosen["m"]) * int(chosen["n"]) * int(chosen["k"])
        rate = work / found.values["latency"]
        error = rate * found.errors["latency"] / found.values["latency"]
        return Found(values={**found.values, "rate": rate}, errors={**found.errors, "rate": error})


def _prepare(chosen: Mapping[str, Value]) -> PreparedKernel:
    """Draw the matrices of a design and compile its kernel.

    Raises:
        EvaluationError: the compiler fails.
    """
    rows, columns, depth = (int(chosen[name]) for name in ("m", "n", "k"))
    number = str(chosen["format"])
    rng = np.random.default_rng(0)
    left = rng.uniform(-1, 1, (rows, depth)).astype(FORMATS[number])
    right = rng.uniform(-1, 1, (depth, columns)).astype(FORMATS[number])
    output = np.empty((rows, columns), FORMATS[number])
    compiled = _compile_numba if chosen["language"] == "numba" else _compile_c
    wide = left.astype(np.float64), right.astype(np.float64)
    bound = rounding_bound(depth, number) + rounding_bound(depth, "float64")
    return PreparedKernel(
        call=compiled(chosen, left, right, output),
        output=output,
        expected=wide[0] @ wide[1],
        tolerance=bound * (np.abs(wide[0]) @ np.abs(wide[1])),
    )


def _compile_c(
    chosen: Mapping[str, Value], left: NDArray[Any], right: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    loops = dict(zip(("FIRST", "SECOND", "THIRD"), str(chosen["order"]).upper(), strict=True))
    names = ("m", "n", "k", "tile_m", "tile_n", "tile_k", "vector", "rows", "unroll")
    library = load_kernel(
        Path(__file__).with_name("tiled_gemm.c"),
        {
            "REAL": C_TYPES[str(chosen["format"])],
            **{place: f"LOOP_{name}" for place, name in loops.items()},
            **{name.upper(): str(int(chosen[name])) for name in names},
        },
    )
    return bind_arrays(library, left, right, output, threads=int(chosen["threads"]))


def _compile_numba(
    chosen: Mapping[str, Value], left: NDArray[Any], right: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    from dse_evaluators.kernels.measured.numba_kernels import multiply, on_threads

    threads = int(chosen["threads"])
    tiles = np.array([int(chosen[f"tile_{axis}"]) for axis in "mnk"])
    order = np.array(["mnk".index(axis) for axis in str(chosen["order"])])
    return partial(on_threads(multiply, threads), left, right, output, tiles, order, threads)


def _misfit(chosen: Mapping[str, Value]) -> str:
    """Return why a design cannot be built; empty if it can."""
    for axis in "mnk":
        size, tile = int(chosen[axis]), int(chosen[f"tile_{axis}"])
        if tile > size:
            return f"tile_{axis} is {tile}, and the matrix has {size}"
    processors = count_processors()
    if int(chosen["threads"]) > processors:
        return f"{chosen['threads']} threads, and {processors} processors"
    if chosen["language"] == "numba":
        return ""
    if int(chosen["vector"]) not in _WIDTHS:
        return f"vector is {chosen['vector']}, and must be 1, 2, 4, 8 or 16"
    width = int(chosen["vector"]) * int(chosen["unroll"])
    if int(chosen["tile_n"]) % width:
        return f"tile_n is {chosen['tile_n']}, no multiple of vector x unroll = {width}"
    if int(chosen["tile_m"]) % int(chosen["rows"]):
        return f"tile_m is {chosen['tile_m']}, no multiple of rows = {chosen['rows']}"
    return ""
