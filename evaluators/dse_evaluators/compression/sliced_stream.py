"""SliceGPT: a transformer whose residual stream keeps only the directions that vary most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dse.core.values import Floats
from dse.errors import EvaluationError
from dse_evaluators.compression.operators.dense import FP32
from dse_evaluators.compression.operators.inputs import moments
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.sliced import basis, crossing, reading, writing
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters

_KINDS = {"attention": ("qkv", "out"), "ffn": ("up", "down")}
_SEED = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidualBranch:
    """Parameter names of one attention or feed-forward network of a block, or of the LM head."""

    gain: str
    reads: str
    writes: str | None  # the head adds nothing
    crossing: str | None


def parts_of(parameters: Parameters) -> tuple[ResidualBranch, ...]:
    """Return a model's attentions and feed-forward networks in forward order, then the LM head.

    Raises:
        EvaluationError: the model has no such residual stream.
    """
    found = [
        ResidualBranch(
            gain=f"{name}.norm",
            reads=f"{name}.{reads}",
            writes=f"{name}.{writes}",
            crossing=f"{name}.crossing",
        )
        for block in range(len(parameters))
        for kind, (reads, writes) in _KINDS.items()
        if f"{(name := f'blocks.{block}.{kind}')}.{reads}" in parameters
    ]
    if not found or not {"embed", "norm", "head"} <= parameters.keys():
        raise EvaluationError(
            "the model has no residual stream to slice", hint="for example shakespeare-lm"
        )
    return (*found, ResidualBranch(gain="norm", reads="head", writes=None, crossing=None))


def slice_tables(
    parameters: Parameters,
    inputs: Mapping[str, Single],
    shares: Sequence[float],
    directions: str = "principal",
) -> dict[str, Record]:
    """Encode all weights of a transformer, with directions removed from its residual stream.

    The norms' gains are folded into the weight matrices that read the stream. What remains of a
    norm is the division by the root mean square, which a rotation preserves: with ``shares`` of 0
    the outputs do not change.

    Args:
        parameters: parameters of the uncut model.
        inputs: inputs of each weight matrix that reads the stream, on training examples, (n,
            width).
        shares: fractions to remove, one for each attention, feed-forward network and LM head, or
            one for all.
        directions: directions to keep: ``principal``, or, as baselines, ``largest`` (the elements
            of the stream with the largest mean square) or ``random`` (a random rotation).

    Source:
        Ashkboos et al., SliceGPT: Compress Large Language Models by Deleting Rows and Columns,
        2024, section 3.

    Raises:
        EvaluationError: a share is not from 0 to below 1, or their number is wrong.
    """
    parts = parts_of(parameters)
    given = shares if len(shares) != 1 else [shares[0]] * len(parts)
    if len(given) != len(parts) or not all(0 <= share < 1 for share in given):
        raise EvaluationError(
            f"shares of {list(shares)} do not cut a stream before {len(parts)} parts",
            hint="one for all, or one for each; each from 0 to below 1",
        )
    chosen = [
        _DIRECTIONS[directions](_normalize_stream(parameters, inputs, part), share)
        for part, share in zip(parts, given, strict=True)
    ]
    records = {"embed": reading(parameters["embed"], chosen[0])}
    for place, part in enumerate(parts):
        before = chosen[place]
        records[part.gain] = FP32(np.ones(before.shape[1], dtype=np.float32))
        table = parameters[part.reads] * parameters[part.gain]
        records[part.reads] = reading(table, before)
        if part.writes is not None and part.crossing is not None:
            after = chosen[place + 1]
            records[part.writes] = writing(parameters[part.writes], after)
            records[part.crossing] = crossing(before, after)
    return records


def stream_shares(parameters: Parameters, inputs: Mapping[str, Single]) -> list[Floats]:
    """Return the share of the stream's mean square outside its first k principal directions.

    Args:
        parameters: parameters of the uncut model.
        inputs: inputs of each weight matrix that reads the stream, on training examples.

    Returns:
        For each attention, feed-forward network and LM head, the shares for k from 0 to the width,
        (width + 1,), falling from 1 to 0.

    Raises:
        EvaluationError: the model has no such residual stream.
    """
    found = []
    for part in parts_of(parameters):
        power = np.linalg.eigvalsh(moments(_normalize_stream(parameters, inputs, part)))
        least = np.cumsum(np.maximum(power, 0.0))  # ascending
        found.append(np.append(0.0, least / least[-1])[::-1])
    return found


def restore_tables(records: Mapping[str, Record]) -> dict[str, Single]:
    """Decode the record of :func:`slice_tables` to weight arrays, by parameter name."""
    return {name: restore_tensor(record) for name, record in records.items()}


def _normalize_stream(
    parameters: Parameters, inputs: Mapping[str, Single], part: ResidualBranch
) -> Single:
    """Return the residual stream before a part, divided by its root mean square, (n, width)."""
    return inputs[part.reads] / parameters[part.gain]


def _count_kept_columns(signals: Single, share: float) -> int:
    return max(1, round(signals.shape[1] * (1 - share)))


def _principal(signals: Single, share: float) -> Single:
    return basis(signals, _count_kept_columns(signals, share))


def _largest(signals: Single, share: float) -> Single:
    power = (signals.astype(np.float64) ** 2).mean(axis=0)
    axes = np.argsort(-power, kind="stable")[: _count_kept_columns(signals, share)]
    return np.eye(signals.shape[1], dtype=np.float32)[:, axes]


def _random(signals: Single, share: float) -> Single:
    width = signals.shape[1]
    drawn = np.random.default_rng(_SEED).normal(size=(width, width))
    axes = np.linalg.qr(drawn)[0][:, : _count_kept_columns(signals, share)]
    return np.ascontiguousarray(axes, dtype=np.float32)


_DIRECTIONS: Mapping[str, Callable[[Single, float], Single]] = {
    "principal": _principal,
    "largest": _largest,
    "random": _random,
}
DIRECTIONS = tuple(_DIRECTIONS)
"""Valid methods to select the directions to keep."""
