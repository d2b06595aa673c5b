"""How often ``clusters.training`` and Calculon agree that a plan can be, over drawn plans, as CSV.

    git clone https://github.com/calculon-ai/calculon
    python benchmarks/training_verdicts.py --calculon calculon [--plans 4000] [--seed 0]
        [--unmatched]

Plans of three models are drawn alike over layouts, offloading and formats of products: on A100 in
16 bits, on H100 in 16 or in 8. One row for each kind of plan, and one for all: the plans, the share
that is feasible to Calculon, the share with the same verdict, those that are feasible to one alone,
and of the plans that are feasible to either the share that is to both: most are to neither; then
the median difference of the seconds of a step of those. The last line is how many plans a CPU
second each judges.

Data and conventions are those of Calculon (``calculon_conventions.py``), unless ``--unmatched``:
its rates of kernels and links, no embedding and no LM head, stages that may have one layer more
than others, gradients that are offloaded with the optimizer state, which passes in every backward
pass, and no offloading from devices of fewer than three layers. In 8 bits activations, messages,
attention and gradients have 8 bits as well. Plans a second are those by our own conventions.
"""

from __future__ import annotations

import argparse
import csv
import logging
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np
from calculon_conventions import FORMAT_NAMES, Machine
from training import CALCULON, RECOMPUTED

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.clusters.training.training import Training
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

MODELS = ("megatron-22B", "gpt3-175B", "megatron-1T")
SYSTEMS = {"a100_80g": "a100-dgx", "h100_80g_nvl8": "h100-dgx"}
KINDS = (("a100_80g", "float16"), ("h100_80g_nvl8", "float16"), ("h100_80g_nvl8", "float8"))
FEWEST_OFFLOADED = 3
"""Layers of a device from which Calculon offloads."""

LAYOUT = ("model", "system", "datatype", "tensor_par", "data_par", "sharded")
"""Parts of a plan on which the machine or the rates hang, by the conventions of Calculon."""

OFFLOADS = ("none", "optimizer", "optimizer+weights")

Drawn = Mapping[str, str | int | bool]


def drawn(count: int, seed: int) -> Iterator[Drawn]:
    """Draw plans, each knob alike and for itself."""
    chance = random.Random(seed)
    for _ in range(count):
        system, datatype = chance.choice(KINDS)
        yield {
            "model": chance.choice(MODELS),
            "system": system,
            "datatype": datatype,
            "offload": chance.choice(OFFLOADS),
            "tensor_par": chance.choice((1, 2, 4, 8)),
            "pipeline_par": chance.choice((1, 2, 4, 8, 16, 32)),
            "data_par": chance.choice((1, 2, 4, 8, 16, 64)),
            "microbatch_size": chance.choice((1, 2, 4)),
            "pipeline_interleaving": chance.choice((1, 2)),
            "activation_recompute": chance.choice(tuple(RECOMPUTED)),
            "sharded": chance.random() < 0.5,
            "overlap": chance.random() < 0.5,
            "batch_size": 1536,
        }


def calculon_times(folder: Path, plans: list[Drawn]) -> Floats:
    """Return the seconds of a step of each plan to Calculon, (n,); NaN if it is infeasible.

    Raises:
        ModuleNotFoundError: the folder holds no Calculon.
    """
    sys.path.insert(0, str(folder))
    import calculon  # its folder is an argument
    from calculon.llm import Llm

    def read(kind: str, name: object) -> dict[str, object]:
        return dict(calculon.io.read_json_file(str(folder / kind / f"{name}.json")))

    def seconds(plan: Drawn) -> float:
        model = Llm(Llm.Application(read("models", plan["model"])), logging.getLogger())
        system = calculon.System(read("systems", plan["system"]))
        try:
            model.compile(system, Llm.Execution.from_json(_execution(plan)))
            model.run(system)
        except (AssertionError, Llm.Error):
            return np.nan
        return float(model.get_total_time())

    return np.array([seconds(plan) for plan in plans])


def our_times(plans: list[Drawn]) -> Floats:
    """Return the seconds of a step of each plan, (n,); NaN if it is infeasible."""
    found = np.full(len(plans), np.nan)
    for (model, system), places in _grouped(plans, "model", "system"):
        trained = Training(
            model=CALCULON[str(model)],
            system=SYSTEMS[str(system)],
            sequence=2048,
            fused=False,
            reserve=0.0,
        )
        metrics = trained.evaluate(Batch.of([_design(plans[at]) for at in places]))
        found[places] = metrics.columns["step_time"]
        found[[places[row] for row in metrics.failures]] = np.nan
    return found


def our_matched_times(folder: Path, plans: list[Drawn]) -> Floats:
    """Return the seconds of a step by Calculon's conventions, (n,); NaN if it is infeasible.

    Args:
        folder: the folder of Calculon.
        plans: the plans.
    """
    found = np.full(len(plans), np.nan)
    for layout, places in _grouped(plans, *LAYOUT):
        plan = dict(zip(LAYOUT, layout, strict=True))
        trained = _matched_training(folder, plan)
        stored, timed = (
            trained.evaluate(Batch.of([_matched_design(plans[at], zero) for at in places]))
            for zero in (2, 1)
        )
        layers = TRANSFORMERS[CALCULON[str(plan["model"])]].layers
        found[places] = timed.columns["step_time"]
        short = [at for at in places if _is_too_short(plans[at], layers)]
        found[[*short, *(places[row] for row in stored.failures)]] = np.nan
    return found


def _grouped(
    plans: list[Drawn], *names: str
) -> Iterable[tuple[tuple[str | int | bool, ...], list[int]]]:
    groups = defaultdict[tuple[str | int | bool, ...], list[int]](list)
    for at, plan in enumerate(plans):
        groups[tuple(plan[name] for name in names)].append(at)
    return groups.items()


