"""Layer table of a model: its matrix products, embedding lookups and other parameters."""

from __future__ import annotations

from dataclasses import dataclass

from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """Embedding tables of equal size, of each of which an input looks up ``picked`` rows."""

    name: str
    rows: int
    width: int
    tables: int = 1
    picked: int = 1
    """Number of rows that one input looks up in each table."""
    shared: bool = False
    """Whether a layer has the same weights (tied embedding), so that they are counted there."""

    @property
    def parameters(self) -> int:
        """Number of parameters of all tables; 0 if they are tied to a layer, which counts them."""
        return 0 if self.shared else self.rows * self.width * self.tables

    @property
    def read(self) -> int:
        """Number of elements that one input reads from all tables."""
        return self.picked * self.width * self.tables


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerTable:
    """Layers of a model in order, its embedding tables, and the number of its other parameters.

    ``others`` counts biases, gains of norms and learnt position embeddings: parameters that are
    only addends or elementwise factors, never the right-hand side of a matrix product.
    """

    layers: tuple[Layer, ...]
    lookups: tuple[Lookup, ...] = ()
    others: int = 0

    @property
    def macs(self) -> int:
        """Number of multiply-accumulates when all layers run once."""
        return sum(layer.macs for layer in self.layers)

    @property
    def weights(self) -> int:
        """Number of weights of all layers."""
        return sum(layer.weights for layer in self.layers)

    @property
    def parameters(self) -> int:
        """Number of all parameters: of layers, embedding tables and others."""
        return self.weights + self.others + sum(lookup.parameters for lookup in self.lookups)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLayers:
    """Layer table that was read from the file of a model.

    Attributes:
        table: the layer table.
        notes: sentences on what the table leaves out.
        stored: for each layer, the names of the stored tensors that its weights are made of.
        nodes: for each layer, the index of its operator in the graph; empty without a graph.
    """

    table: LayerTable
    notes: tuple[str, ...] = ()
    stored: tuple[frozenset[str], ...] = ()
    nodes: tuple[int, ...] = ()


def join_tables(*tables: LayerTable) -> LayerTable:
    """Concatenate layer tables into one; the counts of other parameters are added."""
    return LayerTable(
        layers=tuple(layer for table in tables for layer in table.layers),
        lookups=tuple(lookup for table in tables for lookup in table.lookups),
        others=sum(table.others for table in tables),
    )


def add_biases(*layers: Layer) -> LayerTable:
    """Return a layer table of these layers with one bias per filter."""
    return LayerTable(layers=layers, others=sum(layer.filters for layer in layers))
