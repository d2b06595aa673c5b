"""Measure matrix products on the GPU of this machine, or compare measured ones with our model.

    python benchmarks/gemm_on_gpu.py measure -o products.csv
    python benchmarks/gemm_on_gpu.py compare benchmarks/gemm_h100_torch.csv --device h100-sxm

``measure`` needs torch with CUDA and nothing else, ``compare`` needs no GPU. The columns are those
of the open tables: device, framework, dtype, m, n, k, latency_ms, source.

A latency is the median over repeats of a CUDA graph of many products whose operands rotate through
more memory than the cache of the GPU holds: no launch on the host is counted, no operand is warm.
"""

# Narrow products have no public name in torch.
# ruff: noqa: SLF001
# mypy: disable-error-code="no-untyped-call,no-any-return"

from __future__ import annotations

import argparse
import csv
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

    from dse.core.values import Floats

MATRICES = (
    (6144, 4096),
    (4096, 4096),
    (28672, 4096),
    (4096, 14336),
    (4608, 3584),
    (37888, 3584),
    (3584, 18944),
    (10240, 8192),
    (8192, 28672),
    (16384, 2048),
)
"""Weights (n, k) of Llama 3 8B, Qwen2.5 7B, Llama 3 70B and Llama 3.2 1B."""

DRAWN = 12
"""Further matrices, of sides drawn log-uniformly among multiples of 128 from 512 to 16,384."""

ROWS = (1, 4, 8, 16, 32, 48, 64, 128, 256, 512, 1024, 2048, 4096)
GROUP = 128
"""Weights of one scale where the weights have four bits."""

CACHE_BYTES = 160 * 2**20
"""More than three times the 50 MB of the H100's second-level cache."""

REPEATS = 7
GRAPH_SECONDS = 4e-3
"""One graph holds about as many products as take so long."""

FIELDS = ("device", "framework", "dtype", "m", "n", "k", "latency_ms", "source")


def drawn_matrices() -> list[tuple[int, int]]:
    """Return DRAWN matrices (n, k) by a fixed seed."""
    draw = random.Random(2311)
    sides = [round(2 ** draw.uniform(9, 14) / 128) * 128 for _ in range(2 * DRAWN)]
    return list(zip(sides[::2], sides[1::2], strict=True))


