"""Time and memory of an iteration with one parallel layout on n clusters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.two_streams.order import IterationTask, Order
from dse_evaluators.clusters.two_streams.rates import COLLECTIVES
from dse_evaluators.clusters.two_streams.streams import play
from dse_evaluators.clusters.two_streams.work_time import MOVES, TwoStreamsJob

PARTS = ("compute", "embedding", *(f"exposed_{name}" for name in COLLECTIVES))
"""Parts of an iteration's time."""

_LEARNT = 3.0
"""Memory of a trained weight, in weights: with gradient and optimizer state three per weight.

Hsia et al., ISCA 2024; it agrees with their sheets (samhsia/MADMax) to the printed digits. That a
frozen weight is stored once is an assumption of this project.
"""


def times(job: TwoStreamsJob, steps: Order) -> Mapping[str, Floats]:
    """Return the seconds of an iteration, its compute and its collectives by name, (n,) each.

    ``exposed_`` names give the seconds of a collective during which nothing is computed.
    """
    seconds = [job.work_s(work) for work in steps.works]
    played = play(steps, seconds)
    often = Counter(step.work for one in steps.passes for step in one)
    zero = np.zeros_like(played.total_s)
    spent = dict.fromkeys(PARTS, zero) | dict.fromkeys(COLLECTIVES, zero)
    for place, work in enumerate(steps.works):
        whole_s = often[place] * seconds[place]
        if not work.talks:
            part = "embedding" if work.role == "lookup" else "compute"
            spent[part] = spent[part] + whole_s
            continue
        name = MOVES[work.role]
        spent[name] = spent[name] + whole_s
        spent[f"exposed_{name}"] = spent[f"exposed_{name}"] + played.exposed_s[place]
    return {"iteration": played.total_s, **spent}


def memory_bytes(job: TwoStreamsJob, task: IterationTask) -> Mapping[str, Floats]:
    """Return the bytes per device of dense layers and of embedding tables, (n,) each.

    These are weights, gradients and optimizer state; activations are left out, as in MAD-Max.
    """
    model = job.model
    dense = sum(unit.weights * _states(unit.stack, task) for unit in model.units)
    tables = model.table_weights * _states("embedding", task)
    return {
        "dense": dense * model.weight_bytes / job.dense.shards,
        "embedding": tables * model.table_weight_bytes / job.embedding.shards,
    }


def _states(stack: str, task: IterationTask) -> float:
    return _LEARNT if task.learns and stack not in task.frozen else 1.0
