"""Models to train: units of layers in the order in which they run, and tables."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Layers that are gathered, run and summed as one.

    ``weights`` are those of all its ``experts``; ``operations`` are of a sample's forward pass,
    where a multiplication and an addition are two; ``outputs`` are the numbers that tensor
    parallelism sums for a sample, after the forward pass, the backward pass, or both. ``stack``
    names what is frozen as one.
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
    """A network with its tables.

    ``joins`` is the place of the unit that first needs what the tables gave, ``lookup_bytes`` what
    a sample reads from them; ``batch`` samples are in an iteration where nobody tells.
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
    """How the tables are usually laid out: a name of ``strategies.EMBEDDING``."""
    flops_share: float | None = None
    """Of the peak rate, what its products reach on A100; None: what the machine's do."""

    @property
    def stacks(self) -> tuple[str, ...]:
        """Stacks that can be frozen, in execution order; the tables are ``embedding``."""
        return tuple(dict.fromkeys(unit.stack for unit in self.units))

    @property
    def weights(self) -> float:
        """All weights, of all experts and tables."""
        return self.dense_weights + self.table_weights

    @property
    def dense_weights(self) -> float:
        """All weights but those of the tables."""
        return sum(unit.weights for unit in self.units)
