"""Parallel serving plan: data-parallel copies, pipeline stages, attention and FFN replicas."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dse_evaluators.workloads.transformer_configs import Transformer

GIB = 2.0**30

WEIGHT_BYTES = {"fp16": 2.0, "fp8": 1.0, "int4": 0.53125}
"""Bytes of a weight; int4 has a 16-bit scale per 64 weights. GEMMs always compute in 16 bits."""

CACHE_BYTES = {"fp16": 2.0, "fp8": 1.0}

_RESERVED = GIB
"""Memory of a device that neither weights nor KV cache may use: APEX's value."""


class Cluster(NamedTuple):
    """Cluster of equal devices in equal nodes."""

    devices: int
    node_devices: int
    memory_bytes: float
    """Memory of one device."""

    @property
    def nodes(self) -> int:
        """Number of nodes; a cluster smaller than a node counts as one."""
        return max(1, self.devices // self.node_devices)

    def divisible(self, shares: int) -> bool:
        """Return whether the cluster splits into ``shares`` equal parts aligned with its nodes.

        Each part must be a number of complete nodes, or all nodes must split into equally many
        parts.
        """
        if shares <= self.nodes:
            return self.nodes % shares == 0
        within = self.devices // self.nodes
        return shares % self.nodes == 0 and within % (shares // self.nodes) == 0


class Unmet(NamedTuple):
    """Constraint that a serving plan violates: two numbers, and a template of the reason.

    ``reason`` may contain ``first``, ``second`` and their difference ``over``.
    """

    reason: str
    first: float
    second: float

    @property
    def text(self) -> str:
        over = self.first - self.second
        return self.reason.format(first=self.first, second=self.second, over=over)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApexPlan:
    """Parallel layout of a language model on a cluster, and its number formats.

    ``dp`` data-parallel copies have ``pp`` pipeline stages each. A stage has ``attn_replicas`` of
    the attention, which share its devices evenly, and ``ffn_replicas`` of the feed-forward network
    (FFN). With ``by_experts`` a device holds whole experts instead of some columns of each.

    Source:
        Lin et al.: APEX: An Extensible and Dynamism-Aware Simulator for Automated Parallel
        Execution in LLM Serving, 2024, section 3; microsoft/apex_plus@8769096, search/engine.py.
    """

    model: Transformer
    cluster: Cluster
    dp: int
    pp: int
    attn_replicas: int
    ffn_replicas: int
    by_experts: bool
    weight_bytes: float
    cache_bytes: float

    @property
    def stage_devices(self) -> int:
        return self.cluster.devices // (self.dp * self.pp)

    @property
    def attn_devices(self) -> int:
        """Number of devices of one attention replica, among which its heads are divided."""
        return self.stage_devices // self.attn_replicas

    @property
    def ffn_devices(self) -> int:
        """Number of devices of one FFN replica, among which its weights are divided."""
        return self.stage_devices // self.ffn_replicas

    @property
    def layers(self) -> int:
        """Number of layers in one pipeline stage."""
        return self.model.layers // self.pp

    @property
    def kv_heads(self) -> int:
        """Number of KV heads on the device with the most; duplicated if devices outnumber heads."""
        return math.ceil(self.model.kv_heads / self.attn_devices)

    @property
    def heads(self) -> int:
        """Number of query heads on the device with the most: those that share its KV heads."""
        model = self.model
        if model.kv_heads >= self.attn_devices:
            return self.kv_heads * (model.heads // model.kv_heads)
        return math.ceil(model.heads / self.attn_devices)

    @property
    def attn_weights(self) -> float:
        """Number of attention weights of one layer on one device."""
        return 2.0 * self.model.hidden * (self.heads + self.kv_heads) * self.model.head

    @property
    def ffn_weights(self) -> float:
        """Number of FFN weights of one layer on one device: whole experts, or columns of each."""
        model = self.model
        whole = self.whole_experts * model.ffn
        shared = model.experts * math.ceil(model.ffn / self.ffn_devices)
        matrices = 3.0 if model.gated else 2.0
        return matrices * model.hidden * (whole if self.by_experts else shared)

    @property
    def whole_experts(self) -> int:
        """Number of experts on the device with the most, if experts are not split over devices."""
        return math.ceil(self.model.experts / self.ffn_devices)

    @property
    def parameter_bytes(self) -> float:
        """Weight bytes of one device, without embedding and LM head, as in APEX."""
        return self.layers * (self.attn_weights + self.ffn_weights) * self.weight_bytes

    @property
    def token_bytes(self) -> float:
        """KV cache bytes of a token in one layer on one device."""
        return 2.0 * self.kv_heads * self.model.head * self.cache_bytes

    @property
    def capacity(self) -> int:
        """Most tokens that a micro-batch of one attention replica may cache."""
        left = self.cluster.memory_bytes - _RESERVED - self.parameter_bytes
        return math.floor(max(left, 0.0) / (self.layers * self.token_bytes)) // self.pp


def unmet(plan: ApexPlan, longest: int) -> Unmet | None:
    """Return the first constraint that a serving plan violates; ``None`` if it is feasible.

    The order is: layout, heads and experts, memory.
    """
    for rules in (_layout, _sharing, _memory):
        for rule in rules(plan):
            return rule
    room = plan.capacity
    if room < longest:
        reason = "a request of {first:.0f} tokens, room for {second:.0f}: {over:.0f} too many"
        return Unmet(reason, longest, room)
    return None


def _layout(plan: ApexPlan) -> Iterator[Unmet]:
    cluster, copies = plan.cluster, plan.dp * plan.pp
    two = (plan.attn_replicas, plan.ffn_replicas)
    most = copies * max(two)
    if cluster.devices % min(cluster.devices, cluster.node_devices):
        reason = "{first:.0f} devices do not fill whole nodes of {second:.0f}"
        yield Unmet(reason, cluster.devices, cluster.node_devices)
    if min(two) > 1:
        reason = "{first:.0f} attention and {second:.0f} FFN replicas: one number must be 1"
        yield Unmet(reason, *two)
    if cluster.devices % most:
        reason = "{first:.0f} devices are not divisible into {second:.0f} equal shares"
        yield Unmet(reason, cluster.devices, most)
    if plan.model.layers % plan.pp:
        reason = "{first:.0f} layers are not divisible into {second:.0f} equal stages"
        yield Unmet(reason, plan.model.layers, plan.pp)
    for shares in (plan.dp, copies, most):
        if not cluster.divisible(shares):
            reason = "{first:.0f} nodes are not divisible into {second:.0f} equal shares"
            yield Unmet(reason, cluster.nodes, shares)


def _sharing(plan: ApexPlan) -> Iterator[Unmet]:
    model = plan.model
    if plan.attn_devices > model.heads:
        reason = "{first:.0f} devices share {second:.0f} heads: {over:.0f} too many"
        yield Unmet(reason, plan.attn_devices, model.heads)
    if plan.by_experts and plan.ffn_devices > model.experts:
        reason = "{first:.0f} devices share {second:.0f} experts: {over:.0f} too many"
        yield Unmet(reason, plan.ffn_devices, model.experts)


def _memory(plan: ApexPlan) -> Iterator[Unmet]:
    if plan.parameter_bytes > plan.cluster.memory_bytes:
        reason = "weights of {first:.1f} GiB, memory of {second:.1f} GiB: {over:.1f} GiB short"
        yield Unmet(reason, plan.parameter_bytes / GIB, plan.cluster.memory_bytes / GIB)
