"""Time of one pipeline stage for a micro-batch, with its communication and efficiency."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from dse_evaluators.clusters.apex.apex_plan import ApexPlan
from dse_evaluators.clusters.collectives import (
    Collective,
    CollectiveConstants,
    compute_link_share,
    constants_of,
)
from dse_evaluators.fits import fits_in

_WORD = 2.0
"""Bytes of an element of the residual stream."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApexFabric:
    """Links of a cluster: within a node (measured, or of a given latency and rate), and between.

    ``within`` names a fabric of ``collectives.csv``; ``override`` replaces it unless it is None.
    """

    within: str
    between: CollectiveConstants
    override: CollectiveConstants | None
    node_devices: int

    def of(self, collective: Collective, ranks: int, span: int) -> CollectiveConstants:
        """Return a collective's constants among ranks spread over ``span`` adjacent devices."""
        if span > self.node_devices:
            return self.between
        if self.override is not None:
            return self.override
        return constants_of(self.within, collective, ranks)

    def seconds(self, collective: Collective, size_bytes: float, ranks: int, span: int) -> float:
        """Return the time of one collective; 0 with one rank.

        This is the scalar form of :func:`dse_evaluators.clusters.collectives.seconds`.
        """
        if ranks <= 1:
            return 0.0
        latency_s, byte_s, pipelining = _law(self, collective, ranks, span)
        moved_s = byte_s * size_bytes
        return latency_s + moved_s + 2.0 * pipelining * math.sqrt(latency_s * moved_s)


@cache
def _law(
    fabric: ApexFabric, collective: Collective, ranks: int, span: int
) -> tuple[float, float, float]:
    """Return a collective's latency [s], seconds per byte of the array, and pipelining."""
    found = fabric.of(collective, ranks, span)
    byte_s = float(compute_link_share(collective, ranks)) / found.bytes_per_s
    return found.latency_s, byte_s, found.pipelining


@dataclass(frozen=True, slots=True, kw_only=True)
class Efficiency:
    """Achieved shares of a device's peak rates, and the host's overhead per step."""

    memory: float
    """Share of the memory bandwidth."""
    products: float = 0.7
    """Share of the peak GEMM rate: assumed, from prefill alone."""
    attention: float = 0.42
    """Share of the peak GEMM rate in the attention of prompts: assumed, 0.6 of 0.7."""
    step_s: float
    sequence_s: float
    """Host overhead per sequence of a step."""


JUDGED_TEXTS = 25
"""Most sequences in one step of the runs that were validated against a measured service."""


class DeviceRates(NamedTuple):
    """Peak rates of a device at a clock: operations in FLOP/s and memory in bytes/s."""

    flops_per_s: float
    bytes_per_s: float


