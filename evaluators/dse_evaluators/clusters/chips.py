"""Roofline calibrations of devices on the GEMMs of training, by number format."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.calibrations import calibration_on, has_calibration
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline import RooflineConstants
from dse_evaluators.clusters.training.kernels import FORMATS, OPERAND_BYTES, Chip
from dse_evaluators.csv_files.csv_records import read_rows, record_of
from dse_evaluators.fits import Fit, fits_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipCalibration:
    """Roofline constants of a device in one number format: medians over software stacks.

    ``heldout_median`` is the median of the stacks' held-out errors.
    """

    compute_share: float
    memory_share: float
    launch_s: float
    exponent: float
    stacks: int
    heldout_median: float

    @property
    def constants(self) -> RooflineConstants:
        return RooflineConstants(
            compute_share=self.compute_share,
            memory_share=self.memory_share,
            exponent=self.exponent,
            launch_s=self.launch_s,
        )


# Smooth roofline of four constants, fitted to the measured GEMMs of aiconfigurator@095f58a
# (ai-dynamo, Apache-2.0): 3,000 per stack, some held out. Stacks with impossible constants (shares
# above 1.05, exponents above 10) are left out. The constants of `accelerators.gpu` do not serve
# here: they come from few GEMMs, most of them small, and a training step has few small ones.
ROWS: Mapping[tuple[str, str], ChipCalibration] = {
    (row["device"], row["format"]): record_of(
        row, ChipCalibration, launch_s=float(row["launch_us"]) * 1e-6
    )
    for row in read_rows(Path(__file__).with_name("chips.csv"))
}


# Calibrations for devices without measurements: medians over the measured devices, by operand size.
# The kernels of such a device may be much better or worse, so `Chip.measured` is false.
USUAL: Mapping[str, ChipCalibration] = {
    form: ChipCalibration(
        compute_share=median(row.compute_share for row in rows),
        memory_share=median(row.memory_share for row in rows),
        launch_s=median(row.launch_s for row in rows),
        exponent=median(row.exponent for row in rows),
        stacks=0,
        heldout_median=float("nan"),
    )
    for form, rows in (
        ("bf16", [row for (_, form), row in ROWS.items() if form == "bf16"]),
        ("fp16", [row for (_, form), row in ROWS.items() if form == "bf16"]),
        ("fp8", [row for (_, form), row in ROWS.items() if form == "fp8"]),
    )
}


def chips_of(device: str | Device) -> dict[str, Chip]:
    """Return the GEMM rates of a device in each number format that it supports.

    Args:
        device: a name of ``devices.csv``, or figures that differ from those of the named device.

    Raises:
        SpecError: the device is unknown, or its data sheet has no rate in any of FORMATS.
    """
    known = device_of(device) if isinstance(device, str) else device
    if not known.flops_per_s.keys() & set(FORMATS):
        raise SpecError(f"{known.name} has no GEMM rate in any of {', '.join(FORMATS)}")
    return {
        form: Chip(
            constants=_own_constants(known, form) or _row(known.name, form).constants,
            flops_per_s=known.flops_per_s[form],
            bytes_per_s=known.dram_bytes_per_s,
            operand_bytes=float(OPERAND_BYTES[FORMATS.index(form)]),
            measured=_own_constants(known, form) is not None
            or ((known.name, form) in ROWS and known == device_of(known.name)),
        )
        for form in FORMATS
        if form in known.flops_per_s
    }


def _own_constants(device: Device, form: str) -> RooflineConstants | None:
    """Return the constants fitted to the user's GEMMs in a format; ``None`` if there are none."""
    if not has_calibration(device, form):
        return None
    constants = calibration_on(device, form).constants
    return constants if RECIPES[form].converts else replace(constants, conversion_bytes=0.0)


def _row(device: str, form: str) -> ChipCalibration:
    """Return the roofline constants measured on a device, or else medians over measured devices.

    Among the medians, the achieved fraction of peak compute is replaced by the one fitted to
    complete training steps of the device, if there is such a fit.
    """
    fitted = _fits().get(f"{device} {form}")
    share = fitted.constants["compute_share"] if fitted else USUAL[form].compute_share
    return ROWS.get((device, form), replace(USUAL[form], compute_share=share))


@cache
def _fits() -> Mapping[str, Fit]:
    return fits_in(Path(__file__).with_name("chips.fits.json"))


def chip_of(device: str | Device, number_format: str) -> Chip:
    """Return the GEMM rates of a device in one number format.

    Raises:
        SpecError: the device is unknown, or its data sheet has no rate in that format.
    """
    chips = chips_of(device)
    if number_format not in chips:
        name = device if isinstance(device, str) else device.name
        raise SpecError(
            f"{name} has no GEMM rate in {number_format!r}", hint=nearest(number_format, chips)
        )
    return chips[number_format]
