"""The evaluator ``kernels.gather``: rows of a table copied by index, timed on this machine."""

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
    settings_of,
)
from dse_evaluators.kernels.measured.languages import LANGUAGES, check_language, missing_language
from dse_evaluators.one_by_one import Found
from dse_evaluators.reading_table import NumberInput, Reading, one_of

_COPIES: Mapping[str, int] = {"memcpy": 1, "vector": 2}
_WIDTHS = (1, 2, 4, 8, 16)
_INPUTS: Mapping[str, Reading] = {
    "table_rows": NumberInput(1, 1 << 30, default=65536, whole=True),
    "columns": NumberInput(1, 1 << 16, default=64, whole=True),
    "count": NumberInput(1, 1 << 24, default=4096, whole=True),
    "language": one_of(LANGUAGES, "c"),
    "format": one_of(FORMATS, "float32"),
    "copy": one_of(_COPIES, "memcpy"),
    "vector": NumberInput(1, max(_WIDTHS), default=8, whole=True),
    "prefetch": NumberInput(0, 1024, default=0, whole=True),
    "prefetched": NumberInput(64, 1 << 20, "B", default=64, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
}
_METRICS = (*COMMON_METRICS, Metric(name="bandwidth", unit="B/s", goal="maximize"))


class Gather(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="1", kind="measured"):
    """Measured time of copying rows of a table by random index, as an embedding lookup does.

    The copy is compared with numpy's before and after the timing; a design whose result differs
    fails. ``bandwidth`` counts the bytes of the copied rows once. Other metrics are as in
    ``kernels.tiled-gemm``; ``error`` is 0.

    Args:
        precision: relative half-width of the 95 % interval of the latency at which timing ends.
        limit: time limit of the timing of a design: seconds, or a text such as ``5 s``.
        pin: pin the calling thread to the least busy processors.

    Inputs:
        table_rows: rows of the table.
        columns: numbers in a row.
        count: number of rows that are copied.
        language: ``c`` needs a C compiler, ``numba`` the extra ``kernels``.
        copy: with C's ``memcpy``, or by vectors; only in C.
        vector: elements of a vector; only in C, with ``copy: vector``.
        prefetch: how many rows ahead a row is requested; 0: not at all; only in C.
        prefetched: bytes of a row that are requested; only with ``prefetch`` above 0.
        threads: they share the rows.

    Limits:
        Each call copies the same rows, of which caches hold what fits.

    Error:
        As in ``kernels.tiled-gemm``.

    Source:
        GCC manual, Other Builtins: ``__builtin_prefetch``.

    Example:
        options: {count: 512, limit: 1 s, precision: 0.1}
        parameters: {columns: [16, 64], prefetch: [0, 8]}

    Raises:
        PluginError: an option is invalid.
    """

    table_rows: int | None = None
    columns: int | None = None
    count: int | None = None
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
        chosen = settings_of(self.readings, design)
        if chosen["language"] == "numba":
            only_c = ("copy", "vector", "prefetch", "prefetched")
            refuse_without_effect(design, only_c, "language == 'c'")
        if chosen["copy"] != "vector":
            refuse_without_effect(design, ("vector",), "copy == 'vector'")
        if not chosen["prefetch"]:
            refuse_without_effect(design, ("prefetched",), "prefetch > 0")
        problem = _misfit(chosen)
        if problem:
            raise InfeasibleError(problem)
        check_language(str(chosen["language"]))
        kernel = _prepare(chosen)
        found = measure_kernel(kernel, self._limits, int(chosen["threads"]))
        bandwidth = kernel.output.nbytes / found.values["latency"]
        return Found(values={**found.values, "bandwidth": bandwidth}, errors=found.errors)


def _prepare(chosen: Mapping[str, Value]) -> PreparedKernel:
    """Draw the table and the indices of a design and compile its kernel.

    Raises:
        EvaluationError: the compiler fails.
    """
    kind = FORMATS[str(chosen["format"])]
    rows, columns, count = (int(chosen[name]) for name in ("table_rows", "columns", "count"))
    rng = np.random.default_rng(0)
    table = rng.random((rows, columns), np.float32).astype(kind)
    index = rng.integers(rows, size=count)
    output = np.empty((count, columns), kind)
    compiled = _compile_numba if chosen["language"] == "numba" else _compile_c
    expected = table[index].astype(np.float64)
    return PreparedKernel(
        call=compiled(chosen, table, index, output),
        output=output,
        expected=expected,
        tolerance=np.zeros_like(expected),
    )


def _compile_c(
    chosen: Mapping[str, Value], table: NDArray[Any], index: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    names = ("columns", "count", "vector", "prefetch", "prefetched")
    library = load_kernel(
        Path(__file__).with_name("gather.c"),
        {
            "REAL": C_TYPES[str(chosen["format"])],
            "COPY": str(_COPIES[str(chosen["copy"])]),
            **{name.upper(): str(int(chosen[name])) for name in names},
        },
    )
    return bind_arrays(library, table, index, output, threads=int(chosen["threads"]))


def _compile_numba(
    chosen: Mapping[str, Value], table: NDArray[Any], index: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    from dse_evaluators.kernels.measured.numba_kernels import gather, on_threads

    return partial(on_threads(gather, int(chosen["threads"])), table, index, output)


def _misfit(chosen: Mapping[str, Value]) -> str:
    """Return why a design cannot be built; empty if it can."""
    processors = count_processors()
    if int(chosen["threads"]) > processors:
        return f"{chosen['threads']} threads, and {processors} processors"
    if int(chosen["vector"]) not in _WIDTHS:
        return f"vector is {chosen['vector']}, and must be 1, 2, 4, 8 or 16"
    if int(chosen["prefetch"]) >= int(chosen["count"]):
        return f"prefetch is {chosen['prefetch']} rows ahead, and {chosen['count']} are copied"
    return ""
