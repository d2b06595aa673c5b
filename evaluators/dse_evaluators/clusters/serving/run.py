"""Metrics of n serving plans for one model, one kind of device and one request length."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.accelerators.devices.devices import DEVICES, Device
from dse_evaluators.clusters.serving.bill import bill
from dse_evaluators.clusters.serving.cycle import Cycle, ServingTraffic, cycle
from dse_evaluators.clusters.serving.energy import Draw, draw
from dse_evaluators.clusters.serving.engine import Engine, engine
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.inference_step import PARTS, step
from dse_evaluators.clusters.serving.model_memory import (
    ServingMemory,
    roomy,
    text_bytes,
    weight_bytes,
    workspace_bytes,
)
from dse_evaluators.clusters.serving.serving_plan import Plans
from dse_evaluators.clusters.serving.share import ModelSharding
from dse_evaluators.clusters.upkeep import Upkeep
from dse_evaluators.workloads.transformer_configs import Transformer

TIMES = (*PARTS, "draft", "prefill")

MEMORIES = ("weights", "cache", "draft", "workspace")

ENERGIES = ("base", "compute", "memory")


@dataclass(frozen=True, slots=True, kw_only=True)
class Formats:
    """Number formats of weights and KV cache of n serving plans; arrays are (n,)."""

    names: Sequence[str]
    place: Ints  # (n,), index into names
    prefill_place: Ints  # (n,), that of prefill replicas
    cache_bytes: Floats  # (n,), per element
    weight_bits: Floats  # (n,), 0: as the format
    expert_place: Ints  # (n,), format of routed experts, as ``place``
    prefill_expert_place: Ints  # (n,)
    expert_bits: Floats  # (n,), of a weight of routed experts; 0: as their format

    def engine(self, device: Device) -> Engine:
        """Return the roofline model of a device that decodes in these formats."""
        found = engine(device, self.names, self.place, self.weight_bits)
        bits, place = self.expert_bits, self.expert_place
        if np.array_equal(self.place, place) and np.array_equal(self.weight_bits, bits):
            return found
        return replace(found, experts=engine(device, self.names, place, bits))


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingScenario:
    """Served model, with its device, fabric, request lengths, memory limit and device costs."""

    model: Transformer
    draft: Transformer | None
    acceptance: float
    device: Device
    fabric: ServingFabric
    prompt: float
    answer: float
    memory_share: float
    waiting: bool
    transfer_bytes_per_s: float | None
    """Rate at which a device sends or receives a KV cache; ``None``: the rate of its links."""
    upkeep: Upkeep
    in_step: bool = False
    """Whether the sequences of a copy start and end together, where prefill has its own steps."""
    popularity: float = 0.0
    """Exponent of the power law of the experts' popularity; 0: all are equally popular."""

    @property
    def room(self) -> float:
        """Bytes of a device's memory that the server may use."""
        return self.memory_share * self.device.dram_bytes

    def run(
        self, plan: Plans, formats: Formats, emitted: Floats
    ) -> tuple[Mapping[str, Floats], Floats]:
        """Return the metrics of n serving plans, each (n,), and the fullest device's bytes, (n,).

        Args:
            plan: the serving plans.
            formats: number formats of the same n plans.
            emitted: kg of carbon per joule, (n,).
        """
        kernels, reading = self._engines(formats)
        share, small, reader = shares = self._shares(plan, formats)
        kept, places = self._compute_memory(plan, share, small, kernels)
        traffic = self._traffic(plan, share, places)
        rates = cycle(
            traffic,
            *(
                partial(step, one, engine=own, fabric=self.fabric)
                for one, own in zip(shares, (kernels, kernels, reading), strict=True)
            ),
        )
        power, prefill_power = self._powers(formats, alike=reading is kernels)
        spent = power.of(plan, traffic, rates, prefill_power)
        held_s = plan.devices / (rates.per_s * traffic.answer)
        strange = self._flag_extrapolation(plan, traffic, kernels, reading)
        columns = {
            **_times(traffic, rates),
            **_rates(traffic, rates, plan),
            **bill(self.upkeep, held_s, spent.total_j, emitted),
            "energy_per_token": spent.total_j,
            **{f"{part}_energy": getattr(spent, f"{part}_j") for part in ENERGIES},
            "memory": kept.total,
            **{f"{part}_memory": getattr(kept, part) for part in MEMORIES},
            "headroom": self.room - kept.total,
            "extrapolated": strange,
        }
        reads = np.where(plan.apart, self._read_bytes(reader, reading), 0.0)
        return columns, np.maximum(kept.total, reads)

    def _engines(self, formats: Formats) -> tuple[Engine, Engine]:
        """Return the roofline models of the devices for decode and for prefill."""
        kernels = formats.engine(self.device)
        alike = np.array_equal(formats.place, formats.prefill_place) and np.array_equal(
            formats.expert_place, formats.prefill_expert_place
        )
        if alike:
            return kernels, kernels
        return kernels, replace(
            formats, place=formats.prefill_place, expert_place=formats.prefill_expert_place
        ).engine(self.device)

    def _powers(self, formats: Formats, *, alike: bool) -> tuple[Draw, Draw]:
        """Return the power models of the devices for decode and for prefill."""
        names = formats.names
        power = draw(self.device, names, formats.place, formats.expert_place)
        if alike:
            return power, power
        places = formats.prefill_place, formats.prefill_expert_place
        return power, draw(self.device, names, *places)

    def _shares(
        self, plan: Plans, formats: Formats
    ) -> tuple[ModelSharding, ModelSharding, ModelSharding]:
        """Return the sharding of the model and its draft in decode, and of the model in prefill."""
        share, small, reader = (
            ModelSharding(
                model=model,
                devices=pool.tp,
                cache_bytes=formats.cache_bytes,
                groups=pool.groups,
                expert_groups=pool.ep,
                stages=pool.pp,
                imbalance=plan.imbalance,
                redundant=extra,
                popularity=self.popularity,
            )
            for model, pool, extra in (
                (self.model, plan.decode, plan.redundant_experts),
                (self.draft or self.model, plan.decode, 0.0),
                (self.model, plan.prefill, plan.redundant_experts),
            )
        )
        return share, small, reader

    def _read_bytes(self, reader: ModelSharding, reading: Engine) -> Floats:
        """Return the bytes used on a device that runs only prefill, (n,).

        A prompt is in each pipeline stage.
        """
        each = reading.weight_bytes
        one, prompt = np.ones_like(each), np.full_like(each, self.prompt)
        kept = weight_bytes(reader, each, reading.routed.weight_bytes) + reader.stages * text_bytes(
            reader, self.prompt
        )
        return kept + workspace_bytes(reader, prompt, one)

    def _compute_memory(
        self, plan: Plans, share: ModelSharding, small: ModelSharding, kernels: Engine
    ) -> tuple[ServingMemory, Floats]:
        """Return the memory of a decoding device, and its number of concurrent sequences."""
        queries = plan.draft_tokens + 1.0
        most = plan.batch * queries + np.where(plan.chunk > 0, plan.chunk, self.prompt)
        workspace = workspace_bytes(share, most, plan.batch * queries)
        each_bytes = kernels.weight_bytes, kernels.routed.weight_bytes
        weights, length = weight_bytes(share, *each_bytes), self.prompt + self.answer
        each = text_bytes(share, length)
        guessed = plan.draft_tokens > 0
        small_weights = small_each = np.zeros_like(each)
        if guessed.any():
            small_weights = np.where(guessed, weight_bytes(small, *each_bytes), 0.0)
            small_each = np.where(guessed, text_bytes(small, length), 0.0)
        left = self.room - weights - small_weights - workspace
        found = np.maximum(roomy(left, each + small_each), 1.0)
        places = np.minimum(plan.batch, found) if self.waiting else plan.batch
        kept = ServingMemory(
            weights=weights,
            cache=places * each,
            draft=small_weights + places * small_each,
            workspace=workspace,
        )
        return kept, places

    def _traffic(self, plan: Plans, share: ModelSharding, places: Floats) -> ServingTraffic:
        prompt, answer = (np.full_like(places, each) for each in (self.prompt, self.answer))
        sent_s, received_s = self._hand_over(plan, share)
        return ServingTraffic(
            prompt=prompt,
            answer=answer,
            places=places,
            chunk=plan.chunk,
            guesses=plan.draft_tokens,
            yielded=count_tokens(plan.draft_tokens, self.acceptance),
            copies=plan.replicas * plan.attention_dp,
            prefill_copies=plan.prefill_replicas * plan.prefill.groups,
            sent_s=sent_s,
            received_s=received_s,
            stages=plan.pp,
            prefill_stages=plan.prefill.pp,
            in_step=self.in_step,
        )

    def _hand_over(self, plan: Plans, share: ModelSharding) -> tuple[Floats, Floats]:
        """Return the seconds of the links that send and that receive a prompt's KV cache, (n,).

        Each device of the decode copy receives what it keeps of the prompt. The devices of the
        prefill copy send equal parts of it. All links of a copy are used at once; they are those
        between nodes, unless all replicas are in one node.

        Source:
            Zhong et al.: DistServe, 2024, section 4.2; Patel et al.: Splitwise, 2024, section 4.3.
        """
        if not plan.apart.any():
            nothing = np.zeros_like(plan.tp)
            return nothing, nothing
        received = text_bytes(share, self.prompt)
        whole = plan.tp * text_bytes(replace(share, stages=1.0), self.prompt)
        sent = whole / (plan.prefill.tp * plan.prefill.pp)
        if self.transfer_bytes_per_s is not None:
            return sent / self.transfer_bytes_per_s, received / self.transfer_bytes_per_s
        near = plan.devices <= self.fabric.node_devices
        return self.fabric.hand_over_s(sent, near), self.fabric.hand_over_s(received, near)

    def _flag_extrapolation(
        self, plan: Plans, traffic: ServingTraffic, kernels: Engine, reading: Engine
    ) -> Floats:
        """Return 1 where the model extrapolates beyond its measurements, else 0, (n,).

        The model extrapolates where a constant was measured on another device, kernel or network,
        or where a step has more tokens than the calibration data.
        """
        most = traffic.places * (traffic.guesses + 1.0)
        rows = np.maximum(traffic.piece + np.where(plan.chunk > 0, most, 0.0), most)
        pools = (plan.decode, plan.prefill)
        together = np.maximum(*(pool.devices for pool in pools))
        stage = np.maximum(*(pool.stage_devices for pool in pools))
        borrowed = self.fabric.borrowed & (together > 1)
        guessed = ~self.fabric.exchanges & (np.maximum(*(pool.groups for pool in pools)) > 1)
        staged = np.maximum(*(pool.pp for pool in pools)) > 1
        far = (stage > self.fabric.node_devices) | (staged & (together > self.fabric.node_devices))
        foreign = (
            ~(kernels.own & kernels.routed.own & reading.own & reading.routed.own)
            | (self.device != DEVICES[self.device.name])
            | (kernels.stored != 1.0)
            | (kernels.routed.stored != 1.0)
            | borrowed
            | guessed
            | far
        )
        return (foreign | (rows > kernels.seen_rows)).astype(np.float64)


