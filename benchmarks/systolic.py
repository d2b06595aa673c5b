"""Networks per second of the systolic evaluator, beside SCALE-Sim's.

``python benchmarks/systolic.py`` prints CSV: what ran, how many whole networks, CPU-seconds, and
networks per CPU-second on one core: every workload in the full mode over the knobs of one array;
ResNet-50 over all knobs; and ResNet-50 in the mode that counts what SCALE-Sim counts, where the
inputs of a layer fit in their buffer (where they do not, each other trace is played once, which
takes up to a second). The load of the machine is told too. SCALE-Sim is measured in the same run
where ``scalesim`` 3.0.0 can be imported (with ``numpy<2.4``); else the lines marked ``earlier``
give what it took on another run of two shared cores. ``scalesim_exact.py`` compares the counts.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import importlib.util
import io
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Literal

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import numpy as np  # noqa: E402 - threads are told before numpy starts them

from dse.core.batch import Batch, Column  # noqa: E402
from dse_evaluators.accelerators.systolic.systolic import Systolic  # noqa: E402
from dse_evaluators.workloads.catalogue import WORKLOADS  # noqa: E402

EARLIER = (
    ("SCALE-Sim 3.0.0, resnet50 32x32 ws (earlier)", 518.0),
    ("SCALE-Sim 3.0.0, resnet50 128x128 os (earlier)", 204.0),
)

CONFIG = """[general]
run_name = run
[architecture_presets]
ArrayHeight: 16
ArrayWidth: 16
IfmapSramSzkB: 64
FilterSramSzkB: 64
OfmapSramSzkB: 64
IfmapOffset: 0
FilterOffset: 10000000
OfmapOffset: 20000000
Dataflow: ws
Bandwidth: 10
MemoryBanks: 1
ReadRequestBuffer: 32
WriteRequestBuffer: 32
[layout]
IfmapCustomLayout: False
IfmapSRAMBankBandwidth: 10
IfmapSRAMBankNum: 10
IfmapSRAMBankPort: 2
FilterCustomLayout: False
FilterSRAMBankBandwidth: 10
FilterSRAMBankNum: 10
FilterSRAMBankPort: 2
[sparsity]
SparsitySupport: false
[run_presets]
InterfaceBandwidth: CALC
UseRamulatorTrace: False
"""


def designs(count: int) -> Batch:
    """Random accelerators over every knob of one array."""
    rng = np.random.default_rng(0)

    def one_of(*values: float | str) -> Column:
        return Column.coded(values, rng.integers(len(values), size=count))

    sizes = [2.0**power for power in range(12, 23)]
    return Batch(
        {
            "rows": one_of(8, 16, 32, 64, 128, 256),
            "cols": one_of(8, 16, 32, 64, 128, 256),
            "dataflow": one_of("os", "ws", "is"),
            "ifmap_sram": one_of(*sizes),
            "filter_sram": one_of(*sizes),
            "ofmap_sram": one_of(*sizes),
            "clock": Column(rng.uniform(2e8, 1.6e9, count)),
            "dram_bandwidth": Column(rng.uniform(1e9, 1e11, count)),
            "weight_format": one_of("int4", "int8", "fp8_e4m3", "fp16"),
            "activation_format": one_of("int8", "fp16"),
            "filter_keep": Column(rng.uniform(0.2, 1.0, count)),
            "sparsity": Column(rng.uniform(0.0, 0.9, count)),
            "batch": one_of(1, 4, 16),
        },
        count,
    )


def many_core(batch: Batch) -> Batch:
    """The same with random cores, patterns of sparsity, accumulators and vector units."""
    rng = np.random.default_rng(1)
    domains: dict[str, tuple[float | str | bool, ...]] = {
        "cores": (1, 2, 4, 8),
        "split": ("m", "n"),
        "n_m": ("dense", "2:4", "1:4"),
        "accumulator_sram": (0.0, 65536.0),
        "accumulator_bits": (16, 32),
        "overlap": (False, True),
        "packed": (False, True),
        "vector_lanes": (8, 64),
        "vector_hidden": (False, True),
    }
    return batch.with_columns(
        {
            name: Column.coded(domain, rng.integers(len(domain), size=len(batch)))
            for name, domain in domains.items()
        }
    )


def holding(batch: Batch) -> Batch:
    """The same with input buffers that hold every overlapping layer of ResNet-50."""
    rng = np.random.default_rng(2)
    sizes = Column.coded((2.0**19, 2.0**20, 2.0**21), rng.integers(3, size=len(batch)))
    return batch.with_columns({"ifmap_sram": sizes})


def ours(batch: Batch, *, workload: str, mode: Literal["full", "scalesim"] = "full") -> float:
    """CPU-seconds of one evaluation."""
    evaluator = Systolic(workload=workload, mode=mode)
    evaluator.evaluate(batch.take(np.arange(8)))
    started = time.process_time()
    evaluator.evaluate(batch)
    return time.process_time() - started


def theirs(workload: str) -> tuple[float, float]:
    """SCALE-Sim's CPU-seconds and cycles for one network on 16 x 16, weights stationary."""
    from scalesim.scale_sim import scalesim

    rows = [
        f"{layer.name},{layer.height},{layer.width},{layer.filter_height},{layer.filter_width},"
        f"{layer.channels},{layer.filters},{layer.stride},"
        for layer in WORKLOADS[workload]
    ]
    with tempfile.TemporaryDirectory() as folder:
        paths = {name: Path(folder, name) for name in ("config", "topology", "layout")}
        paths["config"].write_text(CONFIG)
        paths["topology"].write_text("\n".join(["header,", *rows]) + "\n")
        blank = ",".join(["1"] * 20)
        layouts = [f"{layer.name},{blank}," for layer in WORKLOADS[workload]]
        paths["layout"].write_text("\n".join(["header,", *layouts]) + "\n")
        started = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            run = scalesim(
                save_disk_space=True, verbose=False, **{n: str(p) for n, p in paths.items()}
            )
            run.run_scale(top_path=folder)
        spent = time.process_time() - started
        layers = run.runner.single_layer_sim_object_list
        return spent, float(sum(layer.get_compute_report_items()[1] for layer in layers))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--designs", type=int, default=200_000)
    count = parser.parse_args().designs
    table = csv.writer(sys.stdout)
    table.writerow(("what", "networks", "cpu_s", "networks_per_cpu_s"))
    batch = designs(count)

    def told(what: str, spent: float) -> None:
        table.writerow((what, count, f"{spent:.3f}", f"{count / spent:.0f}"))

    told(
        "mode scalesim, resnet50 (54 layers)",
        ours(holding(batch), workload="resnet50", mode="scalesim"),
    )
    told("all knobs, resnet50 (54 layers)", ours(many_core(batch), workload="resnet50"))
    for workload, layers in WORKLOADS.items():
        told(f"one array, {workload} ({len(layers)} layers)", ours(batch, workload=workload))
    print("load average {:.1f} {:.1f} {:.1f}".format(*os.getloadavg()), file=sys.stderr)
    if importlib.util.find_spec("scalesim") is None:
        for what, spent in EARLIER:
            table.writerow((what, 1, spent, f"{1 / spent:.4f}"))
        print("scalesim is not installed here: not measured in this run", file=sys.stderr)
        return
    spent, cycles = theirs("digits-cnn")
    table.writerow(("SCALE-Sim, digits-cnn 16x16 ws", 1, f"{spent:.3f}", f"{1 / spent:.4f}"))
    evaluator = Systolic(workload="digits-cnn", mode="scalesim", rows=16, cols=16, dataflow="ws")
    same = evaluator.evaluate(Batch.of([{"clock": 1e9}])).columns["cycles"].item()
    print(f"cycles: SCALE-Sim {cycles:.0f}, ours {same:.0f}", file=sys.stderr)


if __name__ == "__main__":
    main()
