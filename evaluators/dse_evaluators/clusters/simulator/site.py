"""Simulated LLM serving of n designs, for one model, device type and request trace."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from dse.core.batch import Batch, Column
from dse.core.metric import Failure, Metrics
from dse.core.values import Floats, Ints, Mask
from dse_evaluators.accelerators.devices.devices import DEVICES, Device
from dse_evaluators.clusters.rules import Rule, find_rule_failures
from dse_evaluators.clusters.serving.bill import bill
from dse_evaluators.clusters.serving.engine import rate_of
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.plan_rules import impossible, too_large
from dse_evaluators.clusters.serving.plans_by_device import read_formats
from dse_evaluators.clusters.serving.serving_plan import READINGS, plans
from dse_evaluators.clusters.simulator.fleet import RequestLoad, run
from dse_evaluators.clusters.simulator.request_metrics import (
    LatencyLimits,
    SimulationResult,
    metrics,
)
from dse_evaluators.clusters.simulator.server import ModelServer
from dse_evaluators.clusters.simulator.server_settings import POLICIES, SimulatorPlan
from dse_evaluators.clusters.simulator.traffic import RequestTrace
from dse_evaluators.clusters.upkeep import Upkeep
from dse_evaluators.reading_table import Readings
from dse_evaluators.workloads.transformer_configs import Transformer

MEMORIES = ("weights", "cache", "workspace")

_PLANS = Readings(READINGS)
_ENDLESS = 2.0**40
"""Blocks of the cache of a model whose layers all have a window or a state."""

_TOGETHER = 1024
"""Designs simulated at once; the bound limits the memory of the simulator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Fixed conditions of a serving simulation: model, device, fabric, limits and prices."""

    model: Transformer
    device: Device
    fabric: ServingFabric
    limits: LatencyLimits
    weight: float
    """Weight of a new gap in the moving average of a sequence's gaps; 0: no average is kept."""
    overhead_s: float
    """Seconds that each request spends outside of iterations."""
    upkeep: Upkeep

    @staticmethod
    def of(  # noqa: PLR0913 - the options of the evaluator
        model: Transformer,
        device: Device,
        fabric: ServingFabric,
        *,
        limits: LatencyLimits,
        weight: float,
        overhead_s: float,
        price_per_hour: float | None,
        grid: str,
        pue: float,
    ) -> Site:
        """Return the conditions under which requests are simulated.

        Raises:
            SpecError: the grid is unknown.
        """
        return Site(
            model=model,
            device=device,
            fabric=fabric,
            limits=limits,
            weight=weight,
            overhead_s=overhead_s,
            upkeep=Upkeep(device=device.name, price_per_hour=price_per_hour, grid=grid, pue=pue),
        )

    def check_formats(self, formats: Iterable[str]) -> None:
        """Raise SpecError unless the device supports all of these GEMM formats.

        Raises:
            SpecError: the device does not support one of them.
        """
        for text in formats:
            rate_of(self.device, text)

    def run(self, batch: Batch, read: Mapping[str, Floats], traffic: RequestTrace) -> Metrics:
        """Simulate the serving of requests on n designs, and return their metrics.

        Args:
            batch: the designs, with their weight formats.
            read: numeric inputs of the designs by name, such as ``tp``, (n,) each.
            traffic: the requests.
        """
        formats, failures = read_formats(batch, self.device)
        server = ModelServer.of(
            self.model, self.device, self.fabric, devices=read["tp"], formats=formats
        )
        each = server.sequence_bytes(float(traffic.full.max()))
        plan, kept = self._plan(read, server, each)
        failures = self._failures(plan, read, traffic) | failures
        fine = np.ones(len(batch), dtype=bool)
        fine[list(failures)] = False
        longest = kept["weights"] + kept["workspace"] + each
        longest += self._longest(plan, server, traffic)
        room = np.round(read["memory_share"] * self.device.dram_bytes)
        for share in np.unique(room).tolist():
            failures |= too_large(longest, share, fine & (room == share))
        fine[list(failures)] = False
        columns = {
            "memory": sum(kept.values(), np.zeros(len(batch))),
            **{f"{name}_memory": values for name, values in kept.items()},
            "devices": read["tp"] * read["replicas"],
            "cache_tokens": (plan.blocks * plan.block).astype(np.float64),
        }
        return Metrics(
            columns=columns | self._simulate_rows(plan, server, read, traffic, fine),
            failures=failures,
        )

    def _plan(
        self, read: Mapping[str, Floats], server: ModelServer, sequence_bytes: Floats
    ) -> tuple[SimulatorPlan, dict[str, Floats]]:
        """Return the scheduler settings, and a device's bytes of weights, cache and workspace.

        Windows and recurrent states, ``sequence_bytes`` of each sequence, are reserved for as many
        sequences as the scheduler allows; blocks of the cache are in the rest of the memory.
        """
        slots, budget, policy = read["max_num_seqs"], read["budget"], read["policy"]
        texts = np.where(policy == POLICIES.index("mixed"), slots, 0.0)
        weights, workspace = server.weights(), server.workspace(budget + texts, slots)
        fixed = slots * sequence_bytes
        left = read["memory_share"] * self.device.dram_bytes - weights - workspace - fixed
        each = server.token_bytes() * read["block_size"]
        fits = np.floor(np.maximum(left, 0.0) / np.where(each > 0, each, 1.0))
        blocks = np.where(each > 0, fits, np.where(left >= 0, _ENDLESS, 0.0))
        plan = SimulatorPlan(
            policy=policy.astype(np.int64),
            budget=budget.astype(np.int64),
            slots=slots.astype(np.int64),
            blocks=blocks.astype(np.int64),
            block=read["block_size"].astype(np.int64),
            clients=_clients(read, len(policy)),
        )
        return plan, {"weights": weights, "cache": fixed + blocks * each, "workspace": workspace}

    def _longest(self, plan: SimulatorPlan, server: ModelServer, traffic: RequestTrace) -> Floats:
        """Return the KV cache bytes of the longest request on one device, (n,)."""
        blocks = -(-int(traffic.full.max()) // plan.block)
        return blocks * plan.block * server.token_bytes()

    def _failures(
        self, plan: SimulatorPlan, read: Mapping[str, Floats], traffic: RequestTrace
    ) -> dict[int, Failure]:
        named = {"tp": "tp", "batch": "max_num_seqs", "replicas": "replicas"}
        asked = {name: Column(read[other]) for name, other in named.items()}
        failures = impossible(plans(Batch(asked, len(plan.block)), _PLANS), self.model, self.fabric)
        fine = np.ones(len(plan.block), dtype=bool)
        for rule in _rules(plan, read, traffic):
            fine[list(failures)] = False
            failures |= find_rule_failures(rule, fine)
        return failures

    def _simulate_rows(
        self,
        plan: SimulatorPlan,
        server: ModelServer,
        read: Mapping[str, Floats],
        traffic: RequestTrace,
        fine: Mask,
    ) -> dict[str, Floats]:
        """Simulate the feasible designs; return the metrics by name, (n,), 0 if infeasible."""
        columns = dict[str, Floats]()
        speed = read.get("rate", read.get("speedup", np.ones(len(fine))))
        every = np.flatnonzero(fine)
        for start in range(0, len(every), _TOGETHER):
            rows = every[start : start + _TOGETHER]
            some = server.take(rows)
            played = run(
                plan.take(rows),
                some,
                RequestLoad(rate=speed[rows], clients=plan.clients[rows]),
                traffic,
                copies=read["replicas"][rows].astype(np.int64),
                weight=self.weight,
            )
            for name, values in self._metrics(played, some, traffic).items():
                columns.setdefault(name, np.zeros(len(fine)))[rows] = values
        return columns

    def _metrics(
        self, played: SimulationResult, server: ModelServer, traffic: RequestTrace
    ) -> dict[str, Floats]:
        late = replace(played, first=played.first + self.overhead_s)
        late = replace(late, finish=played.finish + self.overhead_s)
        found = metrics(late, traffic.prompt, traffic.answer, self.limits)
        energy_j = found["energy_per_token"]
        grid_kg = np.full_like(energy_j, float(self.upkeep.operational_kg(np.ones(1))[0]))
        seen = server.engine
        strange = ~(seen.own & seen.routed.own) | (played.largest > seen.seen_rows)
        strange |= (seen.stored != 1.0) | (seen.routed.stored != 1.0)
        strange |= self.device != DEVICES[self.device.name]
        strange |= self.fabric.borrowed & (server.share.devices > 1)
        strange |= server.share.devices > self.fabric.node_devices
        return {
            **found,
            **bill(self.upkeep, 1.0 / found["device_throughput"], energy_j, grid_kg),
            "extrapolated": strange.astype(np.float64),
        }


def _clients(read: Mapping[str, Floats], size: int) -> Ints:
    return read.get("concurrency", np.zeros(size)).astype(np.int64)


def _rules(
    plan: SimulatorPlan, read: Mapping[str, Floats], traffic: RequestTrace
) -> Iterator[Rule]:
    """Yield the constraints on the scheduler's settings, which are checked before memory."""
    budget, slots, copies = plan.budget.astype(float), plan.slots.astype(float), read["replicas"]
    longest = np.full_like(budget, float(traffic.full.max()))
    yield Rule(
        plan.chunked & (slots > budget),
        "{has:g} sequences at once, but an iteration has a budget of {needs:g} tokens",
        slots,
        budget,
    )
    yield Rule(
        ~plan.chunked & (longest > budget),
        "a sequence of {has:g} tokens is prefilled in one step, but the budget is {needs:g}: "
        "{short:g} short",
        longest,
        budget,
    )
    asking = np.where(plan.clients > 0, plan.clients, len(traffic.prompt)).astype(float)
    yield Rule(
        copies > asking,
        "{has:g} replicas, but {needs:g} clients or requests: {short:g} would be idle",
        copies,
        asking,
    )