def products(dtype: str, m: int, n: int, k: int) -> Iterator[Callable[[], torch.Tensor]]:
    """Yield the same product on fresh operands, without end.

    Args:
        dtype: bf16, fp8 (both operands), int8 (both operands) or int4_wo (weights alone).
        m: rows of the activations.
        n: columns of the weights.
        k: the inner side.
    """
    import torch

    cuda = torch.device("cuda")
    while True:
        x = torch.randn(m, k, device=cuda, dtype=torch.bfloat16)
        w = torch.randn(n, k, device=cuda, dtype=torch.bfloat16)
        if dtype == "bf16":
            yield partial(torch.mm, x, w.t())
        elif dtype == "fp8":
            a, b = x.to(torch.float8_e4m3fn), w.to(torch.float8_e4m3fn)
            one = torch.ones((), device=cuda)
            scales = {"scale_a": one, "scale_b": one}
            yield partial(
                torch._scaled_mm, a, b.t(), **scales, out_dtype=torch.bfloat16, use_fast_accum=True
            )
        elif dtype == "int8":
            a, b = (x * 20).to(torch.int8), (w * 20).to(torch.int8)
            yield partial(torch._int_mm, a, b.t())
        else:
            codes = torch.randint(0, 256, (n, k // 2), device=cuda, dtype=torch.uint8)
            packed = torch.ops.aten._convert_weight_to_int4pack(codes, 8)
            shifts = torch.randn(k // GROUP, n, 2, device=cuda, dtype=torch.bfloat16)
            yield partial(torch.ops.aten._weight_int4pack_mm, x, packed, GROUP, shifts)


def seconds_of(dtype: str, m: int, n: int, k: int) -> float:
    """Return the median seconds of one product, over REPEATS of a graph of many."""
    import torch

    width = {"bf16": 2.0, "fp8": 1.0, "int8": 1.0, "int4_wo": 0.5}[dtype]
    sets = max(2, min(64, int(CACHE_BYTES / (width * n * k + 2.0 * m * k)) + 1))
    calls = list(islice(products(dtype, m, n, k), sets))

    def run_all(rounds: int = 1) -> None:
        for call in calls * rounds:
            call()

    with torch.cuda.stream(torch.cuda.Stream()):
        run_all()
        one = max(elapsed(run_all) / sets, 2e-6)
        rounds = max(1, int(GRAPH_SECONDS / one / sets))
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            run_all(rounds)
        graph.replay()
        times = [elapsed(graph.replay) for _ in range(REPEATS)]
    return statistics.median(times) / (rounds * sets)


def elapsed(run: Callable[[], None]) -> float:
    """Return the seconds that work takes on the GPU, by its own events."""
    import torch

    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    run()
    end.record()
    end.synchronize()
    return float(start.elapsed_time(end)) / 1e3


def measure(path: Path) -> None:
    """Write the seconds of every product that this GPU's libraries take to a CSV file."""
    import torch

    name = torch.cuda.get_device_name(0)
    stack = f"torch-{torch.__version__}"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(FIELDS)
        for dtype in ("bf16", "fp8", "int8", "int4_wo"):
            for n, k in (*MATRICES, *drawn_matrices()):
                for m in ROWS:
                    try:
                        seconds = seconds_of(dtype, m, n, k)
                    except RuntimeError as error:
                        reason = str(error).splitlines()[0][:120]
                        print(f"{dtype} {m}x{n}x{k}: {reason}", file=sys.stderr)
                        torch.cuda.synchronize()
                        continue
                    line = (name, stack, dtype, m, n, k, f"{seconds * 1e3:.6g}")
                    writer.writerow((*line, "benchmarks/gemm_on_gpu.py"))
                file.flush()
                torch.cuda.empty_cache()


def predict(dtype: str, device: str, m: Floats, n: Floats, k: Floats) -> tuple[Floats, Floats]:
    """Return the seconds of products by the model, and by the higher roof of the data sheet."""
    import numpy as np

    from dse_evaluators.accelerators.devices.calibrations import calibration_of
    from dse_evaluators.accelerators.devices.devices import device_of
    from dse_evaluators.accelerators.devices.recipes import RECIPES
    from dse_evaluators.accelerators.devices.roofline import KernelWork, times
    from dse_evaluators.accelerators.devices.weight_only import (
        rates_of,
        weight_only_of,
        widened_times,
        work_of,
    )

    known = device_of(device)
    if dtype == "int4_wo":
        rate, work = known.flops_per_s["bf16"], work_of(m, n, k, 0.5)
        found = widened_times(work, weight_only_of(device, 4), rates_of(known), m)
    else:
        recipe, rate = RECIPES[dtype], known.flops_per_s[dtype]
        result_bytes = 4.0 if dtype == "int8" else recipe.result_bytes  # sums in 32 bits
        work = KernelWork(
            flops=2 * m * n * k,
            moved_bytes=recipe.operand_bytes * (m * k + k * n) + result_bytes * m * n,
            chain=k,
            converted=np.zeros_like(m),  # activations are given in the narrow format
        )
        constants = calibration_of(device, dtype).constants
        found = times(work, constants, flops_per_s=rate, bytes_per_s=known.dram_bytes_per_s)
    return found.total_s, np.maximum(work.flops / rate, work.moved_bytes / known.dram_bytes_per_s)


def compare(path: Path, device: str) -> None:
    """Print the error of the model's constants, of which none is fitted to these products."""
    import numpy as np
    from scipy.stats import spearmanr

    groups = defaultdict[str, list[tuple[float, ...]]](list)
    with path.open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            sides = (float(row[name]) for name in "mnk")
            groups[row["dtype"]].append((*sides, float(row["latency_ms"]) / 1e3))
    print(
        "dtype     points  naive median  model median  model mean  Spearman  model / measured by m"
    )
    for dtype, points in groups.items():
        m, n, k, seconds = np.array(points).T
        found, naive = predict(dtype, device, m, n, k)
        errors, rough = np.abs(found / seconds - 1), np.abs(naive / seconds - 1)
        rows = {one: np.median((found / seconds)[m == one]) for one in np.unique(m)}
        print(
            f"{dtype:<8} {len(m):>7} {np.median(rough):>13.3f} {np.median(errors):>13.3f}"
            f" {errors.mean():>11.3f} {spearmanr(found, seconds).statistic:>9.3f}  "
            + " ".join(f"{one:g}:{ratio:.2f}" for one, ratio in rows.items())
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure or compare, as the command line says."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("measure")
    one.add_argument("-o", "--output", type=Path, required=True)
    two = commands.add_parser("compare")
    two.add_argument("products", type=Path)
    two.add_argument("--device", default="h100-sxm")
    given = parser.parse_args(arguments)
    if given.command == "measure":
        measure(given.output)
    else:
        compare(given.products, given.device)


if __name__ == "__main__":
    main()
