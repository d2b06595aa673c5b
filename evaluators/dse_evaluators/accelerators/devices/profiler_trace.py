"""Reader of GEMMs and the times of their kernels in a trace of PyTorch's profiler."""

from __future__ import annotations

import gzip
import json
import zlib
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dse.errors import SpecError

OPERANDS: Mapping[str, tuple[int, int]] = {
    "aten::mm": (0, 1),
    "aten::addmm": (1, 2),
    "aten::_scaled_mm": (0, 1),
    "aten::_int_mm": (0, 1),
}
"""Places of the two matrices among the inputs of an operator of PyTorch."""

TYPES: Mapping[str, str] = {
    "c10::BFloat16": "bf16",
    "c10::Half": "fp16",
    "float": "fp32",
    "c10::Float8_e4m3fn": "fp8",
    "signed char": "int8",
}
"""Number formats by the types of the matrices in a trace."""

LAUNCHES = ("cuda_runtime", "cuda_driver", "hip_runtime")
"""Categories of the calls that launch kernels."""

_OWN_KERNELS = "at::native::"
_TF32 = ("tf32", "s1688")
_MOST_BYTES = 1 << 30
_HINT = "torch.profiler.profile(record_shapes=True), exported by export_chrome_trace"


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedGemm:
    """GEMM of a trace: its position in the trace, shape, number format and kernel time [s]."""

    where: str
    m: int
    n: int
    k: int
    format: str
    seconds: float


def is_trace(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of JSON or of a compressed file."""
    return head[:2] == b"\x1f\x8b" or head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{"


def read_traced_gemms(path: Path) -> list[TracedGemm]:
    """Return the GEMMs of a trace, each with the time of the kernels that it launched.

    The time includes kernels of libraries, but not those of PyTorch itself, such as the copy of a
    bias. Batched products are left out.

    Args:
        path: trace as JSON, which may be compressed by gzip.

    Raises:
        SpecError: the file is not a trace of the profiler, has no shapes, or has no GEMM that ran
            on a device.

    Source:
        pytorch/kineto, README of the trace format: ``correlation`` joins a launch and its kernel.
    """
    events = read_events(path)
    kernels = defaultdict[Any, list[Mapping[str, Any]]](list)
    launches = defaultdict[Any, list[tuple[float, Any]]](list)
    for event in events:
        arguments = event.get("args")
        kind = str(event.get("cat", "")).lower()
        if not isinstance(arguments, Mapping) or "correlation" not in arguments:
            continue
        if kind == "kernel":
            kernels[arguments["correlation"]].append(event)
        elif kind in LAUNCHES:
            thread = (event.get("pid"), event.get("tid"))
            launches[thread].append((float(event["ts"]), arguments["correlation"]))
    for one in launches.values():
        one.sort(key=lambda launch: launch[0])
    products = [(at, event) for at, event in enumerate(events) if event.get("name") in OPERANDS]
    found = list(_gemms(products, launches, kernels, path))
    if not found:
        problem = (
            f"none of its {len(products)} GEMMs ran on a device"
            if products
            else ("there is no GEMM in it")
        )
        hint = f"a trace of {', '.join(OPERANDS)} with activities CPU and CUDA"
        raise SpecError(f"{path}: {problem}", hint=hint)
    return found


def read_events(path: Path) -> Sequence[Mapping[str, Any]]:
    """Return the events with a duration of a trace of PyTorch's profiler.

    Args:
        path: trace as JSON, which may be compressed by gzip.

    Raises:
        SpecError: the file is not a trace of the profiler.
    """
    try:
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = _decompress(path)
        found = json.loads(data)
    except (OSError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise SpecError(f"{path} cannot be read as a trace: {error}", hint=_HINT) from error
    events = found.get("traceEvents") if isinstance(found, Mapping) else None
    if not isinstance(events, list):
        raise SpecError(f"{path} has no 'traceEvents'", hint=_HINT)
    return [event for event in events if isinstance(event, Mapping) and event.get("ph") == "X"]


def _decompress(path: Path) -> bytes:
    """Return the contents of a file in gzip's format, of at most ``_MOST_BYTES``."""
    with gzip.open(path) as file:
        found = file.read(_MOST_BYTES + 1)
    if len(found) > _MOST_BYTES:
        raise SpecError(f"{path} is larger than 1 GiB", hint="a trace of fewer steps")
    return found


def _gemms(
    products: Sequence[tuple[int, Mapping[str, Any]]],
    launches: Mapping[Any, Sequence[tuple[float, Any]]],
    kernels: Mapping[Any, Sequence[Mapping[str, Any]]],
    path: Path,
) -> Iterator[TracedGemm]:
    """Yield the GEMMs whose kernels are in the trace."""
    starts = {thread: [start for start, _ in some] for thread, some in launches.items()}
    for at, event in products:
        where = f"{path}: event {at}"
        thread = (event.get("pid"), event.get("tid"))
        begin = float(event["ts"])
        first = bisect_right(starts.get(thread, ()), begin)
        last = bisect_right(starts.get(thread, ()), begin + float(event["dur"]))
        launched = [
            kernel
            for _, correlation in launches.get(thread, ())[first:last]
            for kernel in kernels.get(correlation, ())
            if _OWN_KERNELS not in str(kernel.get("name"))
        ]
        if launched:
            yield _gemm(event, launched, where)


def _gemm(
    event: Mapping[str, Any], launched: Sequence[Mapping[str, Any]], where: str
) -> TracedGemm:
    """Return the GEMM of an operator.

    Raises:
        SpecError: the trace has no shapes or types, or the type has no number format here.
    """
    arguments = event.get("args") or {}
    shapes, types = arguments.get("Input Dims"), arguments.get("Input type")
    if not shapes or not types:
        raise SpecError(f"{event['name']} has no shapes", where=where, hint=_HINT)
    left, right = OPERANDS[event["name"]]
    try:
        (m, k), (_, n) = shapes[left], shapes[right]
        word = types[left]
        micros = sum(float(kernel["dur"]) for kernel in launched)
    except (IndexError, KeyError, TypeError, ValueError):
        problem = f"{event['name']} has the shapes {shapes}"
        raise SpecError(problem, where=where, hint="two matrices") from None
    if word not in TYPES:
        hint = f"known: {', '.join(TYPES)}"
        raise SpecError(f"{event['name']} has the type {word!r}", where=where, hint=hint)
    number_format = TYPES[word]
    if number_format == "fp32" and any(
        mark in str(kernel.get("name")) for kernel in launched for mark in _TF32
    ):
        number_format = "tf32"
    return TracedGemm(where=where, m=m, n=n, k=k, format=number_format, seconds=micros * 1e-6)
