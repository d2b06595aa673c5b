"""The evaluator ``kernels.softmax``: methods of a softmax, compiled and timed on this machine."""

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
from dse.errors import EvaluationError, InfeasibleError
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

_METHODS: Mapping[str, int] = {
    "online": 1,
    "two-pass": 2,
    "three-pass": 3,
    "three-pass-reload": 4,
}
"""The value of the macro PASSES of each method."""

_MOVED = {"online": 3, "two-pass": 3, "three-pass": 4, "three-pass-reload": 5}
"""Numbers read and written for each element if no cache holds a row."""

_WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
_INPUTS: Mapping[str, Reading] = {
    "method": one_of(_METHODS),
    "row_count": NumberInput(1, 1 << 20, default=16, whole=True),
    "columns": NumberInput(1, 1 << 26, default=8192, whole=True),
    "language": one_of(LANGUAGES, "c"),
    "format": one_of(FORMATS, "float32"),
    "vector": NumberInput(1, max(_WIDTHS), default=16, whole=True),
    "block": NumberInput(1, 1 << 26, default=256, whole=True),
    "threads": NumberInput(1, 1024, default=1, whole=True),
}
_METRICS = (
    *COMMON_METRICS,
    Metric(name="rate", unit="1/s", goal="maximize"),
    Metric(name="traffic", unit="B", goal="minimize"),
)


class Softmax(DeclaredEvaluator, reads=_INPUTS, provides=_METRICS, version="2", kind="measured"):
    """Measured time of a row-wise softmax on this machine's processor, by algorithm.

    The kernel is compiled for each design. The result is compared with numpy's in double precision
    before and after the timing; a design whose result is wrong fails. ``rate`` is elements per
    second. ``traffic`` is not measured: the bytes that the method reads and writes if no cache
    holds a row, three numbers per element for ``two-pass`` and ``online``, four for ``three-pass``,
    five for ``three-pass-reload``. Other metrics are as in ``kernels.tiled-gemm``.

    Args:
        precision: relative half-width of the 95 % interval of the latency at which timing ends.
        limit: time limit of the timing of a design: seconds, or a text such as ``5 s``.
        pin: pin the calling thread to the least busy processors.

    Inputs:
        method: ``three-pass`` finds the maximum, sums exponentials, and computes them again;
            ``three-pass-reload`` stores them and scales them; ``two-pass`` keeps each exponential
            as mantissa and exponent and needs no maximum; ``online`` corrects the sum whenever the
            maximum grows.
        row_count: number of rows.
        columns: numbers in a row.
        language: ``c`` needs a C compiler, ``numba`` the extra ``kernels``.
        vector: accumulators of a sum; only in C.
        block: numbers between corrections of the sum; only in C, with ``online``.
        threads: they share the rows.

    Limits:
        numba has no two-pass method: it cannot return an exponential as mantissa and exponent.

    Error:
        As in ``kernels.tiled-gemm``.

    Source:
        Dukhan, Ablavatski: The Two-Pass Softmax Algorithm, 2020: the first three methods and their
        traffic. Milakov, Gimelshein: Online normalizer calculation for softmax, 2018.

    Example:
        options: {columns: 1024, limit: 1 s, precision: 0.1}
        parameters: {method: [two-pass, three-pass, three-pass-reload], vector: [8, 16]}

    Raises:
        PluginError: an option is invalid.
    """

    row_count: int | None = None
    columns: int | None = None
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
            refuse_without_effect(design, ("vector", "block"), "language == 'c'")
        if chosen["method"] != "online":
            refuse_without_effect(design, ("block",), "method == 'online'")
        problem = _misfit(chosen)
        if problem:
            raise InfeasibleError(problem)
        check_language(str(chosen["language"]))
        found = measure_kernel(_prepare(chosen), self._limits, int(chosen["threads"]))
        elements = int(chosen["row_count"]) * int(chosen["columns"])
        rate = elements / found.values["latency"]
        element_bytes = np.dtype(FORMATS[str(chosen["format"])]).itemsize
        traffic = float(_MOVED[str(chosen["method"])] * elements * element_bytes)
        error = rate * found.errors["latency"] / found.values["latency"]
        return Found(
            values={**found.values, "rate": rate, "traffic": traffic},
            errors={**found.errors, "rate": error},
        )


def _prepare(chosen: Mapping[str, Value]) -> PreparedKernel:
    """Draw the numbers of a design and compile its kernel.

    The tolerance is that of a sum of as many terms as a row has, plus one for exponentials: their
    relative error is at most that of their argument, which is below 32, times the unit roundoff.

    Raises:
        EvaluationError: the compiler fails.
    """
    number = str(chosen["format"])
    shape = int(chosen["row_count"]), int(chosen["columns"])
    inputs = np.random.default_rng(0).uniform(-16, 16, shape).astype(FORMATS[number])
    output = np.empty(shape, FORMATS[number])
    wide = inputs.astype(np.float64)
    powers = np.exp(wide - wide.max(axis=1, keepdims=True))
    expected = powers / powers.sum(axis=1, keepdims=True)
    bound = rounding_bound(shape[1] + 64, number) + rounding_bound(shape[1], "float64")
    smallest = float(np.finfo(FORMATS[number]).tiny)
    compiled = _compile_numba if chosen["language"] == "numba" else _compile_c
    return PreparedKernel(
        call=compiled(chosen, inputs, output),
        output=output,
        expected=expected,
        tolerance=bound * expected + smallest,
    )


def _compile_c(
    chosen: Mapping[str, Value], inputs: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    library = load_kernel(
        Path(__file__).with_name("softmax.c"),
        {
            "REAL": C_TYPES[str(chosen["format"])],
            "PASSES": str(_METHODS[str(chosen["method"])]),
            "ROWS": str(int(chosen["row_count"])),
            **{name.upper(): str(int(chosen[name])) for name in ("columns", "vector", "block")},
        },
    )
    return bind_arrays(library, inputs, output, threads=int(chosen["threads"]))


def _compile_numba(
    chosen: Mapping[str, Value], inputs: NDArray[Any], output: NDArray[Any]
) -> Callable[[], object]:
    from dse_evaluators.kernels.measured import numba_kernels

    methods = {
        "online": numba_kernels.softmax_online,
        "three-pass": numba_kernels.softmax_in_three_passes,
        "three-pass-reload": numba_kernels.softmax_in_four_passes,
    }
    kernel = methods.get(str(chosen["method"]))
    if kernel is None:
        raise EvaluationError("numba has no two-pass method", hint="language: c")
    return partial(numba_kernels.on_threads(kernel, int(chosen["threads"])), inputs, output)


def _misfit(chosen: Mapping[str, Value]) -> str:
    """Return why a design cannot be built; empty if it can."""
    processors = count_processors()
    if int(chosen["threads"]) > processors:
        return f"{chosen['threads']} threads, and {processors} processors"
    if int(chosen["vector"]) not in _WIDTHS:
        return f"vector is {chosen['vector']}, and must be a power of two up to 128"
    if chosen["language"] == "numba" and chosen["method"] == "two-pass":
        return "numba has no two-pass method"
    return ""
