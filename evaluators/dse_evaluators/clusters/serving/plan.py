"""The plans of an inference server, read from a batch, and which there cannot be."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Fault
from dse.core.values import Floats, Mask, Value
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.clusters.rules import Rule, told
from dse_evaluators.clusters.serving.fabric import NODE_DEVICES
from dse_evaluators.clusters.serving.memory import CACHE_BYTES
from dse_evaluators.readings import number, word
from dse_evaluators.workloads.transformer_configs import Transformer

_GIB = 2.0**30


class Knob(NamedTuple):
    """A reading: what it is where a space lacks it, None if it may not; and what it can be."""

    usual: Value | None
    check: Callable[[str, Value], None]


_COUNT = number(1, 1e9, whole=True)
_OPTIONAL_COUNT = number(0, 1e9, whole=True)

KNOBS: Mapping[str, Knob] = {
    "tp": Knob(None, _COUNT),
    "batch": Knob(None, _COUNT),
    "replicas": Knob(1, _COUNT),
    "prefill_replicas": Knob(0, _OPTIONAL_COUNT),
    "prefill_tp": Knob(0, _OPTIONAL_COUNT),
    "chunk": Knob(0, _OPTIONAL_COUNT),
    "draft_tokens": Knob(0, number(0, 64, whole=True)),
    "weight_format": Knob("bf16", word(*RECIPES)),
    "kv_format": Knob("bf16", word(*CACHE_BYTES)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plans:
    """n plans; every field is (n,)."""

    tp: Floats
    batch: Floats
    """Texts at once in one replica."""
    replicas: Floats
    prefill_replicas: Floats
    prefill_tp: Floats
    """Of a replica that only reads prompts; 0: as the others."""
    chunk: Floats
    draft_tokens: Floats

    @property
    def reading_tp(self) -> Floats:
        """Devices of a replica that reads prompts."""
        own = (self.prefill_replicas > 0) & (self.prefill_tp > 0)
        return np.where(own, self.prefill_tp, self.tp)

    @property
    def devices(self) -> Floats:
        return self.tp * self.replicas + self.reading_tp * self.prefill_replicas


def plans(batch: Batch) -> Plans:
    """The numbers of a batch."""
    return Plans(**{each.name: _column(batch, each.name) for each in fields(Plans)})


def impossible(plan: Plans, model: Transformer) -> dict[int, Fault]:
    """The first rule that each row breaks before memory is looked at."""
    return _broken(_rules(plan, model), len(plan.tp))


def too_large(needed: Floats, room: float, among: Mask) -> dict[int, Fault]:
    """The rows among some that do not fit; those that lack as much share a fault."""
    reason = "needs {has:.1f} GiB of memory, has {needs:.1f} GiB: {short:.1f} GiB short"
    needs = np.round(needed / _GIB, 1)  # rows that differ by less share a reason
    rule = Rule(needed > room, reason, needs, np.full_like(needs, room / _GIB))
    return told(rule, among)


def _broken(rules: Iterator[Rule], size: int) -> dict[int, Fault]:
    faults = dict[int, Fault]()
    fine = np.ones(size, dtype=bool)
    for rule in rules:
        faults.update(told(rule, fine))
        fine &= ~rule.broken
    return faults


def _rules(plan: Plans, model: Transformer) -> Iterator[Rule]:
    for tp in (plan.tp, plan.reading_tp):
        yield from _sharing(tp, model)
    yield Rule(
        (plan.chunk > 0) & (plan.prefill_replicas > 0),
        "pieces of {has:g} tokens join steps of writing, but {needs:g} replicas read all prompts",
        plan.chunk,
        plan.prefill_replicas,
    )


def _sharing(tp: Floats, model: Transformer) -> Iterator[Rule]:
    """What a model's heads say to the devices that share them."""
    node, heads, kv_heads = (
        np.full_like(tp, float(count)) for count in (NODE_DEVICES, model.heads, model.kv_heads)
    )
    rest = "over tensor parallel devices: {has:g} in {needs:g} leaves a rest"
    yield Rule(
        tp > node, "tensor parallel over {has:g} devices, but a node has {needs:g}", tp, node
    )
    yield Rule(heads % tp != 0, f"heads {rest}", heads, tp)
    most, least = np.maximum(kv_heads, tp), np.minimum(kv_heads, tp)
    yield Rule(most % least != 0, f"key and value heads {rest}", most, least)


def _column(batch: Batch, name: str) -> Floats:
    usual = KNOBS[name].usual
    found = batch[name] if usual is None else batch.get(name, usual)
    return np.asarray(found, dtype=np.float64)
