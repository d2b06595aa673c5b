"""User-defined devices of a study, which extend or override those of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.errors import SpecError, nearest
from dse.units.units import converted, quantity
from dse_evaluators.accelerators.devices.devices import DEVICES, FORMATS, Device, device_of

FIGURES: Mapping[str, tuple[str, str]] = {
    "memory": ("dram_bytes", "B"),
    "bandwidth": ("dram_bytes_per_s", "B/s"),
    "link": ("link_bytes_per_s", "B/s"),
    "power_limit": ("power_limit_w", "W"),
    "idle": ("idle_w", "W"),
}
"""Keys of a platform besides ``like`` and its rates: the field that each sets, and its unit."""

RATE_UNIT = "FLOP/s"

Figure = str | float

Platforms = Mapping[str, Mapping[str, Figure]]
"""User-defined devices by name: a dict of figures that override a device of the catalogue.

``like`` names that device (by default the one of the same name). The result keeps its
``Device.name``, so that its measured constants apply too.
"""


def devices_of(platforms: Platforms) -> Mapping[str, Device]:
    """Return the devices of the catalogue, extended or overridden by the platforms.

    Raises:
        SpecError: a platform has an unknown key, an invalid value, or an unknown ``like``.
    """
    return {**DEVICES, **{name: _device(name, figures) for name, figures in platforms.items()}}


def _device(name: str, figures: Mapping[str, Figure]) -> Device:
    like = device_of(str(figures.get("like", name)))
    rates, others = dict(like.flops_per_s), dict[str, float]()
    for key, value in figures.items():
        if key in FORMATS:
            rates[key] = _number(name, key, value, RATE_UNIT)
        elif key in FIGURES:
            field, unit = FIGURES[key]
            others[field] = _number(name, key, value, unit)
        elif key != "like":
            known = ("like", *FIGURES, *FORMATS)
            raise SpecError(f"platform {name!r} has no key {key!r}", hint=nearest(key, known))
    rated = replace(like, flops_per_s=rates, source="the study")
    return replace(rated, **others)  # type: ignore[arg-type]  # each is one of the float fields


def _number(name: str, key: str, value: Figure, unit: str) -> float:
    """Convert a figure to its SI unit; raise SpecError unless it is positive and finite."""
    stated = quantity(value) if isinstance(value, str) else None
    number = converted(*stated, unit) if stated is not None else value
    if isinstance(number, str | bool) or not 0 < number < float("inf"):
        raise SpecError(f"{key} of platform {name!r} is {value!r}", hint=f"a number of {unit}")
    return float(number)
