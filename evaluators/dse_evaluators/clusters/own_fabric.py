"""Fabric within a node as a study describes it: a name, two figures, or fitted collectives."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.amounts import amount
from dse_evaluators.clusters.collectives import COLLECTIVES, Collective, CollectiveConstants
from dse_evaluators.clusters.fabrics import MeasuredFabric, UnmeasuredFabric, get_check_status
from dse_evaluators.clusters.systems import System
from dse_evaluators.readings import number

_FIGURES = ("bandwidth", "latency", "kind", "axis_devices")
_FITTED = ("collective", "ranks", "latency", "bandwidth", "pipelining")
_RANGE = ("smallest", "largest")
_KINDS = ("switch", "torus")
_MOST_DEVICES = 2**20
_TINY_S = 1e-12


def change_fabric(base: System, value: object) -> dict[str, Any]:
    """Return the fields of a system with another fabric within a node.

    Args:
        base: the system that is changed.
        value: the name of a fabric; ``{bandwidth: 360 GB/s, latency: 10 us}``; or ``{collectives:
            [{collective: all_reduce, ranks: 8, latency: ..., bandwidth: ..., pipelining: ...}]}``
            as ``dse calibrate collectives`` writes it.

    Raises:
        SpecError: the name or a key is unknown, or a figure is out of range.
    """
    if isinstance(value, str):
        get_check_status(value)  # raises if the fabric is unknown
        return {"fabric": value, "own_fabric": None}
    if not isinstance(value, Mapping):
        hint = "a name, or {bandwidth: 360 GB/s, latency: 10 us}"
        raise SpecError(f"fabric cannot be {value!r}", hint=hint)
    own = _fitted(base, value) if "collectives" in value else _described(base, value)
    return {"fabric": own.name, "own_fabric": own}


def count_of(name: str, value: Any) -> int:
    """Check and return a number of devices, nodes or adapters that a user states.

    Raises:
        SpecError: the value is not a whole number from 1.
    """
    number(1, _MOST_DEVICES, whole=True)(name, value)
    return int(value)


def amount_of(name: str, value: Any, unit: str, *, least: float) -> float:
    """Return a figure of a system in ``unit``, given as a number or with its unit as text.

    Raises:
        SpecError: the value is no number or text with a unit, or is less than ``least``.
    """
    if not isinstance(value, int | float | str):
        raise SpecError(f"{name} cannot be {value!r}", hint=f"a number of {unit}")
    return amount(name, value, unit, least=least)


def _described(base: System, value: Mapping[str, Any]) -> UnmeasuredFabric:
    _check_keys(value, _FIGURES, "a fabric")
    if "bandwidth" not in value:
        hint = "what a device sends and receives at once, such as 360 GB/s"
        raise SpecError("a fabric has no key 'bandwidth'", hint=hint)
    kind = value.get("kind", "switch")
    if kind not in _KINDS:
        hint = nearest(str(kind), _KINDS) or ", ".join(_KINDS)
        raise SpecError(f"kind of a fabric cannot be {kind!r}", hint=hint)
    return UnmeasuredFabric(
        name="the study's",
        kind=kind,
        ranks=base.node_devices,
        latency_s=amount_of("latency", value.get("latency", 1e-5), "s", least=0.0),
        bytes_per_s=amount_of("bandwidth", value["bandwidth"], "B/s", least=1.0),
        axis_devices=count_of("axis_devices", value.get("axis_devices", base.node_devices)),
        checked="hand-set",
        source="the study",
    )


def _fitted(base: System, value: Mapping[str, Any]) -> MeasuredFabric:
    _check_keys(value, ("collectives",), "a fabric of measured collectives")
    rows = value["collectives"]
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        hint = "what dse calibrate collectives writes"
        raise SpecError("collectives of a fabric are a list of fits", hint=hint)
    measured: dict[tuple[Collective, int], CollectiveConstants] = {}
    sizes: dict[tuple[Collective, int], tuple[float, float]] = {}
    for row in rows:
        key, constants = _fit(row)
        if key in measured:
            hint = "leave one"
            raise SpecError(f"{key[0]} of {key[1]} ranks stands twice in a fabric", hint=hint)
        measured[key] = constants
        low, high = (amount_of(name, row.get(name, 0.0), "B", least=0.0) for name in _RANGE)
        sizes[key] = (low, high or math.inf)
    return MeasuredFabric(name="the study's", measured=measured, sizes=sizes, like=base.within)


def _fit(row: Any) -> tuple[tuple[Collective, int], CollectiveConstants]:
    if not isinstance(row, Mapping):
        hint = "{collective: all_reduce, ranks: 8, latency: ..., bandwidth: ..., pipelining: ...}"
        raise SpecError(f"a fit of a collective cannot be {row!r}", hint=hint)
    _check_keys(row, (*_FITTED, *_RANGE), "a fit of a collective")
    lacking = next((key for key in _FITTED if key not in row), None)
    if lacking is not None:
        raise SpecError(f"a fit of a collective has no key {lacking!r}", hint=", ".join(_FITTED))
    word = row["collective"]
    found = next((one for one in COLLECTIVES if one == word), None)
    if found is None:
        hint = nearest(str(word), COLLECTIVES) or ", ".join(COLLECTIVES)
        raise SpecError(f"collective cannot be {word!r}", hint=hint)
    number(0.0, 1.0)("pipelining", row["pipelining"])
    return (found, count_of("ranks", row["ranks"])), CollectiveConstants(
        latency_s=amount_of("latency", row["latency"], "s", least=_TINY_S),
        bytes_per_s=amount_of("bandwidth", row["bandwidth"], "B/s", least=1.0),
        pipelining=float(row["pipelining"]),
    )


def _check_keys(value: Mapping[str, Any], known: Sequence[str], noun: str) -> None:
    odd = next((key for key in value if key not in known), None)
    if odd is not None:
        raise SpecError(f"{noun} has no key {odd!r}", hint=nearest(str(odd), known))
