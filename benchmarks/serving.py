"""The error of ``clusters.serving`` against services that were measured, as CSV.

    python benchmarks/serving.py [--data ../shared/data] [--with-saturated] [--points POINTS.csv]
    python benchmarks/serving.py --experts [...]
    python benchmarks/serving.py --kinds [...]
    python benchmarks/serving.py --groups [...]
    python benchmarks/serving.py --disaggregated [...]
    python benchmarks/serving.py --speed

Points are the dense models of ``llm_serving_silicon.csv`` (ai-dynamo/aiconfigurator, Apache-2.0),
served together (``agg``) on devices whose fabric was measured or borrowed. A point is saturated,
and left out, where a first token took longer than half of all others: it waited in front of the
engine, and fewer ran at once than its row says. Keys and values are in 8 bits where weights are
narrow, else in 16. No constant of the model was fitted to these points.

With ``--experts`` the points are those of models with experts whose layers are equal: attention
with keys and values of its own heads, and as many devices for attention as for experts, which
leaves out groups with texts of their own: for these the table may count devices twice. With
``--kinds`` they are those of models whose layers differ: the latent attention of DeepSeek and Kimi,
and the recurrent states of Qwen3.5, with as many devices for attention as for experts too. Rows of
more devices than a node has are left out: where their names say ``tp8_ep8``, their table has 64.

With ``--configurations``, a clone of SemiAnalysisAI/InferenceX with its history, plans are those
that it publishes (``published_plans.py``), and points that may guess tokens are left out. With
``--equal-lengths``, load tests of equal lengths are modelled as such where prompts come first
(:func:`service_formats.is_in_step`); without it, points have the evaluator's usual steady state.

With ``--groups`` the points are those of DeepSeek-R1 whose attention is data-parallel: groups with
sequences of their own, on as many devices as the name of the point says.

With ``--disaggregated`` the points are those with prefill replicas of their own that state how many
replicas there are, on systems with nodes: 29 of Kimi-K2.5, up to 16 devices a replica, 3 of
Qwen3-32B and 2 of Qwen3-235B.
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from published_plans import Catalogue, count_clients, find_plans, read_published
from reference_tables import DATA, find_table
from scipy.stats import spearmanr
from service_formats import FORMATS, is_in_step, read_formats

from dse.core.batch import Batch, Column
from dse_evaluators.clusters.serving.fabric import NODE_DEVICES
from dse_evaluators.clusters.serving.serving import Serving

MODELS = {
    "Llama-3.1-8B": "llama3-8b",
    "Llama-3.1-70B": "llama3-70b",
    "Qwen3-32B": "qwen3-32b",
}
WITH_EXPERTS = {"Qwen3-235B-A22B": "qwen3-235b-a22b", "MiniMax-M2.5": "minimax-m2"}
WITH_KINDS = {
    "DeepSeek-R1": "deepseek-v3",
    "Kimi-K2.5": "kimi-k2",
    "Qwen3.5-397B-A17B": "qwen3.5-397b-a17b",
}
SYSTEMS = {"h100_sxm": "h100-hgx", "b200_sxm": "b200-dgx", "gb200": "gb200-nvl72"}
DEVICES = {"h100_sxm": "h100-sxm", "h200_sxm": "h200-sxm", "b200_sxm": "b200-sxm"}
DEVICES |= {"b300_sxm": "b300-sxm"}
COLUMNS = ("model", "device", "framework", "format", "points", "median", "mean", "bias", "worst")


@dataclass(frozen=True, kw_only=True)
class Point:
    """One measured service."""

    id: str
    model: str
    device: str
    framework: str
    format: str
    expert_format: str = "same"
    isl: int
    osl: int
    batch: int
    tp: int
    ep: int
    prefill: str = ""
    """Plan of separate prefill replicas: their number, tp, attention_dp and ep; else empty."""
    replicas: int = 1
    attention_dp: int = 1
    in_step: bool = False
    """Whether its sequences start and end together."""
    ttft_s: float
    token_s: float

    @property
    def most_weights(self) -> str:
        """Format of most weights: that of routed experts, where the others have 16 bits."""
        own = self.expert_format != "same" and self.format == "bf16"
        return self.expert_format if own else self.format

    @property
    def saturated(self) -> bool:
        """True if it waited for its first token more than half as long as it then wrote."""
        return self.ttft_s > 0.5 * self.token_s * (self.osl - 1)


def main() -> None:
    """Print the errors of each model, device, framework and format, and of all."""
    options = _parse()
    if options.speed:
        print(f"plans_per_s,{speed():.0f}")
        return
    found = _chosen_points(options)
    kept = found if options.with_saturated else [one for one in found if not one.saturated]
    told_s = told(kept)
    if options.points:
        write_points(options.points, kept, told_s)
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summaries(kept, told_s))
    rank = spearmanr([one.token_s for one in kept], told_s).statistic
    left_out = len(found) - len(kept)
    print(f"spearman {rank:.4f}; {left_out} saturated points left out", file=sys.stderr)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--with-saturated", action="store_true")
    parser.add_argument(
        "--points", type=Path, help="where each point goes, with what is told of it"
    )
    parser.add_argument("--experts", action="store_true", help="models with experts instead")
    parser.add_argument("--kinds", action="store_true", help="models whose layers differ instead")
    parser.add_argument("--equal-lengths", action="store_true", help="of load tests that have them")
    parser.add_argument("--configurations", type=Path, help="clone of SemiAnalysisAI/InferenceX")
    parser.add_argument("--groups", action="store_true", help="data-parallel attention instead")
    parser.add_argument("--disaggregated", action="store_true", help="prefill replicas instead")
    parser.add_argument("--speed", action="store_true", help="plans a second instead")
    return parser.parse_args()


def _chosen_points(options: argparse.Namespace) -> list[Point]:
    if options.disaggregated:
        return disaggregated_points(options.data)
    if options.groups:
        return grouped_points(options.data)
    published = read_published(options.configurations) if options.configurations else {}
    chosen = {"experts": options.experts, "kinds": options.kinds}
    return points(options.data, **chosen, equal_lengths=options.equal_lengths, published=published)


def points(
    folder: Path,
    *,
    experts: bool = False,
    kinds: bool = False,
    equal_lengths: bool = False,
    published: Catalogue | None = None,
) -> list[Point]:
    """The points of a folder: dense models, those with experts, or those whose layers differ.

    Points with one published plan have that plan; those that may guess tokens are left out.
    """
    models = WITH_KINDS if kinds else WITH_EXPERTS if experts else MODELS
    with find_table(folder, "llm_serving_silicon.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if _is_known(row, models)]
    found = (_published_point(row, models, published or {}) for row in rows)
    kept = [one for one in found if one is not None]
    return kept if equal_lengths else [replace(one, in_step=False) for one in kept]


def _published_point(
    row: Mapping[str, str], models: Mapping[str, str], published: Catalogue
) -> Point | None:
    point = _point(row, models)
    plans = find_plans(published, row, point.model)
    if len({plan.decode for plan in plans}) != 1:
        return point
    plan = plans[0]
    design = plan.design(count_clients(row) or 1, point.model)
    names = ("tp", "ep", "attention_dp", "batch")
    changed = {name: int(design[name]) for name in names}
    return None if any(plan.guesses for plan in plans) else replace(point, **changed)


def disaggregated_points(folder: Path) -> list[Point]:
    """The points with separate prefill replicas, of which the table has the number."""
    models = MODELS | WITH_EXPERTS | WITH_KINDS
    with find_table(folder, "llm_serving_silicon.csv").open(encoding="utf-8", newline="") as file:
        return [
            _disaggregated_point(row, models)
            for row in csv.DictReader(file)
            if row["mode"] == "disagg" and row["decode_num_workers"] and row["prefill_num_workers"]
        ]


def grouped_points(folder: Path) -> list[Point]:
    """The points with data-parallel attention, whose name and table agree on the devices."""
    with find_table(folder, "llm_serving_silicon.csv").open(encoding="utf-8", newline="") as file:
        return [
            replace(_point(row, WITH_KINDS), attention_dp=_count(row, "attention_dp_size"))
            for row in csv.DictReader(file)
            if row["mode"] == "agg" and _is_grouped(row)
        ]


def told(found: Sequence[Point]) -> np.ndarray:
    """The time of a token that the evaluator tells for each point, in seconds."""
    groups = defaultdict[tuple[str, str, int, int, bool], list[int]](list)
    for place, one in enumerate(found):
        groups[one.model, one.device, one.isl, one.osl, one.in_step].append(place)
    seconds = np.zeros(len(found))
    for (model, device, isl, osl, in_step), places in groups.items():
        where = {"system" if found[places[0]].prefill else "device": device}
        lengths = {"isl": isl, "osl": osl, "equal_lengths": in_step}
        served = Serving(model=model, waiting=True, **lengths, **where)
        designs = [_design(found[place]) for place in places]
        seconds[places] = served.evaluate(Batch.of(designs)).columns["tpot"]
    return seconds


def summaries(found: Sequence[Point], told_s: np.ndarray) -> Iterator[dict[str, object]]:
    """The errors of each group, and of all points."""
    errors = told_s / np.array([one.token_s for one in found]) - 1.0
    groups = defaultdict[tuple[str, ...], list[int]](list)
    for place, one in enumerate(found):
        groups[one.model, one.device, one.framework, one.most_weights].append(place)
    for key, places in [*sorted(groups.items()), (("all",) * 4, list(range(len(found))))]:
        some = errors[places]
        figures = (np.median(abs(some)), abs(some).mean(), np.median(some), abs(some).max())
        named = dict(zip(COLUMNS[5:], (f"{figure:.3f}" for figure in figures), strict=True))
        yield {**dict(zip(COLUMNS, key, strict=False)), "points": len(places), **named}


def speed(count: int = 200_000) -> float:
    """Plans a second on one core, all of them different."""
    rng = np.random.default_rng(0)
    served = Serving(model="llama3-70b", device="h200-sxm", isl=2048, osl=512)
    numbers = {
        "tp": 2.0 ** rng.integers(0, 4, count),
        "batch": rng.integers(1, 1024, count).astype(float),
        "replicas": rng.integers(1, 64, count).astype(float),
        "chunk": rng.integers(0, 2048, count).astype(float),
    }
    words = {"weight_format": ("bf16", "fp8"), "kv_format": ("bf16", "fp8", "nvfp4")}
    columns = {name: Column(values) for name, values in numbers.items()} | {
        name: Column.coded(domain, rng.integers(0, len(domain), count))
        for name, domain in words.items()
    }
    batches = [
        Batch(columns, count).take(np.arange(start, start + 10_000))
        for start in range(0, count, 10_000)
    ]
    started = time.process_time()
    for batch in batches:
        served.evaluate(batch)
    return count / (time.process_time() - started)


def write_points(path: Path, found: Sequence[Point], told_s: np.ndarray) -> None:
    """A table of all points."""
    rows = [{**asdict(one), "told_s": f"{at:.6g}"} for one, at in zip(found, told_s, strict=True)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def _design(point: Point) -> dict[str, object]:
    names = ("replicas", "tp", "attention_dp", "ep")
    prefill = {
        f"prefill_{name}": int(each)
        for name, each in zip(names, point.prefill.split(), strict=False)
    }
    return {
        **prefill,
        "replicas": point.replicas,
        "attention_dp": point.attention_dp,
        "tp": point.tp,
        "batch": point.batch,
        "ep": point.ep,
        "weight_format": point.format,
        **({} if point.expert_format == "same" else {"expert_format": point.expert_format}),
        "kv_format": "bf16" if point.most_weights == "bf16" else "fp8",
    }


def _is_known(row: Mapping[str, str], models: Mapping[str, str]) -> bool:
    known = row["system"] in DEVICES and row["gemm_quant_mode"] in FORMATS
    known = known and row["gemm_quant_mode"] != "int4_wo"
    together = row["mode"] == "agg" and bool(row["batch_size"])
    experts = _count(row, "moe_tp_size") * _count(row, "moe_ep_size")
    alike = experts == int(row["tp_size"] or 1) or models is MODELS
    one_node = int(row["tp_size"] or 1) <= NODE_DEVICES
    return known and together and alike and one_node and bool(_model(row, models))


def _is_grouped(row: Mapping[str, str]) -> bool:
    groups, named = _count(row, "attention_dp_size"), re.search(r"_tp(\d+)_", row["id"])
    devices = groups * _count(row, "tp_size")
    experts = _count(row, "moe_tp_size") * _count(row, "moe_ep_size")
    agree = named is not None and int(named[1]) == devices == experts
    return groups > 1 and agree and bool(_model(row, WITH_KINDS))


def _model(row: Mapping[str, str], models: Mapping[str, str]) -> str:
    name = row["model_path"].split("/")[-1]
    return next((each for each in models if name.startswith(each)), "")


def _disaggregated_point(row: Mapping[str, str], models: Mapping[str, str]) -> Point:
    tp, groups, ep = (
        {pool: max(_count(row, f"{pool}_{name}"), 1) for pool in ("prefill", "decode")}
        for name in ("tp_size", "attention_dp_size", "moe_ep_size")
    )
    numbers = (row["prefill_num_workers"], tp["prefill"], groups["prefill"], ep["prefill"])
    model = models[_model(row, models)]
    formats = read_formats(row, model)
    return Point(
        id=row["id"],
        model=model,
        device=SYSTEMS[row["system"]],
        framework=row["backend"],
        format=str(formats["weight_format"]),
        expert_format=str(formats.get("expert_format", "same")),
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        batch=int(row["decode_batch_size"]),
        tp=tp["decode"],
        ep=ep["decode"],
        prefill=" ".join(map(str, numbers)),
        replicas=int(row["decode_num_workers"]),
        attention_dp=groups["decode"],
        ttft_s=float(row["silicon_ttft_ms"]) * 1e-3,
        token_s=float(row["silicon_tpot_ms"]) * 1e-3,
    )


def _count(row: Mapping[str, str], column: str) -> int:
    return int(row[column] or 1)


def _point(row: Mapping[str, str], models: Mapping[str, str]) -> Point:
    model = models[_model(row, models)]
    formats = read_formats(row, model)
    return Point(
        id=row["id"],
        model=model,
        device=DEVICES[row["system"]],
        framework=row["backend"],
        format=str(formats["weight_format"]),
        expert_format=str(formats.get("expert_format", "same")),
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        batch=int(row["batch_size"]),
        tp=int(row["tp_size"]),
        ep=1 if models is MODELS else _count(row, "moe_ep_size"),
        in_step=is_in_step(row),
        ttft_s=float(row["silicon_ttft_ms"]) * 1e-3,
        token_s=float(row["silicon_tpot_ms"]) * 1e-3,
    )


if __name__ == "__main__":
    main()
