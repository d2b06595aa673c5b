"""Transformers with fewer heads and neurons, whose tensors are actually smaller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats, Ints
from dse_evaluators.compression.operators.structured import strongest
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters

REPAIRS = ("refitted", "none")
_RIDGE = 1e-3  # ridge relative to the mean power; damps directions that are rare in the data


@dataclass(frozen=True, slots=True, kw_only=True)
class Width:
    """Width of one transformer block after cutting: number of heads, fraction of FFN neurons."""

    heads: int
    neurons: float


def narrow_blocks(
    parameters: Parameters,
    widths: Sequence[Width],
    inputs: Mapping[str, Single] | None,
    *,
    head: int,
) -> dict[str, Single]:
    """Return the parameters with only the heads and neurons of largest norms in each block.

    A head's score is the norm of its query, key and value rows and its output columns; a neuron's
    is the norm of its input row times that of its output column. An attention or feed-forward
    network without any is removed.

    Args:
        parameters: parameters of the uncut model.
        widths: remaining width of each block.
        inputs: inputs of each output matrix on training examples, (n, width), by which the cut
            matrix is refitted by least squares to the original outputs; None: no refit.
        head: width of a head.

    Raises:
        EvaluationError: a fraction is not in 0 to 1.

    Source:
        Michel, Levy, Neubig, Are Sixteen Heads Really Better than One?, 2019 (heads, there scored
        by gradients); Li et al., Pruning Filters for Efficient ConvNets, 2017, section 3.1 (norms).
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


def removed_shares(
    parameters: Parameters, block: int, width: Width, *, head: int
) -> tuple[float, float]:
    """Return the shares of squared scores that narrowing removes from heads, and from neurons.

    The scores are those by which :func:`narrow_blocks` keeps the strongest heads and neurons.

    Args:
        parameters: parameters of the uncut model.
        block: index of the block.
        width: remaining width of the block.
        head: width of a head.

    Raises:
        EvaluationError: a fraction is not in 0 to 1.
    """
    attention, ffn = f"blocks.{block}.attention", f"blocks.{block}.ffn"
    heads = (_head_table(parameters, attention).astype(np.float64) ** 2).sum(axis=1)
    neurons = _neuron_scores(parameters, ffn).astype(np.float64) ** 2
    stays = _heads(parameters, attention, width.heads, head)
    kept = _neurons(parameters, ffn, width.neurons)
    return (
        float(1 - heads[stays].sum() / heads.sum()),
        float(1 - neurons[kept].sum() / neurons.sum()),
    )


def _heads(parameters: Parameters, name: str, count: int, head: int) -> Ints:
    """Return the indices of the columns of the kept attention heads, in ascending order."""
    table = _head_table(parameters, name)
    if not count:
        return np.zeros(0, dtype=np.intp)
    return np.flatnonzero(strongest(table, count / (len(table) // head), group=head))


def _head_table(parameters: Parameters, name: str) -> Single:
    """Return the weights of each column of an attention part, (columns, weights)."""
    read, out = parameters[f"{name}.qkv"], parameters[f"{name}.out"]
    return np.hstack([*np.split(read, 3), out.T]).astype(np.float32)


def _neurons(parameters: Parameters, name: str, share: float) -> Ints:
    """Return the indices of the kept neurons, in ascending order."""
    if not share:
        return np.zeros(0, dtype=np.intp)
    scores = _neuron_scores(parameters, name)
    return np.flatnonzero(strongest(scores[:, None], share))


def _neuron_scores(parameters: Parameters, name: str) -> Single:
    """Return the score of each neuron, (neurons,): norm of its input times that of its output."""
    rows = np.linalg.norm(parameters[f"{name}.up"], axis=1)
    columns = np.linalg.norm(parameters[f"{name}.down"], axis=0)
    return (rows * columns).astype(np.float32)


def _cut(
    found: dict[str, Single],
    into: str,
    out: str,
    rows: Ints,
    columns: Ints,
    inputs: Mapping[str, Single] | None,
) -> None:
    """Replace the input matrix of an attention or FFN part by its kept rows.

    Its output matrix is replaced by the kept columns.
    """
    whole = found[out]
    found[into] = np.ascontiguousarray(found[into][rows])
    found[out] = np.ascontiguousarray(whole[:, columns])
    if inputs is not None and 0 < columns.size < whole.shape[1]:
        found[out] = _refit_columns(whole, columns, inputs[out].astype(np.float64))


def _refit_columns(whole: Single, columns: Ints, seen: Floats) -> Single:
    """Fit a matrix on the kept columns, by least squares, to the outputs of the full matrix."""
    some = seen[:, columns]
    products = some.T @ some
    ridge = _RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    onto = np.linalg.solve(
        products + ridge, some.T @ seen + ridge @ np.eye(whole.shape[1])[columns]
    )
    return (whole.astype(np.float64) @ onto.T).astype(np.float32)
