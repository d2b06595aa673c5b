"""Catalogue of commercial devices, and the figures that publications used for them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.csv_files.csv_records import read_rows, record_of
from dse_evaluators.readings import look_up_row

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Formats whose dense rates data sheets give; a multiply-accumulate counts as two operations."""

_TEXTS = ("name", "publication", "vendor", "year", "node", "source", "note")
"""Columns of ``devices.csv`` that are no figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Data-sheet figures of a device; ``None`` marks a figure that no source reports.

    ``source`` names the documents of the figures, separated by ``|``. The first document applies to
    all figures except those named before another document, as in ``node: unverified (document)``.
    An unverified figure was not checked against the document. ``dram_bytes`` is the largest memory
    with the bandwidth ``dram_bytes_per_s``: SRAM in a Groq LPU and a Cerebras wafer.
    """

    name: str
    vendor: str
    year: int
    node: str = ""
    die_mm2: float | None = None
    compute_units: int | None = None
    """Number of streaming multiprocessors (NVIDIA) or compute units (AMD)."""
    clock_hz: float | None = None
    """Highest clock."""
    dram_bytes: float
    dram_bytes_per_s: float
    l2_bytes: float | None = None
    link_bytes_per_s: float | None = None
    """Bandwidth to other devices of the same server, in one direction."""
    power_limit_w: float | None = None
    idle_w: float | None = None
    flops_per_s: Mapping[str, float]
    source: str
    note: str = ""
    calibrations: tuple[Mapping[str, Any], ...] = ()
    """Roofline constants fitted to the user's measurements, as rows of ``calibrations.csv``."""


def device_of(name: str) -> Device:
    """Return the data-sheet figures of the device with this name.

    Raises:
        SpecError: there is no such device; the hint gives the nearest name.
    """
    return look_up_row("device", name, DEVICES)


def highest_clock_of(name: str) -> float:
    """Return the highest clock [Hz] of a device.

    Raises:
        SpecError: there is no such device, or its clock is not listed.
    """
    clock_hz = device_of(name).clock_hz
    if clock_hz is None:
        clocked = [each.name for each in DEVICES.values() if each.clock_hz is not None]
        raise SpecError(f"{name} has no listed clock", hint=nearest(name, clocked))
    return clock_hz


def figures_from(publication: str = "") -> Mapping[str, Mapping[str, float]]:
    """Return the device figures that a publication used, by device and column of ``devices.csv``.

    A publication's figures may differ from the vendor's; an empty name selects the vendor's
    figures.
    """
    return {row["name"]: _figures(row) for row in _ROWS if row["publication"] == publication}


def _figures(row: Mapping[str, str]) -> Mapping[str, float]:
    return {name: float(text) for name, text in row.items() if text and name not in _TEXTS}


def _device(row: Mapping[str, str]) -> Device:
    rates = {text: float(row[text]) for text in FORMATS if row[text]}
    return record_of(row, Device, flops_per_s=rates)


_ROWS = read_rows(Path(__file__).with_name("devices.csv"))

DEVICES: Mapping[str, Device] = {
    row["name"]: _device(row) for row in _ROWS if not row["publication"]
}
