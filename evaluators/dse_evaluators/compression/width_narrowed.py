"""A transformer with fewer heads and neurons: tensors that are really smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.compression.operators.structured import strongest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters

REPAIRS = ("refitted", "none")
_RIDGE = 1e-3  # of the mean power: what was hardly seen is not trusted


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Remaining width of one block: a number of heads, and a share of the neurons."""

    heads: int
    neurons: float


def narrow_blocks(
    parameters: Parameters,
    widths: Sequence[Width],
    inputs: Mapping[str, Single] | None,
    *,
    head: int,
) -> dict[str, Single]:
    """Return the parameters with the heads and neurons of largest weight in each block.

    A head weighs the norm of all that it reads with and of what it is read by; a neuron its row
    by its column. A part of which nothing stays is left out.

    Args:
        parameters: of the whole model.
        widths: one for each block.
        inputs: of the tables that bring the parts together, (n, width), on training examples: each
            is fitted anew, by least squares, to what the whole one said; none: it is only cut.
        head: numbers of a head.

    Raises:
        EvaluationError: a share is not in 0 to 1.

    Source:
        Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, 2019 (heads; there by
        gradients); Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1 (norms).
    """
    found = dict(parameters)
    for block, width in enumerate(widths):
        attention, ffn = f"blocks.{block}.attention", f"blocks.{block}.ffn"
        stays = _heads(parameters, attention, width.heads, head)
        thirds = len(parameters[f"{attention}.qkv"]) // 3 * np.arange(3)[:, None]
        _cut(found, f"{attention}.qkv", f"{attention}.out", (thirds + stays).ravel(), stays, inputs)
        kept = _neurons(parameters, ffn, width.neurons)
        _cut(found, f"{ffn}.up", f"{ffn}.down", kept, kept, inputs)
        for part, left in ((attention, stays), (ffn, kept)):
            if not left.size:
                found = {n: array for n, array in found.items() if not n.startswith(f"{part}.")}
    return found


def _heads(parameters: Parameters, name: str, count: int, head: int) -> Ints:
    """The columns of the heads that stay, in order."""
    read, out = parameters[f"{name}.qkv"], parameters[f"{name}.out"]
    heads = out.shape[1] // head
    table = np.hstack([*np.split(read, 3), out.T]).astype(np.float32)
    if not count:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(strongest(table, count / heads, group=head))


def _neurons(parameters: Parameters, name: str, share: float) -> Ints:
    """The neurons that stay, in order."""
    if not share:
        return np.zeros(0, dtype=np.intp)
    rows = np.linalg.norm(parameters[f"{name}.up"], axis=1)
    columns = np.linalg.norm(parameters[f"{name}.down"], axis=0)
    return np.flatnonzero(strongest((rows * columns)[:, None].astype(np.float32), share))


def _cut(
    found: dict[str, Single],
    into: str,
    out: str,
    rows: Ints,
    columns: Ints,
    inputs: Mapping[str, Single] | None,
) -> None:
    """Narrow the table that leads into a part and the one that leads out of it."""
    whole = found[out]
    found[into] = np.ascontiguousarray(found[into][rows])
    found[out] = np.ascontiguousarray(whole[:, columns])
    if inputs is not None and 0 < columns.size < whole.shape[1]:
        found[out] = _refit_columns(whole, columns, inputs[out].astype(np.float64))


def _refit_columns(whole: Single, columns: Ints, seen: Floats) -> Single:
    """Fit a table on these columns so that its outputs are nearest to the complete one's."""
    some = seen[:, columns]
    products = some.T @ some
    ridge = _RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    onto = np.linalg.solve(
        products + ridge, some.T @ seen + ridge @ np.eye(whole.shape[1])[columns]
    )
    return (whole.astype(np.float64) @ onto.T).astype(np.float32)
