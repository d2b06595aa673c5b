"""Devices as a user's study states them, over those of the catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from dse.errors import SpecError, nearest
from dse.units.units import converted, quantity
from dse_evaluators.accelerators.devices.devices import DEVICES, FORMATS, Device, device_of

FIGURES: Mapping[str, tuple[str, str]] = {
    "memory": ("dram_bytes", "B"),
    "bandwidth": ("dram_bytes_per_s", "B/s"),
    "power_limit": ("power_limit_w", "W"),
    "idle": ("idle_w", "W"),
}
"""What a platform may say beside ``like`` and its rates: the field it sets, and its unit."""

RATE_UNIT = "FLOP/s"

Figure = str | float

Platforms = Mapping[str, Mapping[str, Figure]]
"""By name: ``like``, a device of the catalogue that it is but for what else is said of it.

It keeps that one's ``Device.name``: what was measured of that one holds for it too."""


def devices_of(platforms: Platforms) -> Mapping[str, Device]:
    """The catalogue's devices, and the user's over them.

    Raises:
        SpecError: a platform says what it cannot.
    """
    return {**DEVICES, **{name: _device(name, said) for name, said in platforms.items()}}


def _device(name: str, said: Mapping[str, Figure]) -> Device:
    like = device_of(str(said.get("like", name)))
    rates, others = dict(like.flops_per_s), dict[str, float]()
    for key, value in said.items():
        if key in FORMATS:
            rates[key] = _number(name, key, value, RATE_UNIT)
        elif key in FIGURES:
            field, unit = FIGURES[key]
            others[field] = _number(name, key, value, unit)
        elif key != "like":
            known = ("like", *FIGURES, *FORMATS)
            raise SpecError(f"platform {name!r} cannot say {key!r}", hint=nearest(key, known))
    rated = replace(like, flops_per_s=rates, source="the study", recalled="")
    return replace(rated, **others)  # type: ignore[arg-type]  # each is one of the float fields


def _number(name: str, key: str, value: Figure, unit: str) -> float:
    """A figure in its SI unit; more than nothing."""
    told = quantity(value) if isinstance(value, str) else None
    number = converted(*told, unit) if told is not None else value
    if isinstance(number, str | bool) or not 0 < number < float("inf"):
        raise SpecError(f"{key} of platform {name!r} is {value!r}", hint=f"a number of {unit}")
    return float(number)
