"""A model as the layers that multiply, with what it learnt that multiplies nothing."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Equal tables of learnt rows, of which an input picks some: embeddings."""

    name: str
    rows: int
    width: int
    tables: int = 1
    picked: int = 1
    """Rows that one input picks from each table."""
    shared: bool = False
    """True if a layer multiplies by the same numbers, and they are counted there."""

    @property
    def parameters(self) -> int:
        """Numbers in all tables that no layer counts."""
        return 0 if self.shared else self.rows * self.width * self.tables

    @property
    def read(self) -> int:
        """Numbers that one input picks in all tables."""
        return self.picked * self.width * self.tables


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTable:
    """The layers of a model in order, its tables, and its other learnt numbers.

    ``others`` are biases, gains of norms and learnt positions: added or scaled by, never the
    right-hand side of a product.
    """

    layers: tuple[Layer, ...]
    lookups: tuple[Lookup, ...] = ()
    others: int = 0

    @property
    def macs(self) -> int:
        """Multiply-accumulates for one input."""
        return sum(layer.macs for layer in self.layers)

    @property
    def weights(self) -> int:
        """Learnt numbers that multiply."""
        return sum(layer.weights for layer in self.layers)

    @property
    def parameters(self) -> int:
        """All learnt numbers."""
        return self.weights + self.others + sum(lookup.parameters for lookup in self.lookups)


def join_tables(*tables: LayerTable) -> LayerTable:
    """Join tables, one after the other."""
    return LayerTable(
        layers=tuple(layer for table in tables for layer in table.layers),
        lookups=tuple(lookup for table in tables for lookup in table.lookups),
        others=sum(table.others for table in tables),
    )


def add_biases(*layers: Layer) -> LayerTable:
    """Return these layers with a bias for every filter."""
    return LayerTable(layers=layers, others=sum(layer.filters for layer in layers))
