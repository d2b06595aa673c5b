"""Catalogue of commercial devices, with the figures of their data sheets."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dse_evaluators.readings import look_up_row

FORMATS = ("fp32", "tf32", "bf16", "fp16", "fp8", "int8", "fp4")
"""Formats whose dense rates data sheets give; a multiply-accumulate counts as two operations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Data-sheet figures of a device; ``None`` marks a figure that no source reports.

    ``source`` names the documents of its figures, in parts separated by ``|``. The first part is
    for all figures, except those that another part starts with: ``node: unverified (document)``.
    An unverified figure is from memory of the document. ``dram_bytes`` is the largest memory with
    the bandwidth ``dram_bytes_per_s``: SRAM in a Groq LPU and a Cerebras wafer.
    """

    name: str
    vendor: str
    year: int
    node: str
    die_mm2: float | None
    compute_units: int | None
    """Number of streaming multiprocessors (NVIDIA) or compute units (AMD)."""
    dram_bytes: float
    dram_bytes_per_s: float
    l2_bytes: float | None
    link_bytes_per_s: float | None
    """Bandwidth to other devices of the same server, in one direction."""
    power_limit_w: float | None
    idle_w: float | None
    flops_per_s: Mapping[str, float]
    source: str
    note: str


def device_of(name: str) -> Device:
    """Return the device of a name.

    Raises:
        SpecError: there is no such device; the hint gives the nearest name.
    """
    return look_up_row("device", name, DEVICES)


def _device(row: Mapping[str, str]) -> Device:
    def figure(column: str) -> float | None:
        return float(row[column]) if row[column] else None

    return Device(
        name=row["name"],
        vendor=row["vendor"],
        year=int(row["year"]),
        node=row["node"],
        die_mm2=figure("die_mm2"),
        compute_units=int(row["compute_units"]) if row["compute_units"] else None,
        dram_bytes=float(row["dram_bytes"]),
        dram_bytes_per_s=float(row["dram_bytes_per_s"]),
        l2_bytes=figure("l2_bytes"),
        link_bytes_per_s=figure("link_bytes_per_s"),
        power_limit_w=figure("power_limit_w"),
        idle_w=figure("idle_w"),
        flops_per_s={text: float(row[text]) for text in FORMATS if row[text]},
        source=row["source"],
        note=row["note"],
    )


def _devices() -> Mapping[str, Device]:
    with Path(__file__).with_name("devices.csv").open(encoding="utf-8", newline="") as file:
        return {row["name"]: _device(row) for row in csv.DictReader(file)}


DEVICES: Mapping[str, Device] = _devices()
