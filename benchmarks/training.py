"""The error of ``clusters.training`` against what is in print, and its plans a second, as CSV.

    python benchmarks/training.py [--verdicts TABLE.csv]
    python benchmarks/training.py --speed

Iterations and memory are those of Megatron-LM on A100 (Korthikanti et al., 2022, table 5 and
figure 1); verdicts those of Calculon (calculon-ai/calculon@caa4b11, Apache-2.0), by default on the
56 plans of ``tests/data``; rates those of Megatron Bridge in 8 bits and of Llama 3 in 16, which do
not tell what they computed twice: here nothing, and messages of replicas overlap. No constant of
the model was fitted to any of these. Speed is over all legal plans of
``spaces/clusters/transformer_training.yaml``, which all differ, in blocks as a study sends them.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Value
from dse.schema.space.space_loader import space_of
from dse.schema.yaml.files import Files
from dse_evaluators.clusters.training.training import Training

ROOT = Path(__file__).parents[1]
VERDICTS = ROOT / "tests" / "data" / "calculon_sample.csv"
COLUMNS = ("what", "model", "way", "published", "told", "error")
GIB = 2.0**30

# By model: tp, pp, stages on each device, microbatch, sequences of a step; seconds with full
# recomputation, and selective with sequence parallelism; GiB of state and activations of these.
MEGATRON: Mapping[str, tuple[tuple[int, ...], tuple[float, float], tuple[float, float]]] = {
    "megatron-22b": ((8, 1, 1, 4, 4), (1.42, 1.10), (45.5625, 9.5625)),
    "gpt3-175b": ((8, 8, 3, 1, 64), (18.13, 13.75), (45.5625, 12.3515625)),
    "megatron-530b": ((8, 35, 3, 1, 280), (49.05, 37.83), (31.640625, 23.076171875)),
    "megatron-1t": ((8, 64, 1, 1, 512), (94.42, 71.49), (32.958984375, 26.5625)),
}
CALCULON = {
    "megatron-22B": "megatron-22b",
    "gpt3-175B": "gpt3-175b",
    "turing-530B": "megatron-530b",
    "megatron-1T": "megatron-1t",
}

# NVIDIA-NeMo/Megatron-Bridge@00b7660, docs/performance-summary.md (25.11): tokens a second and
# device. Dubey et al.: The Llama 3 Herd of Models, 2024, table 4: utilization; its stages on each
# device are a guess. In order: sequence, batch, microbatch, tp, pp, stages on each device, cp, dp,
# ep, stage of ZeRO; what was published.
BRIDGE = (
    ("llama3-8b", "h100-dgx", (8192, 128, 1, 1, 1, 1, 1, 8, 1, 3), 14451.0),
    ("llama3-70b", "h100-dgx", (8192, 128, 1, 4, 8, 5, 1, 2, 1, 1), 1602.0),
    ("llama3-405b", "h100-dgx", (8192, 512, 1, 8, 8, 8, 2, 8, 1, 1), 292.0),
    ("llama3-8b", "b200-dgx", (8192, 128, 2, 1, 1, 1, 1, 8, 1, 1), 30624.0),
    ("llama3-405b", "b200-dgx", (8192, 64, 1, 4, 8, 8, 2, 2, 1, 1), 661.0),
    ("qwen3-30b-a3b", "h100-dgx", (4096, 512, 2, 1, 2, 24, 1, 8, 8, 1), 5275.0),
    ("qwen3-30b-a3b", "b200-dgx", (4096, 512, 1, 1, 1, 1, 1, 8, 8, 1), 9299.0),
    ("qwen3-235b-a22b", "b200-dgx", (4096, 1024, 1, 1, 8, 2, 1, 8, 8, 1), 3269.0),
)
# NVIDIA-NeMo/Megatron-Bridge@067f987, docs/performance-summary-archive.md: all rows of release
# 26.06 of models with experts that the model takes; MXFP8 except on H100. In the order above.
B300 = {"like": "b200-dgx", "device": "b300-sxm"}
NEWER_BRIDGE = (
    ("qwen3-30b-a3b", "gb300-nvl72", (4096, 512, 8, 1, 1, 1, 1, 8, 8, 1), 45275.0),
    ("qwen3-30b-a3b", "gb200-nvl72", (4096, 512, 4, 1, 1, 1, 1, 8, 8, 1), 40706.0),
    ("qwen3-30b-a3b", B300, (4096, 512, 8, 1, 1, 1, 1, 8, 8, 1), 40769.0),
    ("qwen3-30b-a3b", "h100-dgx", (4096, 1024, 1, 1, 1, 1, 1, 16, 16, 1), 8826.0),
    ("qwen3-235b-a22b", "gb300-nvl72", (4096, 8192, 2, 1, 4, 12, 1, 64, 32, 1), 9015.0),
    ("qwen3-235b-a22b", "gb200-nvl72", (4096, 8192, 1, 1, 8, 3, 1, 32, 32, 1), 7376.0),
)
_ORDER = ("microbatch", "tp", "pp", "interleave", "cp", "dp", "ep", "zero")
PublishedRate = tuple[str, str | Mapping[str, str], tuple[int, ...], float]
RECOMPUTED = {"none": "none", "attn_only": "selective", "full": "full"}


def main() -> None:
    """Print one row of each figure, and what they come to."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--verdicts", type=Path, default=VERDICTS, help="plans of Calculon")
    parser.add_argument("--speed", action="store_true", help="plans a second instead")
    options = parser.parse_args()
    if options.speed:
        count, plans_per_s = speed()
        print(f"plans,{count}\nplans_per_s,{plans_per_s:.0f}")
        return
    rows = [row for model in MEGATRON for row in megatron(model)]
    rows += [rate(one) for one in BRIDGE]
    newer = [rate(one, "26.06") for one in NEWER_BRIDGE]
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({**row, "error": f"{row['error']:.4f}"} for row in [*rows, *newer])
    for what in ("seconds", "GiB", "tokens/s"):
        errors = np.abs([row["error"] for row in rows if row["what"] == what])
        print(f"# {what}: mean {errors.mean():.4f}, largest {errors.max():.4f}")
    errors = np.abs([row["error"] for row in newer])
    print(f"# tokens/s, release 26.06: mean {errors.mean():.4f}, largest {errors.max():.4f}")
    same = np.array(list(verdicts(options.verdicts)))
    print(f"# verdicts of Calculon: {same.mean():.4f} of {len(same)} the same")


