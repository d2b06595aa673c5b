"""Models as sequences of units (groups of layers) in execution order, and embedding tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Group of layers whose weights are gathered (FSDP), used and reduced together.

    ``weights`` is the number of weights of all ``experts``; ``operations`` those of one sample's
    forward pass, where a multiply-add counts as two; ``outputs`` are the elements per sample that
    tensor parallelism all-reduces after the forward pass, the backward pass, or both. ``stack``
    names a group of units that are frozen together.
    """

    stack: str
    weights: float
    operations: float
    outputs: float
    sums_forward: bool = True
    sums_backward: bool = True
    experts: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TwoStreamsModel:
    """Description of a network for training or inference: layer units and embedding tables.

    ``joins`` is the index of the first unit (group of layers) that needs the looked-up embeddings,
    ``lookup_bytes`` the bytes that a sample reads from the tables; ``batch`` is the default number
    of samples per iteration; ``weight_bytes`` and ``table_weight_bytes`` are the bytes of one
    weight.
    """

    name: str
    units: tuple[Unit, ...]
    weight_bytes: int
    batch: float
    source: str
    joins: int = 0
    table_weights: float = 0.0
    table_weight_bytes: int = 2
    lookup_bytes: float = 0.0
    tables: str = "ddp"
    """Default layout of the tables: a name of ``strategies.EMBEDDING``."""
    flops_share: float | None = None
    """Share of the peak rate that the model's kernels reach on A100; ``None``: the machine's."""

    @property
    def stacks(self) -> tuple[str, ...]:
        """Names of the stacks (groups of units that can be frozen together), in execution order."""
        return tuple(dict.fromkeys(unit.stack for unit in self.units))

    @property
    def weights(self) -> float:
        """Number of weights of the model, including all experts and embedding tables."""
        return self.dense_weights + self.table_weights

    @property
    def dense_weights(self) -> float:
        """Number of weights of the model without its embedding tables."""
        return sum(unit.weights for unit in self.units)
