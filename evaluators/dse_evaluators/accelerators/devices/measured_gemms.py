"""Reader of a user's measured GEMMs: CSV, or a trace of PyTorch's profiler."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dse.errors import SpecError, nearest
from dse_evaluators.accelerators.devices.devices import Device
from dse_evaluators.accelerators.devices.profiler_trace import is_trace, read_traced_gemms
from dse_evaluators.accelerators.devices.recipes import RECIPES
from dse_evaluators.accelerators.devices.roofline_fit import PRIOR, MeasuredGemms
from dse_evaluators.csv_files.csv_rows import (
    CsvRow,
    check_columns,
    find_time_column,
    open_csv,
    parse_positive,
    parse_whole,
)

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
    except OSError:
        pass  # the reader of CSV says why
    return _read_table(path, device)


def _read_table(path: Path, device: Device) -> list[MeasuredGemms]:
    table = open_csv(path, EXAMPLE)
    columns = _find_columns(table.names, path)
    groups = defaultdict[tuple[str, str, str], list[tuple[float, ...]]](list)
    models = defaultdict[tuple[str, str, str], list[str]](list)
    devices = dict[str, str]()
    for row in table.rows:
        try:
            point = _point(row, columns, device)
            number_format = _format(row.cells[columns.dtype])
        except SpecError as error:
            raise error.at(row.place) from error
        devices.setdefault(row.cells.get("device", ""), row.place)
        key = (number_format, row.cells.get("framework", ""), row.cells.get("version", ""))
        groups[key].append(point)
        models[key].append(row.cells.get("model", ""))
    _check_one_device(devices)
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


def _check_one_device(devices: Mapping[str, str]) -> None:
    """Check that all rows are of one device; ``devices`` has the place of the first row of each.

    Raises:
        SpecError: there are two devices.
    """
    if len(devices) > 1:
        first, second = list(devices)[:2]
        problem = f"there are products of {first!r} and of {second!r}"
        raise SpecError(problem, where=devices[second], hint="keep the rows of one device")


def _find_columns(names: Sequence[str], path: Path) -> _Columns:
    """Return the columns of the format and of the time.

    Raises:
        SpecError: a column is missing, or the time has no unit or stands twice.
    """
    dtype = next((name for name in ("dtype", "format") if name in names), "dtype")
    check_columns(names, ("m", "n", "k", dtype), path, EXAMPLE)
    return _Columns(dtype, *find_time_column(names, path))


def _point(row: CsvRow, columns: _Columns, device: Device) -> tuple[float, ...]:
    """Return m, n, k and the seconds of a row.

    Raises:
        SpecError: a cell is invalid, or the product is faster than the device.
    """
    m, n, k = (parse_whole(row, name, 1, _MOST_SIZE) for name in ("m", "n", "k"))
    seconds = parse_positive(row, columns.time) * columns.seconds
    shown = f"{row.cells[columns.time]} ({columns.time})"
    _check_rate(device, _format(row.cells[columns.dtype]), (m, n, k), seconds, shown)
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