def megatron(model: str) -> Iterator[dict[str, float | str]]:
    """Two iterations of a model, and the memory of the second."""
    (tp, pp, interleave, microbatch, batch), seconds, gib = MEGATRON[model]
    laid: dict[str, Value] = {"tp": tp, "pp": pp, "dp": 1, "microbatch": microbatch}
    laid |= {"interleave": interleave}
    trained = Training(
        model=model, system="a100-dgx", sequence=2048, fused=False, global_batch=batch
    )
    full = laid | {"recompute": "full", "sequence_parallel": False}
    some = laid | {"recompute": "selective", "sequence_parallel": True}
    got = trained.evaluate(Batch.of([full, some])).columns
    state = sum(got[f"{part}_memory"][1] for part in ("weights", "gradients", "optimizer"))
    for what, way, published, told in (
        ("seconds", "full", seconds[0], got["step_time"][0]),
        ("seconds", "selective", seconds[1], got["step_time"][1]),
        ("GiB", "state", gib[0], state / GIB),
        ("GiB", "activations", gib[1], got["activations_memory"][1] / GIB),
    ):
        row: dict[str, float | str] = {"what": what, "model": model, "way": way}
        error = float(told / published - 1.0)
        yield {**row, "published": published, "told": f"{told:.5g}", "error": error}


def rate(published: PublishedRate, release: str = "25.11") -> dict[str, float | str]:
    """A run in 8 bits that somebody published, and what is told of it, told to fit or not."""
    model, system, (sequence, batch, *laid), figure = published
    trained = Training(
        model=model,
        system=system,
        sequence=sequence,
        global_batch=batch,
        number_format="fp8",
        uneven=True,
    )
    design: dict[str, Value] = dict(zip(_ORDER, laid, strict=True))
    design |= {"overlap": True, "sequence_parallel": design["tp"] != 1, "recompute": "none"}
    told = trained.evaluate(Batch.of([design])).columns["device_throughput"][0]
    row: dict[str, float | str] = {
        "what": "tokens/s",
        "model": model,
        "way": f"{system if isinstance(system, str) else system['device']} fp8 {release}",
        "published": figure,
    }
    return {**row, "told": f"{told:.5g}", "error": float(told / figure - 1.0)}


def verdicts(path: Path) -> Iterator[bool]:
    """Of each of Calculon's plans: do both say that it can be, or that it cannot?"""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for theirs, ours in CALCULON.items():
        some = [row for row in rows if row["model"] == theirs]
        trained = Training(model=ours, system="a100-dgx", sequence=2048, fused=False, reserve=0.0)
        failures = trained.evaluate(Batch.of([_laid(row) for row in some])).failures
        yield from ((at not in failures) == (row["status"] == "ok") for at, row in enumerate(some))


def speed() -> tuple[int, float]:
    """The legal plans of Llama-2-70B on 2,048 H100, and a core's best count of them a second."""
    space = space_of(ROOT / "spaces/clusters/transformer_training.yaml", Files())
    blocks = list(space.enumerate())
    trained = Training(model="llama2-70b", global_batch=2048)
    count, best_s = sum(map(len, blocks)), np.inf
    for _ in range(3):
        started = time.process_time()
        for block in blocks:
            trained.evaluate(block)
        best_s = min(best_s, time.process_time() - started)
    return count, count / best_s


def _laid(row: Mapping[str, str]) -> dict[str, Value]:
    """A plan of Calculon as one of ours; its sharded optimizer shares what ZeRO 2 does."""
    return {
        "tp": int(row["tensor_par"]),
        "pp": int(row["pipeline_par"]),
        "dp": int(row["data_par"]),
        "microbatch": int(row["microbatch_size"]),
        "interleave": int(row["pipeline_interleaving"]),
        "sequence_parallel": row["tensor_par_comm_type"] == "rs_ag",
        "recompute": RECOMPUTED[row["activation_recompute"]],
        "zero": 2 * (row["optimizer_sharding"] == "True"),
        "overlap": row["data_par_overlap"] == "True",
        "global_batch": int(row["batch_size"]),
    }


if __name__ == "__main__":
    main()
