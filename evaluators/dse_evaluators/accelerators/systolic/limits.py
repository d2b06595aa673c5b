"""Feasibility constraints on systolic accelerators, and by how much designs violate them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dse.core.metric import Failure
from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.systolic.cost import Edges, edges
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings

POSITIVE = (
    "rows",
    "cols",
    "clock",
    "dram_bandwidth",
    "filter_keep",
    "batch",
    "accumulator_bits",
)
AT_LEAST = {"cores": 1.0, "accumulator_sram": 0.0, "vector_lanes": 0.0, "vector_ops": 0.0}
SHARES = ("filter_keep", "sparsity")


class _Limit(NamedTuple):
    broken: Mask  # (n,) or (1,)
    reason: str
    """Template, formatted with the row's ``has``, ``needs`` and their difference ``short``."""
    has: Floats
    needs: Floats


def infeasible(
    knobs: Settings, size: int, *, smallest_buffer_bytes: float, weighted: bool
) -> dict[int, Failure]:
    """Return the first violated constraint of each infeasible design, by design index.

    ``smallest_buffer_bytes`` is the minimum size of every buffer, for arrays of any width.
    ``weighted`` states that the right-hand operands of all layers are weights, not activations.
    """
    failures: dict[int, Failure] = {}
    need = edges(knobs, weighted=weighted)
    for limit in (*_ranges(knobs), *_sizes(knobs, need, smallest_buffer_bytes)):
        broken, has, needs = np.broadcast_arrays(
            np.broadcast_to(limit.broken, size), limit.has, limit.needs
        )
        for row in np.flatnonzero(broken).tolist():
            short = needs[row] - has[row]
            reason = limit.reason.format(has=has[row], needs=needs[row], short=short)
            failures.setdefault(row, Failure(kind="infeasible", reason=reason))
    return failures


def _ranges(knobs: Settings) -> Iterator[_Limit]:
    columns = knobs.columns()
    nothing = np.zeros(1)
    for name in POSITIVE:
        value = columns[name]
        yield _Limit(~(value > 0), f"{name} is {{has:g}}, not positive", value, nothing)
    for name in SHARES:
        value = columns[name]
        outside = ~((value >= 0) & (value <= 1))
        yield _Limit(outside, f"{name} is {{has:g}}, not between 0 and 1", value, nothing)
    for name, least in AT_LEAST.items():
        value, needs = columns[name], np.array([least])
        reason = f"{name} is {{has:g}}, less than {{needs:g}}"
        yield _Limit(~(value >= least), reason, value, needs)


def _sizes(knobs: Settings, need: Edges, smallest_buffer_bytes: float) -> Iterator[_Limit]:
    columns = knobs.columns()
    for name, bits in _buffers(need):
        needs = np.maximum(2.0 * bits / 8.0, smallest_buffer_bytes)
        reason = (
            f"{name} of {{has:g}} B is {{short:g}} B short of the {{needs:g}} B that it must hold: "
            "two cycles' words at the edge of the array"
        )
        has = columns[name]
        none = (has == 0.0) & (name == "accumulator_sram")
        yield _Limit(~(none | (has >= needs)), reason, *np.broadcast_arrays(has, needs))


def _buffers(need: Edges) -> tuple[tuple[str, Floats], ...]:
    return (
        ("ifmap_sram", need.ifmap_bits),
        ("filter_sram", need.filter_bits),
        ("ofmap_sram", need.ofmap_bits),
        ("accumulator_sram", need.accumulator_bits),
    )