def _times(traffic: ServingTraffic, rates: Cycle) -> dict[str, Floats]:
    """Return the latency metrics: time per output token by cause, longest gap, time to first."""
    draft_s = traffic.guesses * rates.draft.total_s
    parts = {
        **{part: getattr(rates.writing, f"{part}_s") / traffic.yielded for part in PARTS},
        "draft": draft_s / traffic.yielded,
        "prefill": rates.met * rates.extra_s / traffic.yielded,
    }
    prompts = np.maximum(2.0 * rates.waits, rates.met > 0)  # of the first sequence that is in step
    gap_s = rates.writing.total_s + draft_s + prompts * rates.extra_s
    return {
        "tpot": np.sum(list(parts.values()), axis=0),
        **{f"{part}_time": seconds for part, seconds in parts.items()},
        "token_gap": gap_s,
        "ttft": rates.ttft_s,
        "bottleneck": np.argmax(np.stack(list(parts.values())), axis=0).astype(np.float64),
    }


def _rates(traffic: ServingTraffic, rates: Cycle, plan: Plans) -> dict[str, Floats]:
    tokens_per_s = rates.per_s * traffic.answer
    return {
        "throughput": tokens_per_s,
        "device_throughput": tokens_per_s / plan.devices,
        "devices": plan.devices,
        "running": rates.running,
        "reading": rates.reading,
    }


def count_tokens(guesses: Floats, acceptance: float) -> Floats:
    """Return the mean number of tokens of one verification step, (n,).

    ``(1 - a^(k + 1)) / (1 - a)``: each of k draft tokens is accepted with probability a if all
    earlier ones were; the target model supplies the token after the last accepted one.

    Source:
        Leviathan, Kalman, Matias: Fast Inference from Transformers via Speculative Decoding, 2023,
        equation 1.
    """
    if acceptance == 1.0:
        return guesses + 1.0
    return (1.0 - np.power(acceptance, guesses + 1.0)) / (1.0 - acceptance)
