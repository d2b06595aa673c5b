"""Problems over seven layers with five widths each: bits of all layers against a measured loss."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metrics
from dse.core.parameter import Choice
from dse.core.separable import Separable
from dse.core.space import DesignSpace
from dse.core.values import Floats
from dse.optimizers.separable.front_of_sums import front_of_sums
from dse.testing.known import Known, problem_of

LAYERS = [f"bits[{layer}]" for layer in range(7)]
WIDTHS = (2, 3, 4, 6, 8)
SPACE = DesignSpace(parameters=tuple(Choice(name=name, values=WIDTHS) for name in LAYERS))
WEIGHTS = np.array([3.0, 1.0, 1.0, 2.0, 0.5, 2.5, 1.5])
SENSITIVITIES = np.array([0.2, 4.0, 0.7, 1.0, 6.0, 0.3, 2.0])

Loss = Callable[[Floats], Floats]
"""Function from the layers' noises times sensitivities, (n, layers), to the losses, (n,)."""


def noises(bits: Floats) -> Floats:
    """Return the quantization noise of each layer, relative to that of two bits."""
    return np.asarray(16.0 * 4.0**-bits)


def quantized(loss: Loss, *, declared: bool = True, seed: int = 0) -> Known:
    """Return the problem: modelled size and noise, and a measured loss of the layers' noises.

    The front is that of the sum of the noises times the sensitivities.
    """

    def truth(batch: Batch) -> Metrics:
        bits = np.column_stack([batch[name].astype(float) for name in LAYERS])
        noise = noises(bits)
        columns = {"size": bits @ WEIGHTS, "noise": noise.sum(axis=1)}
        return Metrics(columns={**columns, "loss": loss(noise * SENSITIVITIES)})

    kinds = {"size": "modelled", "noise": "modelled", "loss": "measured"}
    goals = {"size": "minimize", "loss": "minimize"}
    problem = problem_of(SPACE, kinds, goals, truth)  # type: ignore[arg-type]
    parts = Separable(groups=tuple(frozenset({name}) for name in LAYERS), by="noise")
    if declared:
        source = replace(problem.sources["loss"], separable=parts)
        problem = replace(problem, sources={**problem.sources, "loss": source})
    values = np.array(WIDTHS, dtype=float)
    front = front_of_sums(
        [
            np.column_stack([weight * values, own * noises(values)])
            for weight, own in zip(WEIGHTS, SENSITIVITIES, strict=True)
        ]
    ).sums
    return Known(
        problem=replace(problem, seed=seed),
        truth=truth,
        front=front,
        reference=front.max(axis=0) * 1.1,
    )


def total(parts: Floats) -> Floats:
    """Return the sum of the parts."""
    return np.asarray(parts.sum(axis=1))