class Fixed(NamedTuple):
    """Seconds of a pipeline stage that do not depend on the KV cache, split by cause."""

    products_s: float
    collectives_s: float
    host_s: float

    @property
    def total_s(self) -> float:
        return self.products_s + self.collectives_s + self.host_s


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStage:
    """Time model of a pipeline stage: roofline, measured links and host overhead.

    Source:
        Williams, Waterman, Patterson: Roofline, 2009; Shoeybi et al.: Megatron-LM, 2019, section 3
        (two all-reduces a layer); Lin et al.: APEX, 2024, section 3 (what replicas of one half of a
        layer exchange with the other half).
    """

    plan: ApexPlan
    rates: DeviceRates
    efficiency: Efficiency
    fabric: ApexFabric

    @property
    def cached_s(self) -> float:
        """Seconds to read the KV cache of one token in all layers of the pipeline stage."""
        return self.plan.layers * self.plan.token_bytes / self._bytes_per_s

    @property
    def squared_s(self) -> float:
        """Attention seconds of a prompt in the pipeline stage, per squared token count.

        Attention is causal, so that half of the query-key pairs count.
        """
        model = self.plan.model
        flops = 2.0 * self.plan.heads * model.head * self.plan.layers
        return flops / (self.efficiency.attention * self.rates.flops_per_s)

    def fixed(self, most: int, total: int) -> Fixed:
        """Return the seconds of ``total`` new tokens in a stage, without reads of the KV cache.

        The tokens are those of a micro-batch; ``most`` of them are in the attention replica with
        the most.
        """
        plan = self.plan
        per_ffn = -(-total // plan.ffn_replicas)
        layer_s = self._product_s(plan.attn_weights, plan.attn_weights, most)
        layer_s += self._ffn_s(per_ffn)
        sent_s = self._layer_exchange_s(most, per_ffn) * plan.layers
        if plan.pp > 1:
            span = plan.cluster.devices // plan.dp
            size = _WORD * total * plan.model.hidden
            sent_s += self.fabric.seconds("send_recv", size, 2, span)
        return Fixed(
            products_s=layer_s * plan.layers,
            collectives_s=sent_s,
            host_s=self.efficiency.step_s / plan.pp,
        )

    @property
    def _bytes_per_s(self) -> float:
        return self.efficiency.memory * self.rates.bytes_per_s

    def _product_s(self, read: float, used: float, tokens: int) -> float:
        """Return the time of a GEMM: the larger of reading ``read`` weights and computing.

        ``used`` is the number of weights that one token is multiplied by.
        """
        computed_s = 2.0 * used * tokens / (self.efficiency.products * self.rates.flops_per_s)
        return max(computed_s, read * self.plan.weight_bytes / self._bytes_per_s)

    def _ffn_s(self, tokens: int) -> float:
        """Return the time of the FFN in one layer; only the weights of chosen experts are read.

        Tokens choose experts at random. With whole experts on devices, the slowest device sets the
        time: one that holds the most experts, at least one of which is chosen.
        """
        plan, model = self.plan, self.plan.model
        chosen = model.active_experts / model.experts
        touched = 1.0 - (1.0 - chosen) ** tokens if chosen < 1.0 else 1.0
        if plan.by_experts:
            touched = max(touched, 1.0 / plan.whole_experts)
        return self._product_s(plan.ffn_weights * touched, plan.ffn_weights * chosen, tokens)

    def _layer_exchange_s(self, lane: int, per_ffn: int) -> float:
        """Return the communication time of a layer, after attention and after the FFN."""
        plan = self.plan
        if plan.by_experts:
            return self._by_experts_s(lane, per_ffn)
        if plan.attn_devices == plan.ffn_devices:
            return 2.0 * self._spread_s("all_reduce", lane, plan.attn_devices)
        there = self._spread_s("reduce_scatter", lane, plan.attn_devices)
        there += self._spread_s("all_gather", per_ffn, plan.ffn_devices)
        back = self._spread_s("reduce_scatter", per_ffn, plan.ffn_devices)
        return there + back + self._spread_s("all_gather", lane, plan.attn_devices)

    def _by_experts_s(self, lane: int, per_ffn: int) -> float:
        """Return the time to send tokens to their experts' devices, once to each, and back."""
        plan = self.plan
        ranks = plan.ffn_devices
        copies = per_ffn / ranks * min(plan.model.active_experts, ranks)
        sent_s = 2.0 * self._spread_s("all_to_all", copies, ranks)
        halves_s = self._spread_s("reduce_scatter", lane, plan.attn_devices)
        return halves_s + sent_s + self._spread_s("all_gather", lane, plan.attn_devices)

    def _spread_s(self, collective: Collective, tokens: float, ranks: int) -> float:
        size = _WORD * tokens * self.plan.model.hidden
        return self.fabric.seconds(collective, size, ranks, ranks)


def load_efficiency() -> Efficiency:
    """Return the efficiency constants fitted in ``apex.fits.json``."""
    constants = fits_in(Path(__file__).with_name("apex.fits.json"))[
        "vllm-0.6 on h100-sxm"
    ].constants
    return Efficiency(
        memory=constants["memory_share"],
        step_s=constants["step_s"],
        sequence_s=constants["sequence_s"],
    )
