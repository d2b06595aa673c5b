"""Count the published serving measurements that ``clusters.serving`` can be asked about, as CSV.

    python benchmarks/serving_coverage.py silicon_sample.csv [--choices]
        [--configurations InferenceX] [--part development|held-out] [--popularity 1.01]

The table has 5,221 measured services (ai-dynamo/aiconfigurator@095f58a, Apache-2.0:
aic-core/src/aiconfigurator_core/systems/silicon_sample.csv). A row is *stated* if its columns give
model, system, formats and the plan of each pool, and the evaluator gives a time for them. A row of
separate prefill replicas whose numbers are empty is *assumed*: one replica of each pool, and all
clients, which its name has, in decode. A row whose name and columns disagree on the devices is
*contradictory*; it can be asked, but not which of the two is true. *Infeasible* rows were measured,
but the evaluator refuses them: it lacks memory for them, or a rule of their plan is broken. On
devices without units of 4 bits, weights of 4 bits are widened to bf16. For the other kinds the
error of the time of a token follows; no constant was fitted to them.

Many measurements are in the table two or three times, with columns of unequal completeness: a row
is *listed twice* if another row of the same two times states the plan. With ``--configurations``, a
clone of SemiAnalysisAI/InferenceX with its history, a row is *published* if its published
configurations leave one plan (:mod:`published_plans`), which then replaces the columns. A
*published, guessing* service guesses tokens: its draft model is the layer for multi-token
prediction, whose tokens are accepted with the lowest published probability, .85 (DeepSeek-AI:
DeepSeek-V3, 2024, section 5.4.3). *Published, maybe guessing* services have one published plan,
with and without guesses; the error is that without.

With ``--choices``, of the stated services of one model, system, software version, formats, lengths
and number of clients, the plan that the model finds best is compared with the measured best: by
the time of a token, and by tokens a second and device.

With ``--popularity``, experts are unequally popular, by a power law with this exponent.

With ``--part``, only the services of one half of models and systems, by a hash of both: causes of
errors were looked for in ``development`` alone.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from published_plans import Catalogue, count_clients, find_plans, read_published
from scipy.stats import spearmanr
from service_formats import FORMATS, is_in_step, read_formats

from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.clusters.serving.fabric import NODE_DEVICES
from dse_evaluators.clusters.serving.serving import Serving

SOURCE = (
    "ai-dynamo/aiconfigurator@095f58a: aic-core/src/aiconfigurator_core/systems/silicon_sample.csv"
)
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
DENSE = ("llama3-70b", "llama3-8b", "qwen3-32b")
SYSTEMS = {
    "h100_sxm": "h100-hgx",
    "h200_sxm": "h200-hgx",
    "b200_sxm": "b200-dgx",
    "b300_sxm": {"like": "b200-dgx", "device": "b300-sxm"},
    "gb200": "gb200-nvl72",
    "gb300": "gb300-nvl72",
}
ONE_NODE = ("h100_sxm", "h200_sxm", "b200_sxm", "b300_sxm")
"""Systems whose nodes have eight devices."""

SOFTWARE = ("backend", "backend_version", "gemm_quant_mode", "moe_quant_mode")
DEGREES = ("tp", "pp", "attention_dp", "ep")
ALIKE = ("model", "system", "isl", "osl", "software", "clients", "guesses")
NEAR = 0.05
"""Loss within which a chosen plan counts as good as the best."""

MEASUREMENT = ("system", "mode", "isl", "osl", "silicon_ttft_ms", "silicon_tpot_ms")
"""Columns that are equal, to the last digit, in all rows of a measurement."""

ACCEPTANCE = 0.85
"""Probability that the token of a layer for multi-token prediction is accepted."""

GUESSING_LAYER = {
    "deepseek-v3": {"dense_layers": 0},
    "qwen3.5-397b-a17b": {"state_layers": 0, "state": ""},
}
"""Fields in which the layer for multi-token prediction differs from the model's layers."""

