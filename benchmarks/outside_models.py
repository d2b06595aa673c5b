"""Our models beside those of others: the same random designs through both, as CSV.

``python benchmarks/outside_models.py [scalesim] [zigzag] [mlsysim]`` draws designs of small
networks, asks the other model in its own environment (``dse environments install``) and ours, and
prints for each metric Spearman's rank correlation, the median error of ours as it is, and that
after calibration on held-out designs. Lines ``one network`` are of designs of one network alone:
where networks differ, their sizes alone put them in order.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402 - threads are told before numpy starts them
from scipy.stats import spearmanr  # noqa: E402

from dse.core.batch import Batch  # noqa: E402
from dse.core.values import Floats, Value  # noqa: E402
from dse.optimizers.bayesian.fidelity_calibration import choose_calibration, held_out  # noqa: E402
from dse.protocols import Evaluator  # noqa: E402
from dse_evaluators.accelerators.devices.gpu import Gpu  # noqa: E402
from dse_evaluators.accelerators.systolic.systolic import Systolic  # noqa: E402
from dse_evaluators.outside.mlsysim import MlSysim  # noqa: E402
from dse_evaluators.outside.scalesim import ScaleSim  # noqa: E402
from dse_evaluators.outside.zigzag import ZigZag  # noqa: E402

Design = Mapping[str, Value]
KIB = 1024
LAYERS = (
    "digits-cnn",
    "mnist-cnn",
    "movielens-dlrm",
    "paradnn-fc:layers=2,nodes=384,input=256,output=64,batch=16",
    "paradnn-fc:layers=1,nodes=768,input=768,output=128,batch=128",
    "paradnn-rnn:layers=1,embed=128,length=32",
)
PRODUCTS = (
    "paradnn-fc:layers=1,nodes=64,input=1024,output=64,batch=32",
    "paradnn-fc:layers=1,nodes=512,input=128,output=32,batch=64",
    "paradnn-fc:layers=1,nodes=256,input=256,output=256,batch=256",
    "paradnn-fc:layers=3,nodes=128,input=64,output=16,batch=4",
)
TPU_LIKE = {
    "dataflow": "ws",
    "leakage_w_per_mm2": 0.0,
    "ifmap_sram": "1 MiB",
    "filter_sram": "128 KiB",
    "ofmap_sram": "1 MiB",
}
"""ZigZag's buffers: what their words cost does not follow other sizes. It knows no leakage."""
NETWORKS = {
    "resnet50": "ResNet50",
    "resnet18": "ResNet18",
    "vgg16": "VGG16",
    "alexnet": "AlexNet",
    "mobilenetv2": "MobileNetV2",
}
DEVICES = ("v100-sxm2", "a100-sxm-80gb", "h100-sxm", "h200-sxm", "mi300x", "mi250x")
HEADER = (
    *("tool", "designs_of", "metric", "points", "spearman", "error", "calibrated_error"),
    *("calibration", "theirs_s", "ours_s"),
)
BUFFERS = ("ifmap_sram", "filter_sram", "ofmap_sram")


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Another model and ours on the same designs of some networks, and the metrics of both."""

    networks: Sequence[str]
    theirs: Callable[[str], Evaluator]
    ours: Callable[[str], Evaluator]
    draw: Callable[[np.random.Generator], Design]
    metrics: Mapping[str, str]


def _array(rng: np.random.Generator) -> dict[str, Value]:
    return {"rows": int(2 ** rng.integers(2, 7)), "cols": int(2 ** rng.integers(2, 7))}


def _scalesim_design(rng: np.random.Generator) -> Design:
    return {
        **_array(rng),
        "dataflow": ("os", "ws", "is")[rng.integers(3)],
        **{name: KIB * int(2 ** rng.integers(1, 8)) for name in BUFFERS},
        "clock": 1e9,
    }


def _zigzag_design(rng: np.random.Generator) -> Design:
    return {
        **_array(rng),
        "clock": 1e9,
        "dram_bandwidth": 1e9 * int(2 ** rng.integers(0, 4)),
    }


def _device_design(rng: np.random.Generator) -> Design:
    return {
        "device": DEVICES[rng.integers(len(DEVICES))],
        "batch": int(2 ** rng.integers(0, 8)),
    }


COMPARISONS: Mapping[str, Comparison] = {
    "scalesim": Comparison(
        networks=(*LAYERS[:3], "paradnn-fc:layers=2,nodes=96,input=128,output=64,batch=8"),
        theirs=lambda name: ScaleSim(workload=name),
        # memory never makes SCALE-Sim wait
        ours=lambda name: Systolic(workload=name, dram_bandwidth="1 PB/s"),
        draw=_scalesim_design,
        metrics={"latency": "latency", "dram_traffic": "dram_traffic"},
    ),
    "zigzag": Comparison(
        # ZigZag 3.9.1 fails on a layer that the array takes in one step: the last of the other two
        networks=(LAYERS[0], *LAYERS[3:], *PRODUCTS),
        theirs=lambda name: ZigZag(workload=name),
        ours=lambda name: Systolic(workload=name, **TPU_LIKE),  # type: ignore[arg-type]
        draw=_zigzag_design,
        metrics={"latency": "latency", "energy": "energy"},
    ),
    "mlsysim": Comparison(
        networks=tuple(NETWORKS),
        theirs=lambda name: MlSysim(model=NETWORKS[name]),
        ours=lambda name: Gpu(workload=name, format="fp16"),
        draw=_device_design,
        metrics={"latency": "latency", "energy": "energy"},
    ),
}


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", default=[], choices=[*COMPARISONS])
    parser.add_argument("--points", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    told = parser.parse_args()
    table = csv.writer(sys.stdout)
    table.writerow(HEADER)
    for tool in told.tools or COMPARISONS:
        compare(COMPARISONS[tool], tool, told.points, np.random.default_rng(told.seed), table)


def compare(
    comparison: Comparison, tool: str, points: int, rng: np.random.Generator, table: object
) -> None:
    """A row for each metric: over all networks, and over the first alone."""
    several = [
        comparison.networks[at] for at in rng.integers(len(comparison.networks), size=points)
    ]
    for what, names in (
        ("several networks", several),
        ("one network", [comparison.networks[0]] * points),
    ):
        designs = [comparison.draw(rng) for _ in names]
        asked = (comparison.theirs, comparison.ours)
        columns, spent = zip(*(evaluated(one, names, designs) for one in asked), strict=True)
        for metric, own in comparison.metrics.items():
            high, low = columns[0][metric], columns[1][own]
            both = np.isfinite(high) & np.isfinite(low)
            row = (tool, what, metric, int(both.sum()), *agreement(low[both], high[both]))
            table.writerow((*row, *(f"{one:.3g}" for one in spent)))  # type: ignore[attr-defined]
            sys.stdout.flush()


def evaluated(
    make: Callable[[str], Evaluator],
    names: Sequence[str],
    designs: Sequence[Design],
) -> tuple[dict[str, Floats], float]:
    """All metrics in the order of the designs, NaN where there is none, and the seconds it took."""
    columns: dict[str, Floats] = {}
    started = time.monotonic()
    for name in dict.fromkeys(names):
        rows = [row for row, own in enumerate(names) if own == name]
        told = make(name).evaluate(Batch.of([designs[row] for row in rows]))
        for failure in told.failures.values():
            print(f"{name}: {failure.reason}", file=sys.stderr)
        for metric, values in told.columns.items():
            columns.setdefault(metric, np.full(len(names), np.nan))[rows] = values
    return columns, time.monotonic() - started


def agreement(low: Floats, high: Floats) -> tuple[str, ...]:
    """Rank correlation; median relative errors, as it is and calibrated; by which curve."""
    raw = np.median(np.abs(low / high - 1.0))
    calibration = np.median(np.abs(held_out(low, high) / high - 1.0))
    rank = spearmanr(low, high).statistic
    return f"{rank:.3f}", f"{raw:.3f}", f"{calibration:.3f}", choose_calibration(low, high).kind


if __name__ == "__main__":
    main()
