"""Work that a network's layers ask of a device, equal layers once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.devices.recipes import GemmRecipe
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.workloads.catalogue import table_of
from dse_evaluators.workloads.layers import Layer


@dataclass(frozen=True, slots=True, kw_only=True)
class Kernels:
    """The layers of a workload that differ, as columns of l rows; of one input each."""

    repeats: Floats  # (l, 1), how many layers are like it
    pixels: Floats  # (l, 1)
    chain: Floats  # (l, 1), weights of a filter
    filters: Floats  # (l, 1), of one group
    products: Floats  # (l, 1), side by side: groups and copies
    inputs: Floats  # (l, 1), elements of the left-hand sides, each once
    weighted: Mask  # (l, 1), False: the right-hand side is an activation of its input
    plain: Mask  # (l, 1), a product of two matrices and nothing else
    others: float
    """Learnt numbers that multiply nothing: embeddings, biases, norms."""

    def rights(self, batch: Floats) -> Floats:
        """Elements of the right-hand sides, (l, n)."""
        once = self.chain * self.filters * self.products
        return once * np.where(self.weighted, 1.0, batch)

    def results(self, batch: Floats) -> Floats:
        """Elements of the results, (l, n)."""
        return self.pixels * self.filters * self.products * batch

    def work(self, recipe: GemmRecipe, batch: Floats) -> KernelWork:
        """Return the work of each layer on a batch, (l, n)."""
        lefts, results = self.inputs * batch, self.results(batch)
        return KernelWork(
            flops=2.0 * self.chain * results,
            moved_bytes=recipe.operand_bytes * (lefts + self.rights(batch))
            + recipe.result_bytes * results,
            chain=np.broadcast_to(self.chain, results.shape),
            converted=lefts * recipe.converts,
        )

    def resident_bytes(self, recipe: GemmRecipe, batch: Floats) -> Floats:
        """Return the bytes that must lie in memory at once, (n,).

        All that was learnt, keys and values of all layers (right-hand sides that are
        activations), and the operands and results of the layer that has most of them.
        """
        kept = (recipe.operand_bytes * self.rights(batch) * self.repeats).sum(axis=0)
        passing = recipe.operand_bytes * self.inputs * batch
        passing = passing + recipe.result_bytes * self.results(batch)
        return recipe.operand_bytes * self.others + kept + passing.max(axis=0)

    def within(self, ranges: tuple[float, ...], batch: Floats) -> Mask:
        """True where a layer is a product of a shape between these ends, (l, n).

        The ends are the least and most rows, columns and depth.
        """
        rows = self.pixels * np.where(self.weighted, batch, 1.0)
        sides = (rows, self.filters, self.chain)
        inside = self.plain
        for side, least, most in zip(sides, ranges[::2], ranges[1::2], strict=True):
            inside = inside & (least <= side) & (side <= most)
        return np.broadcast_to(inside, rows.shape)


@lru_cache(maxsize=256)
def kernels_of(workload: str) -> Kernels:
    """The kernels of a workload.

    Raises:
        SpecError: there is no such workload.
    """
    table = table_of(workload)
    counted = Counter(_facts(layer) for layer in table.layers)
    facts = np.array(list(counted), dtype=float)  # (l, 7)
    pixels, chain, filters, products, inputs, weighted, plain = facts.T[:, :, None]
    return Kernels(
        repeats=np.array(list(counted.values()), dtype=float)[:, None],
        pixels=pixels,
        chain=chain,
        filters=filters,
        products=products,
        inputs=inputs,
        weighted=weighted > 0,
        plain=plain > 0,
        others=float(table.parameters - table.weights),
    )


def _facts(layer: Layer) -> tuple[int, ...]:
    pixels = layer.output_height * layer.output_width
    image = layer.height * layer.width * layer.channels
    # Strides may leave pixels of the image out.
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
