"""Clusters as a study names them: a built-in name, a YAML file, or a built-in one with changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device, device_of
from dse_evaluators.accelerators.devices.platforms import (
    DEVICE_EXAMPLE,
    devices_of,
    is_path,
    read_device,
    read_mapping,
)
from dse_evaluators.clusters.own_fabric import amount_of, change_fabric, count_of
from dse_evaluators.clusters.systems import (
    SYSTEMS,
    System,
    network_of,
    system_of,
)

SystemOption = str | Mapping[str, Any]
"""Value of an option ``system``: a name, a path, or ``{like: NAME, nodes: 4, ...}``."""

DeviceOption = str | Mapping[str, Any]
"""Value of an option ``device``: a name, a path, or ``{like: NAME, memory: 96 GB, ...}``."""

_NAME = "name"
_TINY = 1e-12

_NETWORK = {
    "adapter_bandwidth": ("adapter_bytes_per_s", "B/s"),
    "device_bandwidth": ("device_bytes_per_s", "B/s"),
    "message_bandwidth": ("message_bytes_per_s", "B/s"),
    "latency": ("latency_s", "s"),
}


def system_from(value: object, option: str = "system") -> System:
    """Return the cluster that an option names.

    Args:
        value: a name of ``clusters.systems``; a mapping ``{like: NAME or path, device: ...,
            node_devices: 8, nodes: 4, fabric: ..., network: ...}`` of the fields that differ from
            the system ``like``; or the path of a YAML file with such a mapping.
        option: name of the option, for messages.

    Raises:
        SpecError: the name, the file or a key is unknown, or an amount is out of range.
    """
    if isinstance(value, System):
        return value
    try:
        return _system(_contents(value))
    except SpecError as error:
        raise SpecError(error.problem, hint=error.hint, part=[option]) from error


def device_from(value: object, option: str = "device") -> Device:
    """Return the device that an option names.

    Args:
        value: a name of ``devices.csv``; the path of a YAML file, such as ``dse calibrate devices``
            writes; or a mapping ``{like: NAME, memory: 96 GB, ...}`` of the figures that differ.
            The result keeps the constants measured on the named device, unless the mapping has
            others. The key ``name`` is the device's name in a space, and no figure.
        option: name of the option, for messages.

    Raises:
        SpecError: the name or a key is unknown, or a figure is not positive.
    """
    try:
        if isinstance(value, str):
            return read_device(Path(value)) if is_path(value) else device_of(value)
        if isinstance(value, Mapping):
            if "like" not in value:
                raise SpecError("a device has no key 'like'", hint="{like: h100-sxm, ...}")
            figures = {key: one for key, one in value.items() if key != _NAME}
            return devices_of({"device": figures})["device"]
    except SpecError as error:
        problem = error.problem.replace("platform 'device'", "a device")
        raise SpecError(problem, hint=error.hint, part=[option]) from error
    hint = "a name, or {like: h100-sxm, memory: 96 GB}"
    raise SpecError(f"{option} cannot be {value!r}", hint=hint, part=[option])


def label_of_system(value: object) -> str:
    """Return the name of a system that an option names, as a space refers to it.

    Args:
        value: a name, the path of a YAML file, or a mapping with the key ``like``.
    """
    return system_from(value).name


def label_of_device(value: object) -> str:
    """Return the name of a device that an option names, as a space refers to it.

    It is the built-in name, the name of the file without its ending, or the key ``name`` of a
    mapping, or else its key ``like``.

    Args:
        value: a name, the path of a YAML file, or a mapping with the key ``like``.

    Raises:
        SpecError: the name, the file or a key is unknown, or a figure is not positive.
    """
    device = device_from(value)
    if isinstance(value, Mapping):
        return str(value.get(_NAME, device.name))
    return Path(value).stem if isinstance(value, str) and is_path(value) else device.name


def system_edition(value: object) -> str:
    """Return a hash of a system or device of the user; an empty text for a built-in name.

    Args:
        value: a name, the path of a YAML file, or a mapping with the key ``like``.
    """
    if value is None or (isinstance(value, str) and not is_path(value)):
        return ""
    return hashlib.sha256(repr(_contents(value)).encode()).hexdigest()[:12]


def _contents(value: object, files: tuple[Path, ...] = ()) -> object:
    """Return the value of an option, with the contents of YAML files in place of their paths.

    Args:
        value: the value of an option.
        files: the files whose key ``like`` led to this value.

    Raises:
        SpecError: a file cannot be read, or its key ``like`` leads back to the file.
    """
    if isinstance(value, str) and is_path(value):
        path = Path(value)
        if path.resolve() in files:
            raise SpecError(f"{files[0].name} is like itself", hint="like: h100-dgx")
        found = _contents(_read(path), (*files, path.resolve()))
        return {**found, "name": path.stem} if isinstance(found, Mapping) else found
    if isinstance(value, Mapping) and "like" in value:
        nested = {"like": _contents(value["like"], files)}
        if is_path(value.get("device")):
            nested["device"] = read_mapping(Path(value["device"]), DEVICE_EXAMPLE)
        return {**value, **nested}
    return value


def _system(value: object) -> System:
    if isinstance(value, str):
        return _look_up(value)
    if not isinstance(value, Mapping):
        hint = "a name, a path, or {like: h100-dgx, nodes: 4}"
        raise SpecError(f"system cannot be {value!r}", hint=hint)
    keys = ("like", "name", "measurements", *_CHANGES)
    odd = next((key for key in value if key not in keys), None)
    if odd is not None:
        raise SpecError(f"a system has no key {odd!r}", hint=nearest(str(odd), keys))
    if "like" not in value:
        raise SpecError("a system has no key 'like'", hint="{like: h100-dgx, nodes: 4}")
    system = _system(value["like"])
    for key, change in _CHANGES.items():
        if key in value:
            system = replace(system, **change(system, value[key]))
    return replace(system, name=str(value.get("name", system.name)), source="the study")


def _look_up(text: str) -> System:
    if text not in SYSTEMS and Path(text).exists():
        hint = f"a file of your own is named by a path: ./{text}"
        raise SpecError(f"system cannot be {text!r}", hint=hint)
    return system_of(text)


def _read(path: Path) -> Mapping[str, Any]:
    """Return the mapping of a YAML file.

    Raises:
        SpecError: the file cannot be read, is too large, or is no mapping.
    """
    found = read_mapping(path, "{like: h100-dgx, nodes: 4}")
    beside = {
        key: str(path.parent / found[key]) for key in ("like", "device") if is_path(found.get(key))
    }
    return {**found, **beside}


def _change_device(_: System, value: object) -> dict[str, Any]:
    sheet = device_from(value)
    known = isinstance(value, str) and not is_path(value)
    return {"device": sheet.name, "own_device": None if known else sheet}


def _change_network(base: System, value: object) -> dict[str, Any]:
    """Return the network between nodes: a built-in network, or a network with changed figures."""
    if isinstance(value, str):
        return {"network": network_of(value)}
    if not isinstance(value, Mapping):
        hint = "a name, or {adapters: 8, adapter_bandwidth: 50 GB/s}"
        raise SpecError(f"network cannot be {value!r}", hint=hint)
    known = ("like", "adapters", *_NETWORK)
    odd = next((key for key in value if key not in known), None)
    if odd is not None:
        raise SpecError(f"a network has no key {odd!r}", hint=nearest(str(odd), known))
    network = network_of(str(value["like"])) if "like" in value else base.network
    changes: dict[str, Any] = {
        field: amount_of(key, value[key], unit, least=_TINY if unit == "s" else 1.0)
        for key, (field, unit) in _NETWORK.items()
        if key in value
    }
    if "adapters" in value:
        changes["adapters"] = count_of("adapters", value["adapters"])
    if "adapter_bandwidth" in value:
        for name in ("device_bytes_per_s", "message_bytes_per_s"):
            changes.setdefault(name, changes["adapter_bytes_per_s"])
    return {"network": replace(network, **changes, checked="hand-set", source="the study")}


_CHANGES: Mapping[str, Callable[[System, Any], dict[str, Any]]] = {
    "device": _change_device,
    "node_devices": lambda _, value: {"node_devices": count_of("node_devices", value)},
    "nodes": lambda _, value: {"nodes": count_of("nodes", value)},
    "fabric": change_fabric,
    "network": _change_network,
}
"""Functions of a base system and a key's value that return the fields of the system to replace."""
