"""Count the published serving measurements that ``clusters.serving`` can be asked about, as CSV.

    python benchmarks/serving_coverage.py silicon_sample.csv

The table has 5,221 measured services (ai-dynamo/aiconfigurator@095f58a, Apache-2.0:
aic-core/src/aiconfigurator_core/systems/silicon_sample.csv). A row is *stated* if its columns give
model, system, formats and the plan of each pool, and the evaluator gives a time for them. A row of
separate prefill replicas whose numbers are empty is *assumed*: one replica of each pool, and all
clients, which its name has, in decode. A row whose name and columns disagree on the devices is
*contradictory*; it can be asked, but not which of the two is true. *Infeasible* rows were measured,
but the evaluator refuses them: it lacks memory for them, or a rule of their plan is broken. On
devices without units of 4 bits, weights of 4 bits are widened to bf16. For the other kinds the
error of the time of a token follows; no constant was fitted to them.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.clusters.serving.serving import Serving

MODELS = {
    "DeepSeek-R1": "deepseek-v3",
    "DeepSeek-V3": "deepseek-v3",
    "GLM-5": "glm-5",
    "Kimi-K2.5": "kimi-k2",
    "Llama-3.1-70B": "llama3-70b",
    "Llama-3.1-8B": "llama3-8b",
    "MiniMax-M2.5": "minimax-m2",
    "Qwen3-235B-A22B": "qwen3-235b-a22b",
    "Qwen3-32B": "qwen3-32b",
    "Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
    "gpt-oss-120b": "gpt-oss-120b",
}
SYSTEMS = {
    "h100_sxm": "h100-hgx",
    "h200_sxm": "h200-hgx",
    "b200_sxm": "b200-dgx",
    "b300_sxm": {"like": "b200-dgx", "device": "b300-sxm"},
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
}
FORMATS = {"": "bf16", "fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4", "int4_wo": "bf16"}
WIDENED_BITS = {"int4_wo": 4.5, "nvfp4": 4.5, "mxfp4": 4.25}
"""Bits of a weight with its share of the scale, where GEMMs widen it to 16 bits."""

WITHOUT_FP4 = ("h100_sxm", "h200_sxm")
PUBLISHED_IN_MXFP4 = "gpt-oss"

DEGREES = ("tp", "pp", "attention_dp", "ep")
COLUMNS = ("kind", "mode", "model", "rows", "median", "spearman")


@dataclass(frozen=True, kw_only=True)
class Service:
    """A row of the table: what can be said of it, and its design."""

    kind: str
    mode: str
    model: str
    system: str
    isl: int
    osl: int
    design: Mapping[str, object]
    token_s: float


def read_services(path: Path) -> list[Service]:
    """Return the services of a table, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        return [_service(row) for row in csv.DictReader(file)]


def _service(row: Mapping[str, str]) -> Service:
    name = row["model_path"].split("/")[-1]
    model = next((value for key, value in MODELS.items() if name.startswith(key)), "")
    number_format = FORMATS.get(row["gemm_quant_mode"], "")
    design: dict[str, object] = {
        "weight_format": number_format,
        "kv_format": "bf16" if number_format == "bf16" else "fp8",
    }
    widened = row["gemm_quant_mode"]
    if widened == "int4_wo" or (widened == "nvfp4" and row["system"] in WITHOUT_FP4):
        if model.startswith(PUBLISHED_IN_MXFP4):
            widened = "mxfp4"
        design |= {"weight_format": "bf16", "weight_bits": WIDENED_BITS[widened]}
    known = bool(model and number_format and row["system"] in SYSTEMS)
    split = row["mode"] == "disagg"
    design |= _pools(row) if split else {**_plan(row, ""), "batch": int(row["batch_size"] or 1)}
    kind = "stated"
    if not known:
        kind = "unknown model, system or format"
    elif _is_contradictory(row, "decode_" if split else ""):
        kind = "contradictory"
    elif split and not row["decode_num_workers"]:
        kind = "assumed"
    return Service(
        kind=kind,
        mode=row["mode"],
        model=model or name,
        system=row["system"],
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        design=design,
        token_s=float(row["silicon_tpot_ms"]) * 1e-3,
    )


def _plan(row: Mapping[str, str], pool: str) -> dict[str, int]:
    names = ("tp_size", "pp_size", "attention_dp_size", "moe_ep_size")
    counts = (int(row[pool + name] or 1) or 1 for name in names)
    return dict(zip(DEGREES, counts, strict=True))


def _pools(row: Mapping[str, str]) -> dict[str, int]:
    """Return the plans of both pools, and their numbers, 1 where they are empty."""
    clients = re.search(r"_c(\d+)_", row["id"])
    prefill = {f"prefill_{name}": value for name, value in _plan(row, "prefill_").items()}
    return {
        **_plan(row, "decode_"),
        **prefill,
        "prefill_replicas": int(row["prefill_num_workers"] or 1),
        "replicas": int(row["decode_num_workers"] or 1),
        "batch": int(row["decode_batch_size"] or (clients[1] if clients else 1)),
    }


def _is_contradictory(row: Mapping[str, str], pool: str) -> bool:
    """Return whether attention and experts have other numbers of devices, or the name has.

    Dense models have no experts; their columns are empty or 1.
    """
    plan = _plan(row, pool)
    devices = plan["tp"] * plan["attention_dp"]
    experts = int(row[pool + "moe_tp_size"] or 1) * plan["ep"]
    named = re.search(r"_tp(\d+)_", row["id"])
    if pool or experts == 1:  # names of disaggregated rows have the devices of prefill
        return experts not in (0, 1, devices)
    return experts != devices or (named is not None and int(named[1]) != devices)


def evaluate(services: list[Service]) -> np.ndarray:
    """Return the modelled time of a token of each service [s], (n,); NaN if it is infeasible."""
    groups = defaultdict[tuple[object, ...], list[int]](list)
    for place, one in enumerate(services):
        if not one.kind.startswith("unknown"):
            key = (one.model, one.system, one.isl, one.osl, frozenset(one.design))
            groups[key].append(place)
    seconds = np.full(len(services), np.nan)
    for (model, system, isl, osl, _), places in groups.items():
        try:
            served = Serving(
                model=model, system=SYSTEMS[str(system)], isl=isl, osl=osl, waiting=True
            )
        except DseError as error:
            print(f"{model} on {system}: {error}", file=sys.stderr)
            continue
        found = served.evaluate(Batch.of([dict(services[place].design) for place in places]))
        seconds[places] = found.columns["tpot"]
        for row in found.faults:
            seconds[places[row]] = np.nan
    return seconds


def summarize(services: list[Service], seconds: np.ndarray) -> Iterator[dict[str, object]]:
    """Yield the rows, and the error of the time of a token, of each kind, mode and model."""
    groups = defaultdict[tuple[str, str, str], list[int]](list)
    for place, one in enumerate(services):
        kind = one.kind
        if not (kind.startswith("unknown") or np.isfinite(seconds[place])):
            kind = "infeasible"
        groups[kind, one.mode, one.model].append(place)
        groups[kind, "all", "all"].append(place)
    for key, places in sorted(groups.items()):
        measured = np.array([services[place].token_s for place in places])
        off = np.abs(seconds[places] / measured - 1.0)
        rank = spearmanr(measured, seconds[places]).statistic
        figures = (f"{np.median(off):.3f}", f"{rank:.3f}")
        yield dict(zip(COLUMNS, (*key, len(places), *figures), strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    services = read_services(parser.parse_args().table)
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summarize(services, evaluate(services)))


if __name__ == "__main__":
    main()
