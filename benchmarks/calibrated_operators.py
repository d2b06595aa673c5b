"""Output errors of operators that use calibration inputs, on inputs that they have not seen.

    python benchmarks/calibrated_operators.py

The layers are those of `shakespeare-lm`, without its embedding. Half of each layer's calibration
inputs are seen by the operators; the error is measured on the other half, relative to the mean
square of the layer's outputs. Each line has the geometric mean over layers, of the error and of the
ratio to the first recipe of its group, and the bits a weight, of codes, scales and positions.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from dse_evaluators.compression.operators.inputs import output_error
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import workload_of

_MASKS = ("magnitude", "wanda", "sparsegpt")

GROUPS: Mapping[str, Sequence[str]] = {
    "half of the weights, fp16": [f"prune 0.5/{mask} > format fp16" for mask in _MASKS],
    "2:4, fp16": [f"n-of-m 2/4/{mask} > format fp16" for mask in _MASKS],
    "4:8, fp16": [f"n-of-m 4/8/{mask} > format fp16" for mask in _MASKS],
    "2:4, int8:channel": [
        "n-of-m 2/4/magnitude > masked int8:channel",
        "n-of-m 2/4/wanda > masked int8:channel",
        "n-of-m 2/4/sparsegpt > gptq int8:channel",
    ],
    "2:4, int4:group=32": [
        "n-of-m 2/4/magnitude > masked int4:group=32",
        "n-of-m 2/4/wanda > masked int4:group=32",
        "n-of-m 2/4/wanda > gptq int4:group=32",
        "n-of-m 2/4/sparsegpt > masked int4:group=32",
        "n-of-m 2/4/sparsegpt > gptq int4:group=32",
    ],
}
"""Recipes at equal bits; the first of a group is the plain operator."""


def measure_recipe(recipe: str, weight: Single, inputs: Single) -> tuple[float, float]:
    """Return the relative output error on the unseen half of the inputs, and bits a weight."""
    order = np.random.default_rng(0).permutation(len(inputs))
    seen, unseen = (inputs[half] for half in np.array_split(order, 2))
    record = compress_layer(recipe, weight, seen)
    error = output_error(weight, restore_tensor(record), unseen)
    scale = output_error(weight, np.zeros_like(weight), unseen)
    return error / scale, record.cost.stored / weight.size


def main() -> None:
    """Print a table for each group of recipes."""
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    workload = workload_of("shakespeare-lm")
    inputs = workload.calibration()
    layers = [name for name in workload.compressible if name in inputs]
    for title, recipes in GROUPS.items():
        print(f"\n{title} ({len(layers)} layers)")
        first = np.zeros(0)
        for recipe in recipes:
            found = np.array(
                [measure_recipe(recipe, workload.parameters[one], inputs[one]) for one in layers]
            )
            first = first if len(first) else found[:, 0]
            ratios = first / found[:, 0]
            print(
                f"{recipe:<48} {np.exp(np.log(found[:, 0]).mean()):.3g}"
                f"  {found[:, 1].mean():5.2f} bits  {np.exp(np.log(ratios).mean()):5.2f} times"
                f" ({ratios.min():.2f} to {ratios.max():.2f})"
            )


if __name__ == "__main__":
    main()
