"""Reader of a user's measured GEMMs: CSV, or a trace of PyTorch's profiler."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import TextIO

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.profiler_trace import is_trace, read_traced_gemms
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline_fit import PRIOR, MeasuredGemms

UNITS: Mapping[str, float] = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}

EXAMPLE = "m,n,k,dtype,time_us"

DTYPES: Mapping[str, str] = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "float": "fp32",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
}
"""Number formats by their names in PyTorch."""

FASTEST = 1.5
"""Largest multiple of the data sheet's peak rate; a faster product has a time in another unit."""

SLOWEST = 100.0
"""Largest median ratio of times to the data sheet's roofline or the time of a launch."""

_TIME = re.compile(r"(time|latency|duration)(?:[ _]?[\[(]?([a-zµμ]+)[\])]?)?", re.IGNORECASE)
_MOST_SIZE = 2**31


@dataclass(frozen=True, slots=True)
class _Columns:
    """Names of the columns of a file; empty if it has none."""

    dtype: str
    time: str
    seconds: float
    """Seconds in the unit of the time."""


def read_measured_gemms(path: Path, device: Device) -> list[MeasuredGemms]:
    """Return the measured GEMMs of a file, by format and software stack.

    The file may be a trace of PyTorch's profiler; of equal GEMMs, the median time counts. In CSV,
    the columns are ``m``, ``n`` and ``k``, ``dtype`` (or ``format``), and a time with its unit, as
    ``time_us`` or ``latency_ms``; ``framework``, ``version``, ``model`` and ``device`` are
    optional, and a file has one device only.

    Args:
        path: the file.
        device: data sheet of the measured device.

    Raises:
        SpecError: the file cannot be read or has no rows, or a row is invalid.
    """
    try:
        with path.open("rb") as binary:
            is_traced = is_trace(binary.read(64))
        if is_traced:
            return _read_trace(path, device)
        with path.open(encoding="utf-8-sig", newline="") as file:
            return _read(file, path, device)
    except FileNotFoundError as error:
        raise SpecError(f"there is no file {path}", hint=f"a CSV file of {EXAMPLE}") from error
    except (OSError, UnicodeError, csv.Error) as error:
        problem = f"{path} cannot be read as CSV: {error}"
        raise SpecError(problem, hint=f"text with a header such as {EXAMPLE}") from error


def _read(file: TextIO, path: Path, device: Device) -> list[MeasuredGemms]:
    rows = csv.DictReader(file, skipinitialspace=True)
    names = list(rows.fieldnames or ())
    try:
        columns = _columns(names)
    except SpecError as error:
        raise error.at(f"{path}:1") from error
    groups = defaultdict[tuple[str, str, str], list[tuple[float, ...]]](list)
    models = defaultdict[tuple[str, str, str], list[str]](list)
    devices = dict[str, int]()
    for row in rows:
        try:
            point = _point(row, columns, device)
        except SpecError as error:
            raise error.at(f"{path}:{rows.line_num}") from error
        devices.setdefault(row.get("device") or "", rows.line_num)
        key = (_format(row[columns.dtype]), row.get("framework") or "", row.get("version") or "")
        groups[key].append(point)
        models[key].append(row.get("model") or "")
    if not groups:
        raise SpecError("there are no rows", where=f"{path}:2", hint=f"rows of {EXAMPLE}")
    _check_one_device(devices, path)
    found = [_group(device, key, groups[key], models[key]) for key in sorted(groups)]
    _check_unit(found, columns.time, f"{path}:1")
    return found


def _read_trace(path: Path, device: Device) -> list[MeasuredGemms]:
    """Return the GEMMs of a trace by format, each shape once.

    Raises:
        SpecError: the trace is invalid, or a GEMM cannot have run on the device.
    """
    times = defaultdict[tuple[str, int, int, int], list[float]](list)
    places = dict[tuple[str, int, int, int], str]()
    for one in read_traced_gemms(path):
        key = (one.format, one.m, one.n, one.k)
        times[key].append(one.seconds)
        places.setdefault(key, one.where)
    groups = defaultdict[str, list[tuple[float, ...]]](list)
    for (number_format, m, n, k), some in times.items():
        seconds = float(np.median(some))
        try:
            _check_rate(device, number_format, (m, n, k), seconds, f"{seconds * 1e6:.4g} us")
        except SpecError as error:
            raise error.at(places[number_format, m, n, k]) from error
        groups[number_format].append((m, n, k, seconds))
    found = [
        _group(device, (number_format, "", ""), points, [""] * len(points))
        for number_format, points in sorted(groups.items())
    ]
    _check_unit(found, "time", str(path))
    return found


def _check_one_device(devices: Mapping[str, int], path: Path) -> None:
    """Check that all rows are of one device; ``devices`` has the first line of each.

    Raises:
        SpecError: there are two devices.
    """
    if len(devices) > 1:
        first, second = list(devices)[:2]
        problem = f"there are products of {first!r} and of {second!r}"
        where = f"{path}:{devices[second]}"
        raise SpecError(problem, where=where, hint="keep the rows of one device")


