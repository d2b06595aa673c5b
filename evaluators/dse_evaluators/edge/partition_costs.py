"""Time and energy of both halves of a network that is cut between a device and a server."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.gpu_layers import Kernels
from dse_evaluators.accelerators.devices.gpu_power import compute_draw
from dse_evaluators.accelerators.devices.gpu_run import CalibratedDevice
from dse_evaluators.accelerators.devices.roofline import times

_BISECTIONS = 200
"""Most halvings of the logarithm of a bandwidth: it ends where a float cannot be halved."""

_LEAST, _MOST = 1e-3, 1e18
"""Bandwidths in B/s between which a threshold is sought."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prefixes:
    """Time and energy of the first 0, 1 ... l layers of a network on one machine, (l + 1,)."""

    time_s: Floats
    energy_j: Floats
    idle_w: float
    measured: bool
    """Whether the roofline constants were measured on the machine itself."""

    @staticmethod
    def of(machine: CalibratedDevice, kernels: Kernels) -> Prefixes:
        """Return the cumulated time and energy over layers, each of which runs alone.

        Args:
            machine: the machine in one number format.
            kernels: the layers in order.
        """
        work, power = kernels.work(machine.recipe, np.ones(1)), machine.power
        found = times(
            work,
            machine.calibration.constants,
            flops_per_s=machine.flops_per_s,
            bytes_per_s=machine.device.dram_bytes_per_s,
        )
        limit_w = np.full(1, power.limit_w)
        drawn = compute_draw(power, work.flops, work.moved_bytes, found.total_s, limit_w)
        time_s = found.total_s + drawn.throttled_s
        energy_j = drawn.base_j + drawn.compute_j + drawn.memory_j
        return Prefixes(
            time_s=_sums(time_s[:, 0]),
            energy_j=_sums(energy_j[:, 0]),
            idle_w=power.idle_w,
            measured=machine.calibration.own,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class CutCosts:
    """Costs of the c cuts of a network without the link between the halves; arrays are (c,)."""

    device_s: Floats
    device_j: Floats
    idle_w: float
    """Power of the device while it waits."""
    server_s: Floats
    sent_bytes: Floats  # 0 at the last cut, where nothing is sent
    measured: bool
    """Whether the roofline constants were measured on the device and on the server themselves."""

    @property
    def fixed_s(self) -> Floats:
        """Time of both halves of the network, without the transfer between them, (c,)."""
        return self.device_s + self.server_s


def bisect_threshold(costs: CutCosts, round_trip_s: Floats) -> Floats:
    """Return the least bandwidths [B/s] at which some other cut is as fast as the last one, (n,).

    The last cut is the device alone. The time of the fastest other cut falls with the bandwidth, so
    that bisection finds where it equals the time of the device alone. NaN means that no bandwidth
    suffices: the device alone is faster than the round trip and the server's half.

    Args:
        costs: the costs of all cuts.
        round_trip_s: round-trip times, (n,).
    """
    slack_s = costs.device_s[-1] - round_trip_s
    fixed_s, sent = costs.fixed_s[:-1], costs.sent_bytes[:-1]
    low, high = np.full(len(slack_s), np.log(_LEAST)), np.full(len(slack_s), np.log(_MOST))
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if not ((low < middle) & (middle < high)).any():
            break
        fastest_s = (fixed_s + sent / np.exp(middle)[:, None]).min(axis=1)
        enough = fastest_s <= slack_s
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    reached = fixed_s.min() < slack_s
    return np.where(reached, np.exp(high), np.nan)


def enumerate_threshold(costs: CutCosts, round_trip_s: Floats) -> Floats:
    """Return the least bandwidths [B/s] at which some other cut is as fast as the last one, (n,).

    The bandwidth that a cut needs is its sent bytes over the seconds that it leaves to the link;
    the result is the minimum over all cuts, NaN if no cut leaves any.
    """
    slack_s = (costs.device_s[-1] - round_trip_s)[:, None] - costs.fixed_s[:-1]
    fits = slack_s > 0
    needed = np.where(fits, costs.sent_bytes[:-1] / np.where(fits, slack_s, 1.0), np.inf)
    least = needed.min(axis=1)
    return np.where(np.isfinite(least), least, np.nan)


def _sums(each: Floats) -> Floats:
    return np.concatenate([[0.0], np.cumsum(each)])
