"""Energy per generated token of the devices of a serving plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.gpu_power import power_of
from dse_evaluators.clusters.serving.cycle import Cycle, ServingTraffic
from dse_evaluators.clusters.serving.serving_plan import Plans


@dataclass(frozen=True, slots=True, kw_only=True)
class Energy:
    """Energy of one generated token [J]: idle base, compute and memory; every field is (n,)."""

    base_j: Floats
    compute_j: Floats
    memory_j: Floats

    @property
    def total_j(self) -> Floats:
        return self.base_j + self.compute_j + self.memory_j


@dataclass(frozen=True, slots=True, kw_only=True)
class Draw:
    """Power model of one device in the number formats of n designs; every field is (n,).

    ``P = min(limit_w, base_w + flop_j * FLOP/s + byte_j * B/s)``.

    Source:
        :mod:`dse_evaluators.accelerators.devices.gpu_power`, with its errors. Links are left out.
    """

    limit_w: Floats
    base_w: Floats
    flop_j: Floats
    byte_j: Floats
    routed_flop_j: Floats
    """Energy of an operation of routed experts."""

    def of(self, plan: Plans, traffic: ServingTraffic, cycle: Cycle, reading: Draw) -> Energy:
        """Return the energy of a generated token [J], split into base, compute and memory.

        All devices draw the base power all the time, including those that only run prefill.

        Args:
            plan: the serving plans.
            traffic: load of a model copy.
            cycle: steady state of the model copy.
            reading: the power model of the devices that run prefill.
        """
        token_s = plan.devices / (cycle.per_s * traffic.answer)  # device-seconds per token
        flops, routed, moved_bytes = (
            _per_token(plan, traffic, cycle, name)
            for name in ("flops", "routed_flops", "moved_bytes")
        )
        compute_j = reading.flop_j * flops[0] + self.flop_j * flops[1]
        compute_j += (reading.routed_flop_j - reading.flop_j) * routed[0]
        compute_j += (self.routed_flop_j - self.flop_j) * routed[1]
        memory_j = reading.byte_j * moved_bytes[0] + self.byte_j * moved_bytes[1]
        most_j = (self.limit_w - self.base_w) * token_s
        clip = most_j / np.maximum(compute_j + memory_j, most_j)
        return Energy(
            base_j=self.base_w * token_s, compute_j=clip * compute_j, memory_j=clip * memory_j
        )


def draw(
    device: Device, formats: Sequence[str], place: Ints, expert_place: Ints | None = None
) -> Draw:
    """Return a device's power constants for the number format of each design.

    Args:
        device: the device.
        formats: the number formats that occur.
        place: index of each design's format in ``formats``, (n,).
        expert_place: index of the format of routed experts in ``formats``, (n,), if it differs.

    Raises:
        SpecError: the power limit of the device is unknown.
    """
    found = [power_of(device, text) for text in formats]

    def spread(values: Sequence[float]) -> Floats:
        return np.array(values, dtype=np.float64)[place]

    return Draw(
        limit_w=spread([one.limit_w for one in found]),
        base_w=spread([one.base_w for one in found]),
        flop_j=spread([one.flop_j for one in found]),
        byte_j=spread([one.byte_j for one in found]),
        routed_flop_j=np.array([one.flop_j for one in found])[
            place if expert_place is None else expert_place
        ],
    )


def _per_token(
    plan: Plans, traffic: ServingTraffic, cycle: Cycle, name: str
) -> tuple[Floats, Floats]:
    """Return operations or bytes of prefill and of decode per generated token, (n,) each.

    They are summed over all devices. ``name`` is ``flops``, ``routed_flops`` or ``moved_bytes``.
    """
    writing, draft, laden = (
        getattr(step, name) for step in (cycle.writing, cycle.draft, cycle.laden)
    )
    joined = (traffic.chunk > 0) & (traffic.prefill_copies == 0)
    read = traffic.pieces * (laden - np.where(joined, writing, 0.0))
    together = (writing + traffic.guesses * draft) / cycle.together
    return (
        plan.prefill.tp * read / traffic.answer,
        plan.tp * traffic.steps * together / traffic.answer,
    )
