"""A transformer without some of its parts, and one that may stop after any block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from dse.core.values import Floats
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters

KINDS = ("attention", "ffn")
_RIDGE = 1e-3  # of the mean power: directions that were hardly seen are not trusted


def blocks_of(parameters: Parameters) -> int:
    """Return the number of blocks of the model."""
    return len({name.split(".")[1] for name in parameters if name.startswith("blocks.")})


def without(parameters: Parameters, parts: Collection[str]) -> dict[str, Single]:
    """The parameters but those of these parts, such as ``blocks.1.ffn``.

    Source:
        Fan, Grave, Joulin, Reducing Transformer Depth on Demand with Structured Dropout, 2020,
        section 3.2 (which leave a trained model whole; this one was not trained for it).
    """
    return {
        name: array
        for name, array in parameters.items()
        if not any(name.startswith(f"{part}.") for part in parts)
    }


def truncate_model(parameters: Parameters, blocks: int) -> dict[str, Single]:
    """Return the model with the head after ``blocks`` blocks."""
    later = range(blocks, blocks_of(parameters))
    return without(parameters, [f"blocks.{block}" for block in later])


def fitted_exit(
    parameters: Parameters, inputs: Mapping[str, Single], blocks: int
) -> dict[str, Single]:
    """The model that stops after so many blocks, its head fitted to what comes at the end.

    The head's inputs are told from the stream at the exit by least squares on training examples,
    and the head is multiplied by that: one table more for each exit.

    Source:
        Belrose et al., Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023,
        section 2 (an affine map for each layer; here it is linear, and by least squares).
    """
    cut = truncate_model(parameters, blocks)
    if blocks == blocks_of(parameters):
        return cut
    reader = f"blocks.{blocks}.attention"
    stream = (inputs[f"{reader}.qkv"] / parameters[f"{reader}.norm"]).astype(np.float64)
    products = stream.T @ stream
    ridge = _RIDGE * np.trace(products) / len(products) * np.eye(len(products))
    onto = np.linalg.solve(products + ridge, stream.T @ inputs["head"].astype(np.float64))
    return {
        **cut,
        "norm": np.ones_like(parameters["norm"]),
        "head": (parameters["head"] @ onto.T).astype(np.float32),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Outputs of each character, and the exit at which its computation stopped."""

    outputs: Single  # (n, k)
    exits: np.ndarray[tuple[int], np.dtype[np.int64]]  # (n,), from 0


def left_early(exits: list[Single], confidence: float) -> Left:
    """The first exit at which the likeliest class has this probability, else the last one.

    Source:
        Teerapittayanon, McDanel, Kung, BranchyNet, 2016, section 3 (which asks the entropy).
    """
    sure = np.stack([_highest(logits) >= confidence for logits in exits])  # (exits, n)
    sure[-1] = True
    first = sure.argmax(axis=0)
    outputs = np.stack(exits)[first, np.arange(len(first))]
    return Left(outputs=outputs, exits=first)


def _highest(logits: Single) -> Floats:
    """The probability of the likeliest class, (n,)."""
    return np.asarray(softmax(logits.astype(np.float64), axis=1).max(axis=1))
