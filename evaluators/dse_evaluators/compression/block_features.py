"""Features of cut transformers: what a design removes from each block, for sums over blocks."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dse.core.batch import Batch
from dse.core.values import Floats
from dse_evaluators.compression.sliced_stream import stream_shares
from dse_evaluators.compression.width_narrowed import Width, removed_shares
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters


def group_blocks(names: Sequence[str], places: int) -> tuple[frozenset[str], ...]:
    """Return the names of the inputs that each block of a model may read.

    Blocks may be the halves of transformer blocks. An input is either a list with one element per
    place, such as ``heads[2]``, or one value for all places, ``heads``; hence each block has both
    names.

    Args:
        names: inputs with one value per place, such as ``heads``; the blocks follow in this order.
        places: number of places, such as blocks.
    """
    return tuple(frozenset({f"{name}[{at}]", name}) for name in names for at in range(places))


def dropped(depths: Mapping[str, int], batch: Batch) -> Floats:
    """Return 1 for each residual branch that n designs drop, else 0.

    Args:
        depths: number of branches by kind, such as attention.
        batch: n designs.

    Returns:
        Array of shape (n, branches), first all branches of the first kind.
    """
    return 1.0 - np.hstack([_columns(batch, kind, depth) for kind, depth in depths.items()])


def removed_fractions(blocks: int, heads: int, batch: Batch) -> Floats:
    """Return the fractions of heads, then of neurons, that n designs remove, (n, 2 blocks).

    Args:
        blocks: number of blocks.
        heads: number of heads of an uncut block.
        batch: designs, with the inputs ``heads`` and ``neurons``.
    """
    return 1.0 - np.hstack(
        [_columns(batch, "heads", blocks) / heads, _columns(batch, "neurons", blocks)]
    )


def removed_weights(parameters: Parameters, blocks: int, head: int, batch: Batch) -> Floats:
    """Return the weight that n designs remove from heads, then from neurons, (n, 2 blocks).

    The weight of a head or a neuron is its squared score, by which the strongest ones are kept, as
    a fraction of the sum over its block.

    Args:
        parameters: parameters of the uncut model.
        blocks: number of blocks.
        head: width of a head.
        batch: designs, with the inputs ``heads`` and ``neurons``.
    """
    tables = [_columns(batch, name, blocks) for name in ("heads", "neurons")]
    found = np.zeros((len(batch), 2 * blocks))
    for kind, table in enumerate(tables):
        for block in range(blocks):

            def share(value: float, kind: int = kind, block: int = block) -> float:
                heads, neurons = (value, 1.0) if kind == 0 else (0.0, value)
                width = Width(heads=round(heads), neurons=neurons)
                return removed_shares(parameters, block, width, head=head)[kind]

            found[:, kind * blocks + block] = _of_each(table[:, block], share)
    return found


def removed_stream(
    parameters: Parameters, inputs: Mapping[str, Single], name: str, places: int, batch: Batch
) -> Floats:
    """Return the share of the residual stream's mean square that n designs slice off.

    The share is computed before each attention, feed-forward network and LM head, for the removal
    of the principal directions with the least variance.

    Args:
        parameters: parameters of the uncut model.
        inputs: inputs of each weight matrix that reads the stream, on training examples.
        name: input with the fraction of directions to remove.
        places: number of attentions and feed-forward networks, plus one for the LM head.
        batch: n designs.

    Returns:
        Array of shape (n, places).
    """
    tails = stream_shares(parameters, inputs)
    fractions = _columns(batch, name, places)
    found = np.zeros_like(fractions)
    for place, tail in enumerate(tails):
        kept = np.maximum(1, np.round((len(tail) - 1) * (1 - fractions[:, place]))).astype(int)
        found[:, place] = tail[kept]
    return found


def _columns(batch: Batch, name: str, places: int) -> Floats:
    """Return an input at each place, (n, places): list elements, or one value repeated."""
    names = [name if name in batch.names else f"{name}[{at}]" for at in range(places)]
    return np.column_stack([batch[one].astype(float) for one in names])


def _of_each(values: Floats, share: Callable[[float], float]) -> Floats:
    """Return ``share`` of each value, (n,); it is computed once for equal values."""
    seen, place = np.unique(values, return_inverse=True)
    return np.array([share(value) for value in seen.tolist()])[place.reshape(-1)]