def _columns(names: Sequence[str]) -> _Columns:
    """Return the columns of the format and of the time.

    Raises:
        SpecError: a column is missing, or the time has no unit or stands twice.
    """
    for name in ("m", "n", "k"):
        if name not in names:
            raise SpecError(f"there is no column {name!r}", hint=f"a header such as {EXAMPLE}")
    dtype = next((name for name in ("dtype", "format") if name in names), "")
    if not dtype:
        raise SpecError("there is no column 'dtype'", hint=f"a header such as {EXAMPLE}")
    times = [name for name in names if _TIME.fullmatch(name)]
    if len(times) != 1:
        problem = f"there are two times: {', '.join(times)}" if times else "there is no time"
        raise SpecError(problem, hint="one column with its unit, such as time_us or latency_ms")
    match = _TIME.fullmatch(times[0])
    unit = (match.group(2) if match else "") or ""
    if unit not in UNITS:
        problem = f"the unit of column {times[0]!r} is " + (
            f"unknown: {unit}" if unit else "missing"
        )
        raise SpecError(problem, hint="time_s, time_ms, time_us or time_ns")
    return _Columns(dtype, times[0], UNITS[unit])


def _point(row: Mapping[str, str], columns: _Columns, device: Device) -> tuple[float, ...]:
    """Return m, n, k and the seconds of a row.

    Raises:
        SpecError: a cell is missing or invalid, or the product is faster than the device.
    """
    if None in row or None in row.values():
        raise SpecError("the row has another number of cells than the header", hint="check commas")
    m, n, k = (_size(name, row[name]) for name in ("m", "n", "k"))
    number_format = _format(row[columns.dtype])
    text = row[columns.time]
    try:
        seconds = float(text) * columns.seconds
    except ValueError:
        seconds = float("nan")
    if not (isfinite(seconds) and seconds > 0):
        raise SpecError(f"{columns.time} is {text!r}", hint="a number above 0")
    _check_rate(device, number_format, (m, n, k), seconds, f"{text} ({columns.time})")
    return m, n, k, seconds


def _check_rate(
    device: Device, number_format: str, shape: tuple[int, int, int], seconds: float, shown: str
) -> None:
    """Check that a GEMM can have run on a device.

    Args:
        device: the device.
        number_format: a name of ``RECIPES``.
        shape: m, n and k.
        seconds: time of the GEMM [s].
        shown: the time as the file has it, for messages.

    Raises:
        SpecError: the device has no units for the format, or the GEMM is faster than its peak rate.
    """
    if RECIPES[number_format].rate not in device.flops_per_s:
        hint = f"it has {', '.join(device.flops_per_s)}"
        raise SpecError(f"{device.name} has no units for {number_format}", hint=hint)
    m, n, k = shape
    share = 2.0 * m * n * k / seconds / device.flops_per_s[RECIPES[number_format].rate]
    if share > FASTEST:
        problem = (
            f"{m} x {n} x {k} in {shown} is {share:,.3g} times the peak "
            f"{number_format} rate of {device.name}"
        )
        raise SpecError(problem, hint="check the unit of the time, and the device")


def _size(name: str, text: str) -> int:
    try:
        value = int(text)
    except ValueError:
        value = 0
    if not 1 <= value <= _MOST_SIZE:
        raise SpecError(f"{name} is {text!r}", hint="a whole number from 1")
    return value


def _format(text: str) -> str:
    """Return the name of a number format of ``RECIPES``.

    Raises:
        SpecError: there is no such format.
    """
    plain = text.strip().lower().removeprefix("torch.")
    found = DTYPES.get(plain, plain)
    if found not in RECIPES:
        hint = nearest(found, [*RECIPES, *DTYPES]) or ", ".join(RECIPES)
        raise SpecError(f"dtype cannot be {text!r}", hint=hint)
    return found


def _group(
    device: Device, key: tuple[str, str, str], points: list[tuple[float, ...]], models: list[str]
) -> MeasuredGemms:
    m, n, k, seconds = np.array(points, dtype=np.float64).T
    number_format, framework, version = key
    return MeasuredGemms(
        sheet=device,
        format=number_format,
        framework=framework,
        version=version,
        m=m,
        n=n,
        k=k,
        seconds=seconds,
        model=np.array(models),
    )


def _check_unit(found: Sequence[MeasuredGemms], name: str, where: str) -> None:
    """Check that times are of the order of the data sheet's roofline.

    Raises:
        SpecError: the median is above ``SLOWEST`` times the roofline or the time of a launch.
    """
    ratios = [part.seconds / np.maximum(part.naive(), PRIOR.launch_s) for part in found]
    ratio = float(np.median(np.concatenate(ratios)))
    if ratio > SLOWEST:
        problem = f"{name}: the median is {ratio:,.0f} times the data sheet's roofline"
        raise SpecError(problem, where=where, hint="check the unit of the time, and the device")