KNOWN = ("stated", "listed twice", "published", "published, guessing", "published, maybe guessing")
"""Kinds of services whose plan is known."""

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
    software: str
    in_step: bool
    """Whether its load test had equal lengths, and its server computes prompts before decoding."""
    part: str
    token_s: float

    @property
    def devices(self) -> float:
        """Devices of a replica."""
        return float(
            np.prod([float(str(self.design[name])) for name in ("tp", "pp", "attention_dp")])
        )

    @property
    def guesses(self) -> float:
        """Tokens guessed per step."""
        return float(str(self.design.get("draft_tokens", 0)))

    @property
    def clients(self) -> float:
        """Sequences of a replica."""
        return float(str(self.design["batch"])) * float(str(self.design["attention_dp"]))


def read_services(path: Path, published: Catalogue | None = None) -> list[Service]:
    """Return the services of a table, in its order."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    twins = {_measurement(row): row for row in rows if _states_plan(row)}
    return [_service(row, twins.get(_measurement(row)), published or {}) for row in rows]


def _measurement(row: Mapping[str, str]) -> tuple[str, ...]:
    """Return what only rows of the same measurement have in common."""
    return tuple(row[name] for name in MEASUREMENT)


def _states_plan(row: Mapping[str, str]) -> bool:
    """Return whether a row's columns give one plan of each pool, and their numbers."""
    split = row["mode"] == "disagg"
    if split and not row["decode_num_workers"]:
        return False
    return not _is_contradictory(row, "decode_" if split else "")


def _service(
    row: Mapping[str, str], twin: Mapping[str, str] | None, published: Catalogue
) -> Service:
    name = row["model_path"].split("/")[-1]
    model = next((value for key, value in MODELS.items() if name.startswith(key)), "")
    known = bool(model and row["gemm_quant_mode"] in FORMATS and row["system"] in SYSTEMS)
    design = read_formats(row, model) if known else {}
    kind = "stated"
    if not known:
        kind = "unknown model, system or format"
    elif not _states_plan(row):
        kind = "listed twice"
        if twin is None:
            kind = "assumed" if row["mode"] == "disagg" else "contradictory"
    design |= _read_plan(row if twin is None or kind != "listed twice" else twin)
    plans = find_plans(published, row, model)
    if known and len({(plan.prefill, plan.decode) for plan in plans}) == 1:
        plan = min(plans, key=lambda plan: plan.guesses)
        kind = "published" if len(plans) == 1 else "published, maybe guessing"
        kind = "published, guessing" if plan.guesses else kind
        design |= {**plan.design(count_clients(row) or 1, model), "draft_tokens": plan.guesses}
    return Service(
        kind=kind,
        mode=row["mode"],
        model=model or name,
        system=row["system"],
        isl=int(row["isl"]),
        osl=int(row["osl"]),
        design=design,
        part=part_of(model, row["system"]),
        software=" ".join(row[name] for name in SOFTWARE),
        in_step=is_in_step(row),
        token_s=float(row["silicon_tpot_ms"]) * 1e-3,
    )


def _read_plan(row: Mapping[str, str]) -> dict[str, int]:
    """Return the plan and the load of a row, as its columns have them."""
    if row["mode"] == "disagg":
        return _pools(row)
    return {**_plan(row, ""), "batch": int(row["batch_size"] or 1)}


