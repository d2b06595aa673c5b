"""Program that retrains the language model of Shakespeare's plays and writes its weights.

``python benchmarks/train_character_lm.py`` takes five minutes on one core.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads.character_lm import CHECKPOINT
from dse_evaluators.workloads.shakespeare import CHUNK, CONTEXT, SYMBOLS, plays
from dse_evaluators.workloads.taps import pass_through
from dse_evaluators.workloads.torch_scope import deterministic

_NEURONS = 4 * network.WIDTH
_QUIET = 0.3  # initial scale of what is added to the stream, relative to a part's inputs


@dataclass(frozen=True, slots=True)
class CharacterLmTraining:
    """Training settings of the character-level language model."""

    steps: int = 2500
    batch: int = 16
    matrix_rate: float = 0.02
    rate: float = 3e-3
    weight_decay: float = 1e-2
    rising: int = 50  # warm-up steps, until the learning rates are at their maximum
    steady: float = 0.4  # share of the steps after which they decay linearly to zero
    seed: int = 0


def train_weights(training: CharacterLmTraining) -> dict[str, Tensor]:
    """Train weights from scratch on the training split of the plays.

    Source:
        Jordan et al., Muon: An Optimizer for Hidden Layers in Neural Networks, 2024 (matrices);
        Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019 (AdamW, all others).
    """
    chance = torch.Generator().manual_seed(training.seed)
    chunks = torch.tensor(plays().train)
    with deterministic():
        tensors = draw_weights(chance)
        optimizers = _optimizers(tensors, training)
        heights = [optimizer.param_groups[0]["lr"] for optimizer in optimizers]
        for step in range(training.steps):
            for optimizer, height in zip(optimizers, heights, strict=True):
                optimizer.param_groups[0]["lr"] = height * share_of_rate(step, training)
                optimizer.zero_grad()
            loss = _loss(tensors, _draw_windows(chunks, training.batch, chance))
            loss.backward()  # type: ignore[no-untyped-call]
            for optimizer in optimizers:
                optimizer.step()
            if step % 100 == 99:
                bits = loss.item() / math.log(2)
                print(f"step {step + 1}: {bits:.3f} bits", flush=True)
    return {name: tensor.detach() for name, tensor in tensors.items()}


def draw_weights(chance: torch.Generator) -> dict[str, Tensor]:
    """Draw random weights for which the residual stream is close to the embedding."""
    width = network.WIDTH
    shapes = {"embed": (len(SYMBOLS), width, 1.0)}
    for block in range(network.BLOCKS):
        for name, rows, columns, share in (
            ("attention.qkv", 3 * width, width, 1.0),
            ("attention.out", width, width, _QUIET),
            ("ffn.up", _NEURONS, width, 1.0),
            ("ffn.down", width, _NEURONS, _QUIET),
        ):
            shapes[f"blocks.{block}.{name}"] = (rows, columns, share * columns**-0.5)
    shapes["head"] = (len(SYMBOLS), width, _QUIET * width**-0.5)
    tensors = {}
    for name, (rows, columns, spread) in shapes.items():
        part, _, layer = name.rpartition(".")
        if layer in ("qkv", "up", "head"):
            norm = "norm" if layer == "head" else f"{part}.norm"
            tensors[norm] = torch.ones(width).requires_grad_()
        drawn = torch.randn(rows, columns, generator=chance) * spread
        tensors[name] = drawn.requires_grad_()
    return tensors


def share_of_rate(step: int, training: CharacterLmTraining) -> float:
    """Return the learning rate at a step as a fraction of its maximum.

    It warms up linearly, is constant, then decays linearly to zero.
    """
    done = step / training.steps
    falling = (1 - done) / (1 - training.steady)
    return min(1.0, (step + 1) / training.rising, falling)


def _optimizers(
    tensors: dict[str, Tensor], training: CharacterLmTraining
) -> Sequence[torch.optim.Optimizer]:
    hidden = [x for name, x in tensors.items() if x.ndim == 2 and name.startswith("blocks")]
    others = [x for name, x in tensors.items() if x.ndim == 1 or not name.startswith("blocks")]
    return (
        torch.optim.Muon(hidden, lr=training.matrix_rate, weight_decay=training.weight_decay),
        torch.optim.AdamW(others, lr=training.rate, betas=(0.9, 0.99), weight_decay=0.0),
    )


def _draw_windows(chunks: Tensor, count: int, chance: torch.Generator) -> Tensor:
    """Draw random windows of the text with the next character, (count, CONTEXT + 1)."""
    rows = torch.randint(len(chunks), (count,), generator=chance)
    starts = torch.randint(CHUNK - CONTEXT, (count,), generator=chance)
    return chunks[rows[:, None], starts[:, None] + torch.arange(CONTEXT + 1)]


def _loss(tensors: dict[str, Tensor], drawn: Tensor) -> Tensor:
    found = network.logits(tensors, drawn[:, :-1], pass_through())
    return functional.cross_entropy(found.flatten(0, 1), drawn[:, 1:].flatten())


def main() -> None:
    """Train the model, and write its weights in half precision."""
    arrays = {
        name: x.numpy().astype(np.float16)
        for name, x in train_weights(CharacterLmTraining()).items()
    }
    np.savez(CHECKPOINT, allow_pickle=False, **arrays)


if __name__ == "__main__":
    main()
