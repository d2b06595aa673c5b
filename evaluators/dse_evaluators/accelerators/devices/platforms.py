"""User-defined devices of a study, which extend or override those of the catalogue."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse.units.units import converted, quantity
from dse_evaluators.accelerators.devices.calibrations import check_calibration
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

Platforms = Mapping[str, str | Mapping[str, Any]]
"""User-defined devices by name: a dict of figures that override a device of the catalogue.

``like`` names that device (by default the one of the same name). The result keeps its
``Device.name``, so that its measured constants apply too, unless ``calibrations`` has constants
fitted to the user's measurements. A text is the path of a YAML file with such a dict.
"""

DEVICE_EXAMPLE = "{like: h100-sxm, memory: 96 GB}"

_MOST_BYTES = 1 << 18


def devices_of(platforms: Platforms) -> Mapping[str, Device]:
    """Return the devices of the catalogue, extended or overridden by the platforms.

    Raises:
        SpecError: a platform has an unknown key, an invalid value, or an unknown ``like``.
    """
    return {**DEVICES, **{name: _device(name, figures) for name, figures in platforms.items()}}


def is_path(text: object) -> bool:
    """Return whether a text is a path of a YAML file rather than a name."""
    return isinstance(text, str) and (
        "/" in text or "\\" in text or Path(text).suffix in (".yaml", ".yml")
    )


def read_mapping(path: Path, example: str) -> Mapping[str, Any]:
    """Return the mapping of a YAML file; YAML tags are not executed.

    Args:
        path: the file.
        example: what the file may hold, for messages.

    Raises:
        SpecError: the file cannot be read, is too large, or is no mapping.
    """
    import yaml  # not needed for names, and slow to import

    try:
        if path.stat().st_size > _MOST_BYTES:
            raise SpecError(f"{path.name} is larger than 256 KiB", hint=f"as {example}")
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {path}", hint=f"a YAML file as {example}") from error
    except (OSError, ValueError, yaml.YAMLError) as error:
        problem = f"{path.name} cannot be read as YAML: {error}".splitlines()[0]
        raise SpecError(problem, hint=f"as {example}") from error
    if not isinstance(found, Mapping):
        raise SpecError(f"{path.name} is no mapping", hint=f"as {example}")
    return found


def read_device(path: Path) -> Device:
    """Return the device of a YAML file, such as ``dse calibrate devices`` writes.

    Raises:
        SpecError: the file cannot be read, or a key or value is invalid.
    """
    figures = read_mapping(path, DEVICE_EXAMPLE)
    if "like" not in figures:
        raise SpecError(f"{path.name} has no key 'like'", hint=f"as {DEVICE_EXAMPLE}")
    try:
        return _device(path.stem, figures)
    except SpecError as error:
        raise SpecError(f"{path.name}: {error.problem}", hint=error.hint) from error


def hash_device_files(values: Iterable[object]) -> str:
    """Return a hash of the device files among the values of options; empty if there are none."""
    paths = [Path(value) for value in values if isinstance(value, str) and is_path(value)]
    if not paths:
        return ""
    contents = [read_mapping(path, DEVICE_EXAMPLE) for path in paths]
    return hashlib.sha256(repr(contents).encode()).hexdigest()[:12]


def _device(name: str, figures: str | Mapping[str, Any]) -> Device:
    if isinstance(figures, str):
        return read_device(Path(figures))
    like = device_of(str(figures.get("like", name)))
    rates, others = dict(like.flops_per_s), dict[str, Any]()
    for key, value in figures.items():
        if key in FORMATS:
            rates[key] = _number(name, key, value, RATE_UNIT)
        elif key in FIGURES:
            field, unit = FIGURES[key]
            others[field] = _number(name, key, value, unit)
        elif key == "calibrations":
            others[key] = _calibrations(name, value)
        elif key not in ("like", "measurements"):
            known = ("like", *FIGURES, *FORMATS, "calibrations")
            raise SpecError(f"platform {name!r} has no key {key!r}", hint=nearest(key, known))
    rated = replace(like, flops_per_s=rates, source="the study")
    return replace(rated, **others)


def _calibrations(name: str, value: object) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(value, list) or not value:
        hint = "a list, as dse calibrate devices writes it"
        raise SpecError(f"calibrations of platform {name!r} is {value!r}", hint=hint)
    return tuple(map(check_calibration, value))


def _number(name: str, key: str, value: Figure, unit: str) -> float:
    """Convert a figure to its SI unit; raise SpecError unless it is positive and finite."""
    stated = quantity(value) if isinstance(value, str) else None
    number = converted(*stated, unit) if stated is not None else value
    if isinstance(number, str | bool) or not 0 < number < float("inf"):
        raise SpecError(f"{key} of platform {name!r} is {value!r}", hint=f"a number of {unit}")
    return float(number)
