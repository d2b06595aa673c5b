"""Machines that pack and send messages: fitted constants, or tables that TEMPI measured."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dse.core.values import Floats
from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.platforms import is_path, read_mapping
from dse_evaluators.amounts import amount
from dse_evaluators.fits import Fit, fits_in

FITS = Path(__file__).with_name("message_times.fits.json")
SECTOR_BYTES = 32
"""Bytes of the smallest access of a GPU to its memory."""

_UNITS = {
    "launch": "s",
    "sector_time": "s",
    "block_time": "s",
    "copy_latency": "s",
    "host_link": "B/s",
    "host_latency": "s",
    "host_bandwidth": "B/s",
}
_EXAMPLE = "{like: summit, launch: 6 us, device_messages: [[1 KiB, 3 us], [4 MiB, 200 us]]}"
_TABLES = ("packDevice", "unpackDevice", "packHost", "unpackHost")
_PLACES = {"nodes": "interNode", "node": "intraNode"}


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedMachine:
    """Machine of a few constants, and a table of contiguous messages between its devices.

    Args:
        name: name of the machine.
        launch: time to launch a kernel and wait for its end.
        sector_time: time of a kernel for each access of at most 32 B to the data.
        block_time: time of the copy of one block, where blocks are copied one by one.
        copy_latency: latency of a copy between device and host.
        host_link: bandwidth between a device and its host.
        host_latency: latency of a message between hosts.
        host_bandwidth: bandwidth of messages between hosts.
        device_messages: (bytes, seconds) of contiguous messages between devices, ascending.
    """

    name: str
    launch: float
    sector_time: float
    block_time: float
    copy_latency: float
    host_link: float
    host_latency: float
    host_bandwidth: float
    device_messages: tuple[tuple[float, float], ...]

    def pack_s(self, size: Floats, block: Floats, *, to_host: bool) -> Floats:
        """Return the time of a kernel: its accesses, or the link if it writes to the host."""
        accesses_s = size / block * np.ceil(block / SECTOR_BYTES) * self.sector_time
        if to_host:
            return self.launch + np.maximum(accesses_s, size / self.host_link)
        return self.launch + accesses_s

    def unpack_s(self, size: Floats, block: Floats, *, from_host: bool) -> Floats:
        """Return the time of a kernel, which is that of packing."""
        return self.pack_s(size, block, to_host=from_host)

    def send_s(self, size: Floats, *, from_host: bool) -> Floats:
        """Return the time by latency and bandwidth of hosts, or by the table of devices."""
        if from_host:
            return self.host_latency + size / self.host_bandwidth
        return _interpolate(self.device_messages, size)

    def copy_s(self, size: Floats) -> Floats:
        """Return the time by latency and bandwidth of the link."""
        return self.copy_latency + size / self.host_link

    def block_s(self, block: Floats) -> Floats:
        """Return the same time for blocks of each length."""
        return np.full(np.shape(block), self.block_time)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredMachine:
    """Machine whose steps were measured by TEMPI, for powers of two of bytes.

    ``packs`` holds (9, 9) times for messages of 64 B, 256 B ... and blocks of 1 B, 2 B ... 256 B.
    """

    name: str
    packs: Mapping[str, Floats]
    messages: Mapping[str, tuple[tuple[float, float], ...]]

    def pack_s(self, size: Floats, block: Floats, *, to_host: bool) -> Floats:
        """Return the time of packing by bilinear interpolation."""
        return self._kernel_s("packHost" if to_host else "packDevice", size, block)

    def unpack_s(self, size: Floats, block: Floats, *, from_host: bool) -> Floats:
        """Return the time of unpacking by bilinear interpolation."""
        return self._kernel_s("unpackHost" if from_host else "unpackDevice", size, block)

    def send_s(self, size: Floats, *, from_host: bool) -> Floats:
        """Return the time by linear interpolation."""
        return _interpolate(self.messages["Cpu" if from_host else "Gpu"], size)

    def copy_s(self, size: Floats) -> Floats:
        """Return the mean of both directions, by linear interpolation."""
        both = (_interpolate(self.messages[name], size) for name in ("d2h", "h2d"))
        return sum(both, np.zeros(np.shape(size))) / 2

    def block_s(self, block: Floats) -> Floats:
        """Return the time of a copy to the host, of one block."""
        return _interpolate(self.messages["d2h"], block)

    def _kernel_s(self, name: str, size: Floats, block: Floats) -> Floats:
        table = self.packs[name]
        rows, columns = table.shape
        x = np.clip(np.log2(block), 0, columns - 1)
        y = np.clip((np.log2(size) - 6) / 2, 0, rows - 1)
        left, low = np.floor(x).astype(int), np.floor(y).astype(int)
        right, high = np.minimum(left + 1, columns - 1), np.minimum(low + 1, rows - 1)
        across, up = _share(block, 2.0**left), _share(size, 4.0**low * 64, 4)
        below = table[low, left] * (1 - across) + table[low, right] * across
        above = table[high, left] * (1 - across) + table[high, right] * across
        larger = np.maximum(size / (4.0 ** (rows - 1) * 64), 1.0)
        return (below * (1 - up) + above * up) * larger


MessageMachine = FittedMachine | MeasuredMachine


def _share(value: Floats, base: Floats, factor: float = 2) -> Floats:
    """Return where a value lies between a base and the base times a factor: 0 to 1."""
    return np.clip((value - base) / (base * (factor - 1)), 0, 1)


def _interpolate(points: Sequence[tuple[float, float]], size: Floats) -> Floats:
    """Return times by linear interpolation; messages beyond the last point have its bandwidth."""
    sizes, times = (np.array(each) for each in zip(*points, strict=True))
    return np.interp(size, sizes, times) * np.maximum(size / sizes[-1], 1.0)


def fits() -> Mapping[str, Fit]:
    """Return the fitted constants of each machine, with the measurements used."""
    return fits_in(FITS)


def machine_of(value: object, place: str) -> MessageMachine:
    """Return the machine that an option names.

    Args:
        value: a name; the path of a JSON file that TEMPI's ``measure-system`` wrote; the path of a
            YAML file; or a mapping ``{like: NAME, launch: 6 us, ...}`` of what differs.
        place: ``nodes`` or ``node``: whether both devices are in one node, in a file of TEMPI.

    Raises:
        SpecError: the name, the file or a key is unknown, or an amount is out of range.
    """
    if is_path(value) and str(value).endswith(".json"):
        return _read_tempi(Path(str(value)), place)
    if place != "nodes":
        hint = "place: node needs a JSON file of TEMPI's measure-system"
        raise SpecError("the machine has messages between nodes only", hint=hint, part=["place"])
    contents = read_mapping(Path(str(value)), _EXAMPLE) if is_path(value) else value
    name = Path(str(value)).stem if is_path(value) else str(value)
    if isinstance(contents, str):
        return _load_machine(contents)
    if not isinstance(contents, Mapping):
        raise SpecError(f"machine cannot be {value!r}", hint=_EXAMPLE, part=["machine"])
    return _changed(contents, name if is_path(value) else "own")


def _load_machine(name: str) -> FittedMachine:
    known = fits()
    if name not in known:
        hint = f"{nearest(name, known)}; or {_EXAMPLE}"
        raise SpecError(f"there is no machine {name!r}", hint=hint, part=["machine"])
    constants = dict(known[name].constants)
    sent = {key: constants.pop(key) for key in list(constants) if key.startswith("device_")}
    points = sorted((float(key.removeprefix("device_")), time) for key, time in sent.items())
    return FittedMachine(name=name, device_messages=tuple(points), **constants)


def _changed(value: Mapping[str, Any], name: str) -> FittedMachine:
    known = (*_UNITS, "device_messages")
    for key in value:
        if key not in (*known, "like"):
            hint = nearest(str(key), known)
            raise SpecError(f"a machine has no key {key!r}", hint=hint, part=["machine"])
    base = _load_machine(str(value["like"])) if "like" in value else None
    found: dict[str, Any] = {}
    for key in known:
        if key not in value and base is None:
            hint = "like: summit takes the others from Summit"
            raise SpecError(f"the machine has no {key}", hint=hint, part=["machine"])
        if key not in value:
            found[key] = getattr(base, key)
        elif key == "device_messages":
            found[key] = _points(value[key])
        else:
            least = 1.0 if _UNITS[key] == "B/s" else 0.0
            found[key] = amount(key, value[key], _UNITS[key], least=least)
    return FittedMachine(name=name, **found)


def _points(value: object) -> tuple[tuple[float, float], ...]:
    pairs = value if isinstance(value, list) else []
    if not pairs or not all(isinstance(one, list) and len(one) == 2 for one in pairs):
        hint = "[[1 KiB, 3 us], [4 MiB, 200 us]]"
        raise SpecError(f"device_messages is {value!r}", hint=hint, part=["machine"])
    return tuple(
        sorted(
            (
                amount("device_messages", size, "B", least=1.0),
                amount("device_messages", time, "s"),
            )
            for size, time in pairs
        )
    )


def _read_tempi(path: Path, place: str) -> MeasuredMachine:
    hint = "TEMPI's bin/measure-system writes perf.json"
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}"
        raise SpecError(f"the file is no JSON: {error.msg}", where=where, hint=hint) from error
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}", hint=hint, part=["machine"]) from error
    messages = {"d2h": "d2h", "h2d": "h2d"}
    messages |= {kind: f"{_PLACES[place]}{kind}{kind}Pingpong" for kind in ("Cpu", "Gpu")}
    try:
        return MeasuredMachine(
            name=path.stem,
            packs={name: _grid(found[name]) for name in _TABLES},
            messages={name: _series(found[key]) for name, key in messages.items()},
        )
    except (KeyError, TypeError, ValueError) as error:
        problem = f"{path} lacks {error}" if isinstance(error, KeyError) else f"{path}: {error}"
        raise SpecError(problem, hint=hint, part=["machine"]) from error


def _grid(rows: Any) -> Floats:
    table = np.array([[float(cell["time"]) for cell in row] for row in rows])
    if table.ndim != 2 or not table.size or not (table > 0).all():
        raise ValueError("a table of packing times is empty or not positive")
    return table


def _series(cells: Any) -> tuple[tuple[float, float], ...]:
    times = [float(cell["time"]) for cell in cells]
    if not times or min(times) <= 0:
        raise ValueError("a table of message times is empty or not positive")
    return tuple((2.0**power, time) for power, time in enumerate(times))
