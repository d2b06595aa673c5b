"""Kernels that are compiled here: right results in every form, and a wrong one is a failure."""

from __future__ import annotations

import shutil
from itertools import product

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, PluginError
from dse_evaluators.kernels.measured.gather import Gather
from dse_evaluators.kernels.measured.kernel_timing import (
    PreparedKernel,
    TimingLimits,
    measure_kernel,
)
from dse_evaluators.kernels.measured.languages import missing_language
from dse_evaluators.kernels.measured.softmax import Softmax
from dse_evaluators.kernels.measured.tiled_gemm import TiledGemm

SHORT = {"limit": 0.01, "precision": 0.5}
needs_compiler = pytest.mark.skipif(bool(missing_language("c")), reason="no C compiler")
needs_numba = pytest.mark.skipif(bool(missing_language("numba")), reason="no numba")


def faults_of(evaluator, *designs):
    """Why designs have no metrics: a wrong result is a reason of kind ``raised``."""
    found = evaluator.evaluate(Batch.of(list(designs)))
    return {row: (failure.kind, failure.reason) for row, failure in found.failures.items()}


@needs_compiler
def test_every_order_of_loops_multiplies_rightly_with_edges_in_all_directions():
    gemm = TiledGemm(m=19, n=37, k=21, **SHORT)
    orders = ("mnk", "mkn", "nmk", "nkm", "kmn", "knm")
    tiles = {"tile_m": 8, "tile_n": 16, "tile_k": 8, "vector": 4, "rows": 2, "unroll": 2}
    assert faults_of(gemm, *({"order": order, **tiles} for order in orders)) == {}


@needs_compiler
def test_threads_share_the_rows_without_a_collision():
    gemm = TiledGemm(m=19, n=16, k=8, threads=2, **SHORT)
    tiles = {"tile_m": 2, "tile_n": 16, "tile_k": 4, "rows": 2, "vector": 8, "unroll": 1}
    assert faults_of(gemm, {"order": "kmn", **tiles}, {"order": "nmk", **tiles}) == {}


@needs_numba
def test_numba_multiplies_rightly():
    gemm = TiledGemm(m=19, n=37, k=21, language="numba", **SHORT)
    designs = [{"order": order, "tile_m": 8, "tile_n": 16, "tile_k": 5} for order in ("mnk", "knm")]
    assert faults_of(gemm, *designs) == {}


@needs_compiler
def test_every_method_of_softmax_agrees_with_numpy_in_both_formats():
    softmax = Softmax(row_count=3, columns=203, **SHORT)
    methods = ("online", "two-pass", "three-pass", "three-pass-reload")
    designs = [
        {"method": method, "format": number, "vector": 8}
        for method, number in product(methods, ("float32", "float64"))
    ]
    assert faults_of(softmax, *designs) == {}


@needs_compiler
def test_the_two_pass_softmax_moves_three_numbers_and_the_others_four_and_five():
    softmax = Softmax(row_count=2, columns=64, **SHORT)
    methods = ("two-pass", "three-pass", "three-pass-reload")
    found = softmax.evaluate(Batch.of([{"method": method} for method in methods]))
    # Dukhan, Ablavatski, 2020, table 1: 3 N, 4 N and 5 N of memory traffic.
    assert (found.columns["traffic"] / (2 * 64 * 4)).tolist() == [3, 4, 5]


@needs_numba
def test_numba_has_three_methods_of_softmax_and_refuses_the_fourth():
    softmax = Softmax(row_count=3, columns=50, language="numba", **SHORT)
    methods = ("online", "three-pass", "three-pass-reload", "two-pass")
    found = faults_of(softmax, *({"method": method} for method in methods))
    assert found == {3: ("infeasible", "numba has no two-pass method")}


@needs_compiler
def test_gathered_rows_are_those_of_the_table():
    gather = Gather(table_rows=100, count=33, columns=19, **SHORT)
    vectors = {"copy": "vector", "vector": 4, "prefetch": 4, "prefetched": 128}
    assert faults_of(gather, {}, vectors, {"prefetch": 32, "format": "float64"}) == {}


def test_a_wrong_result_is_a_failure_that_names_the_element():
    output = np.zeros((2, 3), np.float32)
    kernel = PreparedKernel(
        call=lambda: output.fill(1),
        output=output,
        expected=np.array([[1.0, 1, 1], [1, 1, 1.5]]),
        tolerance=np.full((2, 3), 1e-6),
    )
    with pytest.raises(
        EvaluationError, match=r"1 of 6 elements wrongly: 1 instead of 1.5 at \(1, 2"
    ):
        measure_kernel(kernel, TimingLimits(precision=0.5, limit_s=0.01, pin=False), threads=1)


def test_an_element_that_is_not_written_is_wrong():
    output = np.zeros(2, np.float32)

    def write_one() -> None:
        output[0] = 1

    kernel = PreparedKernel(
        call=write_one, output=output, expected=np.ones(2), tolerance=np.full(2, 1e9)
    )
    with pytest.raises(EvaluationError, match="nan instead of 1"):
        measure_kernel(kernel, TimingLimits(precision=0.5, limit_s=0.01, pin=False), threads=1)


@needs_compiler
@pytest.mark.parametrize(
    ("design", "problem"),
    [
        ({"tile_n": 24, "vector": 8, "unroll": 2}, "no multiple of vector x unroll = 16"),
        ({"rows": 3}, "no multiple of rows = 3"),
        ({"tile_k": 64}, "tile_k is 64, and the matrix has 32"),
        ({"threads": 1000}, "1000 threads"),
        ({"vector": 3}, "must be 1, 2, 4, 8 or 16"),
    ],
)
def test_what_cannot_be_built_is_infeasible(design, problem):
    gemm = TiledGemm(m=32, n=32, k=32, **SHORT)
    found = faults_of(gemm, {"tile_m": 8, "tile_n": 32, "tile_k": 8, **design})
    assert found[0][0] == "infeasible"
    assert problem in found[0][1]


def test_an_input_without_effect_is_refused():
    gemm = TiledGemm(m=32, n=32, k=32, language="numba", **SHORT)
    found = faults_of(gemm, {"tile_m": 8, "tile_n": 32, "tile_k": 8, "vector": 4})
    assert "vector has no effect" in found[0][1]


@needs_compiler
def test_the_compilers_last_lines_are_the_reason_of_a_failure(monkeypatch, tmp_path):
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho 'kernel.c:3: error: no such vector' >&2\nexit 1\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    gemm = TiledGemm(m=17, n=32, k=32, **SHORT)
    found = faults_of(gemm, {"tile_m": 8, "tile_n": 32, "tile_k": 8})
    assert found[0][0] == "raised"
    assert "no such vector" in found[0][1]


def test_without_a_compiler_and_numba_it_is_missing(monkeypatch):
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(shutil, "which", lambda _: None)
    assert "no C compiler" in TiledGemm(language="c").missing


@pytest.mark.parametrize("options", [{"precision": 2}, {"limit": "soon"}, {"pin": "yes"}])
def test_invalid_options_are_refused(options):
    with pytest.raises(PluginError):
        TiledGemm(**options)