def part_of(model: str, system: str) -> str:
    """Return the half to which the services of a model on a system belong."""
    odd = hashlib.sha256(f"{model} {system}".encode()).digest()[0] % 2
    return "development" if odd else "held-out"


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

    Dense models have no experts; their columns are empty or 1. Services without separate prefill
    ran on one node, so that more devices than it has contradict their system.
    """
    plan = _plan(row, pool)
    devices = plan["tp"] * plan["attention_dp"]
    if not pool and row["system"] in ONE_NODE and devices > NODE_DEVICES:
        return True
    experts = int(row[pool + "moe_tp_size"] or 1) * plan["ep"]
    named = re.search(r"_tp(\d+)_", row["id"])
    if pool or experts == 1:  # names of disaggregated rows have the devices of prefill
        return experts not in (0, 1, devices)
    return experts != devices or (named is not None and int(named[1]) != devices)


def evaluate(services: list[Service], popularity: float = 0.0) -> np.ndarray:
    """Return the modelled time of a token of each service [s], (n,); NaN if it is infeasible."""
    groups = defaultdict[tuple[object, ...], list[int]](list)
    for place, one in enumerate(services):
        if not one.kind.startswith("unknown"):
            key = (
                *(one.model, one.system, one.isl, one.osl, one.guesses > 0, one.in_step),
                frozenset(one.design),
            )
            groups[key].append(place)
    seconds = np.full(len(services), np.nan)
    for (model, system, isl, osl, guesses, in_step, _), places in groups.items():
        layer = {"like": model, "layers": 1} | GUESSING_LAYER.get(str(model), {})
        try:
            served = Serving(
                model=model,
                system=SYSTEMS[str(system)],
                isl=isl,
                osl=osl,
                waiting=True,
                equal_lengths=in_step,
                draft_model=layer if guesses else None,
                acceptance=ACCEPTANCE,
                popularity=0.0 if model in DENSE else popularity,
            )
        except DseError as error:
            print(f"{model} on {system}: {error}", file=sys.stderr)
            continue
        found = served.evaluate(Batch.of([dict(services[place].design) for place in places]))
        seconds[places] = found.columns["tpot"]
        for row in found.failures:
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
        if kind in KNOWN:
            groups["all with their plan", "all", "all"].append(place)
    for key, places in sorted(groups.items()):
        measured = np.array([services[place].token_s for place in places])
        off = np.abs(seconds[places] / measured - 1.0)
        rank = spearmanr(measured, seconds[places]).statistic
        figures = (f"{np.median(off):.3f}", f"{rank:.3f}")
        yield dict(zip(COLUMNS, (*key, len(places), *figures), strict=True))


def compare_choices(services: list[Service], seconds: np.ndarray) -> Iterator[str]:
    """Yield a line for each goal: groups, the share with a good choice, and the mean loss."""
    groups = defaultdict[tuple[object, ...], dict[str, list[int]]](lambda: defaultdict(list))
    for place, one in enumerate(services):
        if one.kind in KNOWN and one.mode == "agg" and np.isfinite(seconds[place]):
            plan = " ".join(str(one.design[name]) for name in DEGREES)
            groups[tuple(getattr(one, name) for name in ALIKE)][plan].append(place)
    for goal in ("token time", "tokens a second and device"):
        losses = []
        for plans in groups.values():
            if len(plans) > 1:
                measured, modelled = (
                    np.array([_cost(services, each, s, goal) for each in plans.values()])
                    for s in (np.array([one.token_s for one in services]), seconds)
                )
                losses.append(measured[modelled.argmin()] / measured.min() - 1.0)
        good = np.mean(np.array(losses) <= NEAR)
        yield f"{goal},{len(losses)},{good:.3f},{np.mean(losses):.3f}"


def _cost(services: list[Service], places: list[int], seconds: np.ndarray, goal: str) -> float:
    """Return the mean time of a token of services with one plan, or device-seconds of a token."""
    devices = services[places[0]].devices if goal != "token time" else 1.0
    return float(seconds[places].mean() * devices)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("table", type=Path)
    parser.add_argument("--choices", action="store_true", help="the best plan of each group")
    parser.add_argument("--configurations", type=Path, help="clone of SemiAnalysisAI/InferenceX")
    parser.add_argument("--part", choices=("development", "held-out"), help="one half alone")
    parser.add_argument("--popularity", type=float, default=0.0, help="exponent; 0: equal")
    options = parser.parse_args()
    if not options.table.is_file():
        print(f"error: there is no {options.table} (source: {SOURCE})", file=sys.stderr)
        raise SystemExit(2)
    published = read_published(options.configurations) if options.configurations else None
    services = read_services(options.table, published)
    if options.part:
        services = [one for one in services if one.part == options.part]
    seconds = evaluate(services, options.popularity)
    if options.choices:
        print("goal,groups,within_5_percent,mean_loss")
        print("\n".join(compare_choices(services, seconds)))
        return
    writer = csv.DictWriter(sys.stdout, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(summarize(services, seconds))


if __name__ == "__main__":
    main()
