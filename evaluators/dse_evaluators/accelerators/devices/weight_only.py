"""GEMMs of 16-bit activations with narrower weights, which the kernel dequantizes on reading."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.devices.devices import DEVICES, Device, device_of
from dse_evaluators.accelerators.devices.roofline import KernelWork, RooflineConstants, Times, times
from dse_evaluators.fits import Fit, fits_in

WIDTHS = (4, 8)
"""Bits per weight of the measured kernels."""

VECTOR_ROWS = 4
"""Largest number of rows for the vector kernel, at the fp32 rate; above, matrix units are used."""

FITTED = ("compute_share", "memory_share", "exponent", "launch_s", "chain_s")
"""Fitted constants of each of the two kernels; the left-hand operand is not converted."""

FITS = Path(__file__).with_name("weight_only.fits.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightOnly:
    """Roofline constants of weight-only GEMM kernels for one weight width on one device.

    A kernel runs on vector units or on matrix units.
    """

    vector: RooflineConstants
    tiles: RooflineConstants
    own: bool
    """False if the constants are of a device with the same die, or medians over others."""
    source: str
    """Names of the fits that the constants are taken from, or are medians of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakRates:
    """Peak rates on a device's data sheet: numbers, or arrays that broadcast with GEMM sizes."""

    vector_flops_per_s: Floats | float
    tiles_flops_per_s: Floats | float
    bytes_per_s: float


def rates_of(device: Device) -> PeakRates:
    """Return the peak rates of a device with 16-bit matrix units.

    If the data sheet has no fp32 rate, the vector kernel has no compute bound.
    """
    return PeakRates(
        vector_flops_per_s=device.flops_per_s.get("fp32", np.inf),
        tiles_flops_per_s=device.flops_per_s["bf16"],
        bytes_per_s=device.dram_bytes_per_s,
    )


def widened_times(work: KernelWork, kernels: WeightOnly, rates: PeakRates, rows: Floats) -> Times:
    """Compute the times of weight-only GEMMs, on vector units for few rows, else matrix units.

    The limit is ``VECTOR_ROWS`` rows.
    """
    vector, tiles = (
        times(work, constants, flops_per_s=flops_per_s, bytes_per_s=rates.bytes_per_s)
        for constants, flops_per_s in (
            (kernels.vector, rates.vector_flops_per_s),
            (kernels.tiles, rates.tiles_flops_per_s),
        )
    )
    return Times(
        **{
            each.name: np.where(
                rows <= VECTOR_ROWS, getattr(vector, each.name), getattr(tiles, each.name)
            )
            for each in fields(Times)
        }
    )


def work_of(m: Floats, n: Floats, k: Floats, weight_bytes: Floats | float) -> KernelWork:
    """Return flops and bytes of GEMMs (m, k) x (k, n), with ``weight_bytes`` per weight."""
    return KernelWork(
        flops=2.0 * m * n * k,
        moved_bytes=2.0 * (m * k + m * n) + weight_bytes * (k * n),
        chain=k,
        converted=np.zeros_like(m),
    )


def nearest_widths(bits: Floats) -> Floats:
    """Return the measured weight width [bits] that is nearest to each of n widths, (n,)."""
    distances = np.abs(np.asarray(bits)[:, None] - np.array(WIDTHS))  # (n, widths)
    return np.array(WIDTHS, dtype=np.float64)[distances.argmin(axis=1)]


@cache
def weight_only_of(device: str, width: int) -> WeightOnly:
    """Return the roofline constants of dequantizing kernels for weights of ``width`` bits.

    A device that was not measured has the constants of one with the same die, or else medians over
    all devices measured in that width.

    Args:
        device: a name of ``DEVICES``, or of an unknown device.
        width: one of ``WIDTHS``.
    """
    found = _fits(width)
    if device in found:
        return _of({device: found[device]}, own=True)
    alike = {name: fit for name, fit in found.items() if _die(name) == _die(device)}
    return _of(alike or found, own=False)


def without(device: str, width: int) -> WeightOnly:
    """Return roofline constants for a device as if it were unmeasured: medians over the others."""
    return _of({name: fit for name, fit in _fits(width).items() if name != device}, own=False)


@cache
def _fits(width: int) -> Mapping[str, Fit]:
    """Return the fitted kernel constants for a weight width, by device.

    The name of a fit in the table starts with the device's name.
    """
    fits = fits_in(FITS)
    return {name.split()[0]: fit for name, fit in fits.items() if f" int{width} " in name}


def _die(device: str) -> tuple[object, ...]:
    """Return a key shared by devices with the same die, or the name of an unknown device."""
    if device not in DEVICES:
        return (device,)
    known = device_of(device)
    return known.node, known.die_mm2, known.compute_units


def _of(found: Mapping[str, Fit], *, own: bool) -> WeightOnly:
    def constants(kernel: str) -> RooflineConstants:
        return RooflineConstants(
            **{
                name: float(
                    np.median([fit.constants[f"{kernel}_{name}"] for fit in found.values()])
                )
                for name in FITTED
            }
        )

    return WeightOnly(
        vector=constants("vector"),
        tiles=constants("tiles"),
        own=own,
        source=", ".join(fit.name for fit in found.values()),
    )
