"""How often ``clusters.training`` and Calculon agree that a plan can be, over drawn plans, as CSV.

    git clone https://github.com/calculon-ai/calculon
    python benchmarks/training_verdicts.py --calculon calculon [--plans 4000] [--seed 0]

Plans of three models are drawn alike over layouts, offloading and formats of products: on A100 in
16 bits, on H100 in 16 or in 8. One row for each kind of plan, and one for all: the plans, the share
that is feasible to Calculon, the share with the same verdict, those that are feasible to one alone,
and of the plans that are feasible to either the share that is to both: most are to neither. The
last line is how many plans a CPU second each judges.
"""

from __future__ import annotations

import argparse
import csv
import logging
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from training import CALCULON, RECOMPUTED

from dse.core.batch import Batch
from dse.core.values import Mask, Value
from dse_evaluators.clusters.training.training import Training

MODELS = ("megatron-22B", "gpt3-175B", "megatron-1T")
SYSTEMS = {"a100_80g": "a100-dgx", "h100_80g_nvl8": "h100-dgx"}
KINDS = (("a100_80g", "float16"), ("h100_80g_nvl8", "float16"), ("h100_80g_nvl8", "float8"))
FORMATS = {"float16": "fp16", "float8": "fp8"}
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


def calculon_verdicts(folder: Path, plans: list[Drawn]) -> Mask:
    """Return for each plan whether Calculon finds it feasible.

    Raises:
        ModuleNotFoundError: the folder holds no Calculon.
    """
    sys.path.insert(0, str(folder))
    import calculon  # its folder is an argument
    from calculon.llm import Llm

    def read(kind: str, name: object) -> dict[str, object]:
        return dict(calculon.io.read_json_file(str(folder / kind / f"{name}.json")))

    def verdict(plan: Drawn) -> bool:
        model = Llm(Llm.Application(read("models", plan["model"])), logging.getLogger())
        system = calculon.System(read("systems", plan["system"]))
        try:
            model.compile(system, Llm.Execution.from_json(_execution(plan)))
            model.run(system)
        except (AssertionError, Llm.Error):
            return False
        return True

    return np.array([verdict(plan) for plan in plans])


def our_verdicts(plans: list[Drawn]) -> Mask:
    """Return for each plan whether ``clusters.training`` finds it feasible."""
    found = np.zeros(len(plans), dtype=bool)
    groups = defaultdict[tuple[object, object], list[int]](list)
    for at, plan in enumerate(plans):
        groups[plan["model"], plan["system"]].append(at)
    for (model, system), places in groups.items():
        trained = Training(
            model=CALCULON[str(model)],
            system=SYSTEMS[str(system)],
            sequence=2048,
            fused=False,
            reserve=0.0,
        )
        faults = trained.evaluate(Batch.of([_design(plans[at]) for at in places])).faults
        found[places] = [row not in faults for row in range(len(places))]
    return found


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
        "offload": plan["offload"],
        "number_format": FORMATS[str(plan["datatype"])],
    }


def main() -> None:
    """Draw, judge twice, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calculon", type=Path, required=True)
    parser.add_argument("--plans", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    plans = list(drawn(options.plans, options.seed))
    started = time.process_time()
    theirs = calculon_verdicts(options.calculon, plans)
    between = time.process_time()
    ours = our_verdicts(plans)
    ended = time.process_time()
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
    alone = ("to_us_alone", "to_calculon_alone", "both_of_either")
    tell(("plans", "count", "feasible_to_calculon", "same", *alone))
    for name, some in kinds.items():
        shares = (theirs, theirs == ours, ours & ~theirs, theirs & ~ours)
        either = ours[some & (ours | theirs)] & theirs[some & (ours | theirs)]
        means = [*(share[some].mean() for share in shares), either.mean()]
        tell((name, some.sum(), *(f"{mean:.3f}" for mean in means)))
    paces = [len(plans) / each for each in (between - started, ended - between)]
    print(f"# plans a CPU second: Calculon {paces[0]:.3g}, ours {paces[1]:.3g}")


if __name__ == "__main__":
    main()
