"""Fit of latency, bandwidth and pipelining to measured collectives within a node."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import least_squares
from scipy.special import expit

from dse.core.values import Floats, Mask
from dse.errors import SpecError
from dse.protocols import CalibrationError, CalibrationResult
from dse_evaluators.clusters.collective_rows import MeasuredCollective, read_measured_collectives
from dse_evaluators.clusters.collectives import Collective, CollectiveConstants, seconds
from dse_evaluators.clusters.systems import System, system_of

LEAST_SIZES = 6
"""Smallest number of sizes of a series: one for each constant in either half."""

LEAST_SPAN = 64.0
"""Smallest ratio of the largest size to the smallest."""

WRONG_UNIT = 100.0
"""Median ratio of measured and shipped times from which on the unit must be wrong."""

_SMALL_BYTES, _LARGE_BYTES = 1 << 16, 1 << 26
"""A series needs a size up to the first, for latency, and one from the second, for bandwidth."""


def calibrate_collectives(path: Path, like: str) -> CalibrationResult:
    """Fit latency and bandwidth of a system's collectives within a node to measurements.

    Each series, the times of one collective among one number of ranks, is fitted by itself. Its
    error is measured on every second size, by constants fitted to the other sizes; the constants of
    the result are fitted to all sizes. A series that does not determine the constants is left out,
    and so is a series on whose held-out sizes the shipped constants are as good.

    Args:
        path: output of NCCL's tests, or a CSV file with the columns ``collective``, ``ranks``,
            ``size_bytes`` and a time such as ``time_us``.
        like: name of the system that was measured.

    Raises:
        SpecError: a row is invalid, or no series can be fitted.
    """
    system = system_of(like)
    rows = read_measured_collectives(path)
    fits, errors, refused = list[Mapping[str, Any]](), list[CalibrationError](), list[str]()
    for (collective, ranks, nodes), series in _group(rows, system).items():
        name = f"{collective}, {ranks} ranks"
        sizes, took_s = _medians(series)
        lacks = _missing(sizes, ranks, nodes)
        if lacks:
            refused.append(f"{name}: {lacks}")
            continue
        shipped = system.within(collective, ranks)
        _check_unit(series, collective, ranks, shipped)
        error = judge_held_out(collective, ranks, sizes, took_s, shipped)
        if error.mean >= error.naive_mean:
            refused.append(
                f"{name}: on held-out sizes the shipped constants are {error.naive_mean:.1%} off, "
                f"fitted ones {error.mean:.1%}"
            )
            continue
        errors.append(error)
        fits.append(_row(collective, ranks, sizes, took_s))
    if not fits:
        raise SpecError(
            f"{path.name} determines no collective of {like}: {'; '.join(refused)}",
            hint="all_reduce_perf -b 1K -e 1G -f 2 -g 8",
        )
    contents = {
        "like": system.name,
        "measurements": {
            "file": path.name,
            "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
            "rows": len(rows),
        },
        "fabric": {"collectives": fits},
    }
    return CalibrationResult(contents=contents, errors=tuple(errors), refused=tuple(refused))


def judge_held_out(
    collective: Collective,
    ranks: int,
    sizes: Floats,
    took_s: Floats,
    shipped: CollectiveConstants,
) -> CalibrationError:
    """Return the error of fitted constants on every second size, which the fit left out.

    Args:
        collective: the collective.
        ranks: number of ranks.
        sizes: ascending sizes of the array [B], (n,).
        took_s: measured times [s], (n,).
        shipped: the constants that the fitted ones are compared with.
    """
    kept = split_sizes(len(sizes))
    fitted = fit_constants(collective, ranks, sizes[kept], took_s[kept])
    held = sizes[~kept]
    off, naive = (
        np.abs(seconds(collective, held, ranks, one) / took_s[~kept] - 1.0)
        for one in (fitted, shipped)
    )
    return CalibrationError(
        group=f"{collective} of {ranks}",
        split="size",
        points=len(held),
        mean=float(off.mean()),
        median=float(np.median(off)),
        naive_mean=float(naive.mean()),
    )


def split_sizes(count: int) -> Mask:
    """Return the mask of the sizes to fit, (count,); the other sizes are held out."""
    return np.arange(count) % 2 == 0


def fit_constants(
    collective: Collective, ranks: int, sizes: Floats, took_s: Floats, *, piped: bool = True
) -> CollectiveConstants:
    """Return latency, bandwidth and pipelining that fit measured times of a collective.

    The errors of the times' logarithms are minimized; outliers weigh less.

    Args:
        collective: the collective.
        ranks: number of ranks.
        sizes: ascending sizes of the array [B], (n,).
        took_s: measured times [s], (n,).
        piped: whether pipelining is fitted, too; if not, the pipelining coefficient is 0.
    """

    def constants(logs: Floats) -> CollectiveConstants:
        return CollectiveConstants(
            latency_s=float(np.exp(logs[0])),
            bytes_per_s=float(np.exp(logs[1])),
            pipelining=float(expit(logs[2])) if piped else 0.0,
        )

    def residuals(logs: Floats) -> Floats:
        return np.log(seconds(collective, sizes, ranks, constants(logs)) / took_s)

    start = [np.log(took_s.min()), np.log(sizes[-1] / took_s[-1]), 0.0]
    found = least_squares(residuals, start[: 3 if piped else 2], loss="soft_l1", f_scale=0.1)
    return constants(found.x)


def _group(
    rows: Sequence[MeasuredCollective], system: System
) -> Mapping[tuple[Collective, int, int], list[MeasuredCollective]]:
    """Return the rows by collective, ranks and nodes; empty arrays are left out.

    Raises:
        SpecError: a row has more ranks than its nodes have devices.
    """
    groups = defaultdict[tuple[Collective, int, int], list[MeasuredCollective]](list)
    for row in rows:
        if row.ranks > row.nodes * system.node_devices:
            problem = f"there are {row.ranks} ranks on {row.nodes} node of {system.name}"
            hint = f"it has {system.node_devices} devices a node"
            raise SpecError(problem, where=row.where, hint=hint)
        if row.collective == "send_recv" and row.ranks != 2:
            continue
        if row.size_bytes:
            groups[row.collective, row.ranks, row.nodes].append(row)
    return groups


def _medians(series: Sequence[MeasuredCollective]) -> tuple[Floats, Floats]:
    """Return the ascending sizes [B] and the median time of each [s], (n,) both."""
    times = defaultdict[int, list[float]](list)
    for row in series:
        times[row.size_bytes].append(row.seconds)
    sizes = sorted(times)
    return np.array(sizes, dtype=np.float64), np.array([np.median(times[one]) for one in sizes])


def _missing(sizes: Floats, ranks: int, nodes: int) -> str:
    """Return why a series cannot be fitted and what to measure; an empty text if it can be."""
    if nodes > 1:
        return "constants between nodes are not fitted; the network is described by its adapters"
    if ranks < 2:
        return "a collective needs two ranks"
    if len(sizes) < LEAST_SIZES:
        return f"{len(sizes)} sizes, of at least {LEAST_SIZES}"
    if sizes[-1] / sizes[0] < LEAST_SPAN:
        return f"sizes span a factor of {sizes[-1] / sizes[0]:.3g}, of at least {LEAST_SPAN:.0f}"
    if sizes[0] > _SMALL_BYTES:
        return f"no size of at most {_SMALL_BYTES // 1024} KiB, which latency dominates"
    if sizes[-1] < _LARGE_BYTES:
        return f"no size of at least {_LARGE_BYTES >> 20} MiB, which bandwidth dominates"
    return ""


def _check_unit(
    series: Sequence[MeasuredCollective],
    collective: Collective,
    ranks: int,
    shipped: CollectiveConstants,
) -> None:
    """Check that measured times are of the order of the times by the shipped constants.

    Raises:
        SpecError: the median ratio is above ``WRONG_UNIT``, or below its inverse.
    """
    sizes = np.array([row.size_bytes for row in series], dtype=np.float64)
    ratios = np.array([row.seconds for row in series]) / seconds(collective, sizes, ranks, shipped)
    ratio = float(np.median(ratios))
    if not 1.0 / WRONG_UNIT < ratio < WRONG_UNIT:
        problem = f"the median time of {collective} is {ratio:.3g} times that of the shipped system"
        hint = "check the unit of the time, and the system"
        raise SpecError(problem, where=series[0].where, hint=hint)


def _row(collective: Collective, ranks: int, sizes: Floats, took_s: Floats) -> Mapping[str, Any]:
    """Return the constants fitted to all sizes, in the form of a system's YAML file."""
    found = fit_constants(collective, ranks, sizes, took_s)
    return {
        "collective": collective,
        "ranks": ranks,
        "latency": float(f"{found.latency_s:.4g}"),
        "bandwidth": float(f"{found.bytes_per_s:.4g}"),
        "pipelining": float(f"{found.pipelining:.4g}"),
        "smallest": int(sizes[0]),
        "largest": int(sizes[-1]),
    }
