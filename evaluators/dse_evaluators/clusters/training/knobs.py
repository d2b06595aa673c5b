"""What a training plan reads, and the plans of a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats, Value
from dse_evaluators.clusters.training.kernels import FORMATS
from dse_evaluators.clusters.training.plan import OFFLOADED, RECOMPUTED, SCHEDULES, Plan
from dse_evaluators.readings import Check, flag, number, word


class Knob(NamedTuple):
    """A reading: the field of a plan, and what it is where nobody tells; ``None`` is needed."""

    field: str
    check: Check
    default: float | None
    words: tuple[str, ...] = ()


def _whole(field: str, default: float | None) -> Knob:
    return Knob(field, number(1, 1e9, whole=True), default)


def _word(field: str, words: tuple[str, ...]) -> Knob:
    return Knob(field, word(*words), 0.0, words)


KNOBS: Mapping[str, Knob] = {
    "tp": _whole("tensor", None),
    "pp": _whole("pipeline", None),
    "dp": _whole("data", None),
    "microbatch": _whole("microbatch", None),
    "global_batch": _whole("global_batch", None),
    "cp": _whole("context", 1.0),
    "ep": _whole("expert", 1.0),
    "interleave": _whole("interleave", 1.0),
    "sequence_parallel": Knob("sequence_parallel", flag, 0.0),
    "overlap": Knob("overlap", flag, 0.0),
    "zero": Knob("zero", number(0, 3, whole=True), 0.0),
    "recompute": _word("recompute", RECOMPUTED),
    "schedule": _word("schedule", SCHEDULES),
    "offload": _word("offload", OFFLOADED),
    "number_format": _word("number_format", FORMATS),
}


def plans(batch: Batch, *, fixed: Mapping[str, float], usual: Mapping[str, float]) -> Plan:
    """The plans of n designs.

    Args:
        batch: the designs.
        fixed: what no design decides.
        usual: what stands where a design does not tell, before the knobs' own defaults.
    """
    found: dict[str, Any] = {  # a number or a truth, as its field is
        knob.field: np.full(len(batch), fixed[name])
        if name in fixed
        else _column(name, batch, usual.get(name, knob.default))
        for name, knob in KNOBS.items()
    }
    for truth in ("sequence_parallel", "overlap"):
        found[truth] = found[truth] > 0
    return Plan(**found)


def _column(name: str, batch: Batch, default: float | None) -> Floats:
    words = KNOBS[name].words
    if name not in batch and default is not None:
        return np.full(len(batch), default)
    if words:
        places: dict[Value, float] = {value: float(at) for at, value in enumerate(words)}
        return batch.lookup(name, places, default or 0.0)
    found = batch[name] if default is None else batch.get(name, default)
    return np.asarray(found, dtype=np.float64)
