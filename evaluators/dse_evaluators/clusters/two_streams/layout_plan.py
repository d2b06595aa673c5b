"""Designs as arrays over n clusters, and the constraints that they must satisfy."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Failure
from dse.core.values import Floats, Ints
from dse_evaluators.clusters.rules import Rule, find_rule_failures
from dse_evaluators.clusters.two_streams.layer_units import TwoStreamsModel
from dse_evaluators.clusters.two_streams.machines import MACHINES, ClusterNode, ClusterRates
from dse_evaluators.clusters.two_streams.strategies import ParallelLayout, Ways
from dse_evaluators.reading_table import NumberInput, Reading, Readings

_UNSTATED = float("nan")
"""Default of an input that is taken from the machine or the model."""

KNOBS: Mapping[str, Reading] = {
    "nodes": NumberInput(1, 1e6, whole=True),
    "devices_per_node": NumberInput(1, 1e4, default=_UNSTATED, whole=True),
    "inner_degree": NumberInput(1, 1e4, default=_UNSTATED, whole=True),
    "global_batch": NumberInput(1, 1e12, default=_UNSTATED, whole=True),
    "peak": NumberInput(1e6, 1e20, "FLOP/s", default=_UNSTATED),
    "flops_share": NumberInput(1e-3, 1.0, default=_UNSTATED),
    "memory_capacity": NumberInput(1e6, 1e15, "B", default=_UNSTATED),
    "memory_bandwidth": NumberInput(1e3, 1e18, "B/s", default=_UNSTATED),
    "link_bandwidth": NumberInput(1e3, 1e18, "B/s", default=_UNSTATED),
    "network_bandwidth": NumberInput(1e3, 1e18, "B/s", default=_UNSTATED),
}
"""Numeric inputs of a plan.

``link_bandwidth`` is that of one device within its node, ``network_bandwidth`` that of a complete
node, and ``flops_share`` the part of ``peak`` that GEMMs reach.
"""

_RATES = ("peak", "flops_share", "memory_bandwidth", "link_bandwidth", "network_bandwidth")


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStreamsPlan:
    """Cluster size, rates, global batch and inner parallel degree of n designs, (n,) each."""

    nodes: Floats
    node_devices: Floats
    inner: Floats
    """Devices of the inner level of a two-level layout."""
    global_batch: Floats
    memory_bytes: Floats
    extrapolated: Floats
    """1 where a rate was given as input, or its share was not measured on that device."""
    rates: ClusterRates

    @property
    def devices(self) -> Floats:
        """Number of devices of each cluster, (n,)."""
        return self.nodes * self.node_devices

    def take(self, rows: Ints) -> TwoStreamsPlan:
        """Return the plans of the designs at the indices ``rows``."""
        rates = {name: getattr(self.rates, name)[rows] for name in ClusterRates.__slots__}
        own = {
            name: getattr(self, name)[rows] for name in TwoStreamsPlan.__slots__ if name != "rates"
        }
        return TwoStreamsPlan(rates=ClusterRates(**rates), **own)

    def layout(self, ways: Ways) -> ParallelLayout:
        """Return the layout of n clusters for these kinds of parallelism, innermost first."""
        return ParallelLayout.of(ways, self.inner, self.devices)


def plan_of(batch: Batch, readings: Readings, model: TwoStreamsModel) -> TwoStreamsPlan:
    """Return the parallel plans of n designs; absent inputs take the node type's values."""
    read = readings.columns(batch)

    def machine(figure: Callable[[ClusterNode], float]) -> Floats:
        return batch.lookup("system", {name: float(figure(one)) for name, one in MACHINES.items()})

    def either(name: str, usual: Floats) -> Floats:
        return np.where(np.isnan(read[name]), usual, read[name])

    nodes = read["nodes"]
    node_devices = either("devices_per_node", machine(lambda one: one.node_devices))
    near = either("link_bandwidth", machine(lambda one: one.link_bytes_per_s))
    far = either("network_bandwidth", machine(lambda one: one.network_bytes_per_s))
    near_bytes_per_s = near * machine(lambda one: one.link_share)
    far_bytes_per_s = far * machine(lambda one: one.network_share) / node_devices
    # A single node needs no network, and a node with one device has no links.
    near_share = np.where(node_devices > 1, machine(lambda one: one.near_share), 0.0)
    share = either("flops_share", machine(lambda one: model.flops_share or one.flops_share))
    peak = either("peak", machine(lambda one: one.flops_per_s[model.weight_bytes]))
    memory = either("memory_bandwidth", machine(lambda one: one.memory_bytes_per_s))
    known = machine(lambda one: one.measured if model.flops_share is None else one.has_a100)
    is_stated = np.any([~np.isnan(read[name]) for name in _RATES], axis=0)
    return TwoStreamsPlan(
        nodes=nodes,
        node_devices=node_devices,
        inner=either("inner_degree", node_devices),
        global_batch=either("global_batch", np.full(len(batch), model.batch)),
        memory_bytes=either("memory_capacity", machine(lambda one: one.memory_bytes)),
        extrapolated=np.where(is_stated | (known == 0), 1.0, 0.0),
        rates=ClusterRates(
            flops_per_s=peak * share,
            lookup_bytes_per_s=memory * machine(lambda one: one.memory_share),
            near_bytes_per_s=near_bytes_per_s,
            far_bytes_per_s=np.where(nodes > 1, far_bytes_per_s, near_bytes_per_s),
            near_share=np.where(nodes > 1, near_share, 1.0),
        ),
    )


def infeasible(
    plan: TwoStreamsPlan, found: Mapping[str, Floats], needed_bytes: Floats
) -> dict[int, Failure]:
    """Return the first violated constraint of each infeasible plan, by index.

    Args:
        plan: the plans.
        found: times and memory of the plans as ``Scenario.spent`` returns them, (n,) each.
        needed_bytes: bytes needed on a device, (n,).
    """
    copies, table_copies = found["copies"], found["table_copies"]
    gib = 2.0**30
    needed = np.round(needed_bytes / gib, 1)  # rows that are equal after rounding share a fault
    rules = (
        Rule(
            broken=(found["levels"] > 1) & (plan.node_devices % plan.inner != 0),
            reason="an inner level of {has:.0f} devices does not divide a node of {needs:.0f}",
            has=plan.inner,
            needs=plan.node_devices,
        ),
        Rule(
            broken=(plan.global_batch % copies != 0) | (plan.global_batch % table_copies != 0),
            reason="{has:.0f} samples cannot be split evenly over {needs:.0f} copies",
            has=plan.global_batch,
            needs=np.maximum(copies, table_copies),
        ),
        Rule(
            broken=needed_bytes > plan.memory_bytes,
            reason="needs {has:.1f} GiB of memory, has {needs:.1f} GiB: {short:.1f} GiB short",
            has=needed,
            needs=plan.memory_bytes / gib,
        ),
    )
    failures: dict[int, Failure] = {}
    for rule in reversed(rules):
        failures |= find_rule_failures(rule, np.ones_like(rule.broken))
    return failures
