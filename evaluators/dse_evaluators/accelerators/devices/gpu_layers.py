"""Operations and bytes of a network's layers on a device, with equal layers stored once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.devices.recipes import GemmRecipe
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.layers import Layer

_Facts = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """Distinct layers of a workload (first axis) as GEMMs, with sizes for one network input."""

    repeats: Floats  # (l, 1), number of equal layers
    pixels: Floats  # (l, 1), rows of the result
    chain: Floats  # (l, 1), weights of a filter: the depth of a dot product
    filters: Floats  # (l, 1), of one group
    products: Floats  # (l, 1), independent GEMMs: groups times copies
    inputs: Floats  # (l, 1), elements of the left-hand operands, each once
    weighted: Mask  # (l, 1), False: the right-hand operand is an activation
    plain: Mask  # (l, 1), a single GEMM without convolution windows
    others: float
    """Parameters outside GEMMs: embeddings, biases, norms."""

    def rights(self, batch: Floats) -> Floats:
        """Return the elements of l layers' right-hand operands for n batch sizes, (l, n)."""
        once = self.chain * self.filters * self.products
        return once * np.where(self.weighted, 1.0, batch)

    def results(self, batch: Floats) -> Floats:
        """Return the elements of the l layers' GEMM results for n batch sizes, shape (l, n)."""
        return self.pixels * self.filters * self.products * batch

    def work(self, recipe: GemmRecipe, batch: Floats) -> KernelWork:
        """Return operations and bytes moved of l layers for n batch sizes, each (l, n)."""
        lefts, results = self.inputs * batch, self.results(batch)
        return KernelWork(
            flops=2.0 * self.chain * results,
            moved_bytes=recipe.operand_bytes * (lefts + self.rights(batch))
            + recipe.result_bytes * results,
            chain=np.broadcast_to(self.chain, results.shape),
            converted=lefts * recipe.converts,
        )

    def resident_bytes(self, recipe: GemmRecipe, batch: Floats) -> Floats:
        """Return the bytes that must be in memory at once for n batch sizes, (n,).

        The bytes are those of all parameters, the right-hand operands that are activations (keys
        and values) of all layers, and the inputs and results of the layer for which they are
        largest.
        """
        kept = (recipe.operand_bytes * self.rights(batch) * self.repeats).sum(axis=0)
        passing = recipe.operand_bytes * self.inputs * batch
        passing = passing + recipe.result_bytes * self.results(batch)
        return recipe.operand_bytes * self.others + kept + passing.max(axis=0)

    def within(self, ranges: tuple[float, ...], batch: Floats) -> Mask:
        """Return whether each layer is one GEMM within the size ranges of a fit, shape (l, n).

        ``ranges`` are the least and most rows, columns and depth of the GEMMs that the power or
        time model was fitted on.
        """
        rows = self.pixels * np.where(self.weighted, batch, 1.0)
        sides = (rows, self.filters, self.chain)
        inside = self.plain
        for side, least, most in zip(sides, ranges[::2], ranges[1::2], strict=True):
            inside = inside & (least <= side) & (side <= most)
        return np.broadcast_to(inside, rows.shape)


@lru_cache(maxsize=256)
def kernels_of(workload: str) -> Kernels:
    """Return the distinct layers of a workload with their GEMM sizes.

    Raises:
        SpecError: there is no such workload.
    """
    return kernels_of_table(table_of(workload))


def kernels_of_table(table: LayerTable) -> Kernels:
    """Return the distinct layers of a layer table with their GEMM sizes.

    Args:
        table: the layer table.
    """
    counted = Counter(_facts(layer) for layer in table.layers)
    return _build_kernels(list(counted), list(counted.values()), table.parameters - table.weights)


def kernels_in_order(layers: Sequence[Layer]) -> Kernels:
    """Return all layers with their GEMM sizes in network order, without further parameters.

    Args:
        layers: the layers of a network.
    """
    return _build_kernels([_facts(layer) for layer in layers], [1] * len(layers), 0)


def _build_kernels(rows: Sequence[_Facts], repeats: Sequence[int], others: int) -> Kernels:
    facts = np.array(rows, dtype=float)  # (l, 7)
    pixels, chain, filters, products, inputs, weighted, plain = facts.T[:, :, None]
    return Kernels(
        repeats=np.array(repeats, dtype=float)[:, None],
        pixels=pixels,
        chain=chain,
        filters=filters,
        products=products,
        inputs=inputs,
        weighted=weighted > 0,
        plain=plain > 0,
        others=float(others),
    )


def _facts(layer: Layer) -> _Facts:
    pixels = layer.output_height * layer.output_width
    image = layer.height * layer.width * layer.channels
    # With a large stride, some pixels of the image are not read.
    seen = min(image, pixels * layer.weights_per_filter * layer.groups)
    products = layer.groups * layer.copies
    window = layer.filter_height * layer.filter_width
    return (
        pixels,
        layer.weights_per_filter,
        layer.filters // layer.groups,
        products,
        seen * layer.copies,
        layer.weighted,
        window == 1 and products == 1,
    )