def _matched_training(folder: Path, plan: Drawn) -> Training:
    name, tensor = str(plan["system"]), int(plan["tensor_par"])
    machine = Machine(path=folder / "systems" / f"{name}.json", like=SYSTEMS[name])
    data, shards = int(plan["data_par"]), bool(plan["sharded"])
    trained = Training(
        model={"like": CALCULON[str(plan["model"])], "vocabulary": 1},
        system=machine.system(tensor=tensor, data=data, shards=shards),
        sequence=2048,
        fused=False,
        reserve=0.0,
        uneven=True,
        overlap_tax=machine.overlap_tax,
        host_memory=tensor * machine.host_bytes,
        host_bandwidth=machine.host_bytes_per_s,
        stream_optimizer=True,
        split_messages=False,
    )
    chips = trained._chips  # noqa: SLF001 - no option takes a table of rates
    chips.update(machine.chips(chips))
    return trained


def _is_too_short(plan: Drawn, layers: int) -> bool:
    """Return whether Calculon refuses to offload from a device, for its few layers."""
    held = np.ceil(layers / int(plan["pipeline_par"]))
    return plan["offload"] != "none" and bool(held < FEWEST_OFFLOADED)


def _execution(plan: Drawn) -> dict[str, object]:
    """The plan as Calculon reads it."""
    own = ("model", "system", "offload", "sharded", "overlap")
    copies = int(plan["tensor_par"]) * int(plan["pipeline_par"]) * int(plan["data_par"])
    return {
        **{name: value for name, value in plan.items() if name not in own},
        "num_procs": copies,
        "tensor_par_net": 0,
        "pipeline_par_net": 1,
        "data_par_net": 1,
        "fused_activation": True,
        "attention_type": "multihead",
        "optimizer_sharding": plan["sharded"],
        "tensor_par_comm_type": "ar",
        "tensor_par_overlap": "none",
        "seq_par_ag_redo": False,
        "data_par_overlap": plan["overlap"],
        "weight_offload": plan["offload"] == "optimizer+weights",
        "activations_offload": False,
        "optimizer_offload": plan["offload"] != "none",
        "training": True,
    }


def _matched_design(plan: Drawn, zero: int) -> dict[str, Value]:
    """The plan as one of ours by Calculon's conventions.

    A sharded optimizer shares what ZeRO 2 does, and sends what ZeRO 1 does: gradients once.

    Args:
        plan: a plan of Calculon.
        zero: stage of ZeRO if the optimizer is sharded.
    """
    narrow = plan["datatype"] == "float8"
    offload = str(plan["offload"])
    return _design(plan) | {
        "zero": zero * bool(plan["sharded"]),
        "offload": offload if offload == "none" else f"gradients+{offload}",
        "gradient_format": "fp8" if narrow else "bf16",
        "activation_format": "fp8" if narrow else "bf16",
    }


def _design(plan: Drawn) -> dict[str, Value]:
    """The plan as one of ours; a sharded optimizer shares what ZeRO 2 does."""
    return {
        "tp": plan["tensor_par"],
        "pp": plan["pipeline_par"],
        "dp": plan["data_par"],
        "microbatch": plan["microbatch_size"],
        "interleave": plan["pipeline_interleaving"],
        "sequence_parallel": False,
        "recompute": RECOMPUTED[str(plan["activation_recompute"])],
        "zero": 2 * bool(plan["sharded"]),
        "overlap": plan["overlap"],
        "global_batch": plan["batch_size"],
        "offload": str(plan["offload"]),
        "number_format": FORMAT_NAMES[str(plan["datatype"])],
    }


def tell_shares(plans: list[Drawn], their_s: Floats, our_s: Floats) -> None:
    """Print a row for each kind of plan, and one for all."""
    theirs, ours = np.isfinite(their_s), np.isfinite(our_s)
    off = np.abs(our_s / their_s - 1.0)
    away = np.array([plan["offload"] != "none" for plan in plans])
    narrow = np.array([plan["datatype"] == "float8" for plan in plans])
    kinds = {
        "16 bits, nothing offloaded": ~away & ~narrow,
        "16 bits, offloaded": away & ~narrow,
        "8 bits, nothing offloaded": ~away & narrow,
        "8 bits, offloaded": away & narrow,
        "all": np.ones(len(plans), dtype=bool),
    }
    tell = csv.writer(sys.stdout).writerow
    alone = ("to_us_alone", "to_calculon_alone", "both_of_either", "step_off")
    tell(("plans", "count", "feasible_to_calculon", "same", *alone))
    for name, some in kinds.items():
        shares = (theirs, theirs == ours, ours & ~theirs, theirs & ~ours)
        either = ours[some & (ours | theirs)] & theirs[some & (ours | theirs)]
        time_off = np.median(off[some & ours & theirs])
        means = [*(share[some].mean() for share in shares), either.mean(), time_off]
        tell((name, some.sum(), *(f"{mean:.3f}" for mean in means)))


def main() -> None:
    """Draw, judge twice, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calculon", type=Path, required=True)
    parser.add_argument("--plans", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--unmatched", action="store_true", help="by our own conventions")
    options = parser.parse_args()
    plans = list(drawn(options.plans, options.seed))
    started = time.process_time()
    their_s = calculon_times(options.calculon, plans)
    between = time.process_time()
    our_s = our_times(plans)
    ended = time.process_time()
    if not options.unmatched:
        our_s = our_matched_times(options.calculon, plans)
    tell_shares(plans, their_s, our_s)
    paces = [len(plans) / each for each in (between - started, ended - between)]
    print(f"# plans a CPU second: Calculon {paces[0]:.3g}, ours {paces[1]:.3g}")


if __name__ == "__main__":
    main()
