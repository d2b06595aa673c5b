"""Transformers without some attention or feed-forward parts, or with exits after each block."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from dse.core.values import Floats
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.workload import Parameters

KINDS = ("attention", "ffn")
_RIDGE = 1e-3  # ridge relative to the mean power; damps directions that are rare in the data


def blocks_of(parameters: Parameters) -> int:
    """Return the number of transformer blocks of the model."""
    return len({name.split(".")[1] for name in parameters if name.startswith("blocks.")})


def without(parameters: Parameters, parts: Collection[str]) -> dict[str, Single]:
    """Return the model's parameters without those of some layers, such as ``blocks.1.ffn``.

    Source:
        Fan, Grave, Joulin, Reducing Transformer Depth on Demand with Structured Dropout, 2020,
        section 3.2 (the paper's model is trained with layer dropout; here it is not).
    """
    return {
        name: array
        for name, array in parameters.items()
        if not any(name.startswith(f"{part}.") for part in parts)
    }


def truncate_model(parameters: Parameters, blocks: int) -> dict[str, Single]:
    """Return the model with its LM head directly after the first ``blocks`` blocks."""
    later = range(blocks, blocks_of(parameters))
    return without(parameters, [f"blocks.{block}" for block in later])


def fitted_exit(
    parameters: Parameters, inputs: Mapping[str, Single], blocks: int
) -> dict[str, Single]:
    """Return the model cut after ``blocks`` blocks, its LM head fitted to the full model.

    Least squares on training examples predicts the full model's head inputs from the residual
    stream at the exit. The head's weights are multiplied by that linear map, so each exit needs
    its own head table.

    Source:
        Belrose et al., Eliciting Latent Predictions from Transformers with the Tuned Lens, 2023,
        section 2 (the paper has an affine map per layer; here it is linear, by least squares).
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
    """Result of early exit: logits of n characters, and the exit of each character, (n,)."""

    outputs: Single  # (n, k)
    exits: np.ndarray[tuple[int], np.dtype[np.int64]]  # (n,), counted from 0


def left_early(exits: list[Single], confidence: float) -> Left:
    """Return each character's logits at its first confident exit, else at the last exit.

    An exit is confident if its likeliest class has at least the probability ``confidence``.

    Source:
        Teerapittayanon, McDanel, Kung, BranchyNet, 2016, section 3 (the paper uses the entropy).
    """
    sure = np.stack([_highest(logits) >= confidence for logits in exits])  # (exits, n)
    sure[-1] = True
    first = sure.argmax(axis=0)
    outputs = np.stack(exits)[first, np.arange(len(first))]
    return Left(outputs=outputs, exits=first)


def _highest(logits: Single) -> Floats:
    """Return the probability of the likeliest class, (n,)."""
    return np.asarray(softmax(logits.astype(np.float64), axis=1).max(axis=1))
