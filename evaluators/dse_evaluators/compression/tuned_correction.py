"""Low-rank corrections of a quantized model's layers, trained to match the original outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from dse.core.values import Floats
from dse_evaluators.compression.operators import corrected
from dse_evaluators.compression.operators.dense import FP16, Dense
from dse_evaluators.compression.operators.products import check_rank, product
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.svd import whitened_factors
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads import character_network as network
from dse_evaluators.workloads.shakespeare import CHUNK, CONTEXT, Codes, plays
from dse_evaluators.workloads.taps import pass_through
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Parameters

_VERSION = 1
_SPREAD = 0.02  # initial standard deviation of the right factor; the left factor starts at 0

Pairs = dict[str, tuple[Tensor, Tensor]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Settings of the training of low-rank corrections, which identify its cached result."""

    text: str  # number format of the weights
    rank: int
    steps: int
    start: str  # ``nothing`` or ``outputs``
    rate: float
    batch: int = 16
    seed: int = 0


def tune_products(
    parameters: Parameters, inputs: Mapping[str, Single], tuning: Tuning
) -> dict[str, Record]:
    """Return each layer in ``inputs`` as quantized weights plus a trained low-rank product.

    The quantized weights do not change. The products start from zero (``nothing``), as in LoRA, or
    from the product that minimises the error of each layer's outputs (``outputs``); then they are
    trained together to match the uncompressed model's predictions on training text.

    Source:
        Chai et al., INT2.1: Towards Fine-Tunable Quantized Large Language Models with Error
        Correction through Low-Rank Adaptation, 2023, section 3; Hu et al., LoRA, 2022, section
        4.1 (the start).

    Raises:
        EvaluationError: the rank is negative, or exceeds the smaller side of a layer.
    """
    short = {name: Dense(tuning.text)(parameters[name]) for name in inputs}
    if tuning.rank == 0:
        return short
    check_rank(tuning.rank, min(side for name in inputs for side in parameters[name].shape))
    shapes: dict[str, tuple[int, ...]] = {}
    for name in short:
        outputs, given = parameters[name].shape
        shapes |= {f"{name}/left": (outputs, tuning.rank), f"{name}/right": (tuning.rank, given)}
    found = load_or_make(
        _name(parameters, tuning), shapes, lambda: _compute_products(parameters, inputs, tuning)
    )
    return {
        name: Record(
            kind=corrected.KIND,
            shape=record.shape,
            parts=(
                record,
                product(*_sides(found, name), record.shape, FP16),
            ),
        )
        for name, record in short.items()
    }


def _compute_products(
    parameters: Parameters, inputs: Mapping[str, Single], tuning: Tuning
) -> Arrays:
    given = {name: restore_tensor(Dense(tuning.text)(parameters[name])) for name in inputs}
    chance = torch.Generator().manual_seed(tuning.seed)
    pairs: Pairs = {}
    for name, short in given.items():
        if tuning.start == "outputs":
            lost = parameters[name].astype(np.float64) - short
            left, right = whitened_factors(lost, inputs[name], tuning.rank)
            pair = torch.tensor(left).float(), torch.tensor(right).float()
        else:
            rows, columns = short.shape
            drawn = torch.randn(tuning.rank, columns, generator=chance) * _SPREAD
            pair = torch.zeros(rows, tuning.rank), drawn
        pairs[name] = pair[0].requires_grad_(), pair[1].requires_grad_()
    _learn(parameters, given, pairs, tuning)
    arrays: Arrays = {}
    for name, (one, other) in pairs.items():
        arrays |= {f"{name}/left": one.detach().numpy(), f"{name}/right": other.detach().numpy()}
    return arrays


def _sides(found: Arrays, name: str) -> tuple[Floats, Floats]:
    """Return both low-rank factors of a layer's correction."""
    return found[f"{name}/left"].astype(np.float64), found[f"{name}/right"].astype(np.float64)


def _learn(
    parameters: Parameters, given: Mapping[str, Single], pairs: Pairs, tuning: Tuning
) -> None:
    """Train the low-rank products to match the uncompressed model's predictions."""
    whole = {name: torch.tensor(array) for name, array in parameters.items()}
    short = {name: torch.tensor(array) for name, array in given.items()}
    optimizer = torch.optim.Adam([side for pair in pairs.values() for side in pair], lr=tuning.rate)
    schedule = torch.optim.lr_scheduler.LinearLR(
        optimizer, start_factor=1.0, end_factor=0.05, total_iters=max(1, tuning.steps)
    )
    rng = np.random.default_rng(tuning.seed)
    with deterministic():
        for _ in range(tuning.steps):
            codes = torch.tensor(_draw_windows(rng, tuning.batch))
            with torch.no_grad():
                wanted = network.logits(whole, codes, pass_through()).log_softmax(-1)
            now = {name: short[name] + left @ right for name, (left, right) in pairs.items()}
            predictions = network.logits({**whole, **now}, codes, pass_through()).log_softmax(-1)
            loss = functional.kl_div(
                predictions.flatten(0, 1),
                wanted.flatten(0, 1),
                reduction="batchmean",
                log_target=True,
            )
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()


def _draw_windows(rng: np.random.Generator, count: int) -> Codes:
    """Draw random windows of training text as token ids, (count, CONTEXT)."""
    chunks = plays().train
    rows = rng.integers(len(chunks), size=count)
    starts = rng.integers(CHUNK - CONTEXT, size=count)
    return chunks[rows[:, None], starts[:, None] + np.arange(CONTEXT)]


def _name(parameters: Parameters, tuning: Tuning) -> str:
    key = hashlib.sha256(f"{_VERSION} {tuning} {torch.__version__}".encode())
    for name, array in parameters.items():
        key.update(name.encode() + array.tobytes())
    return f"tuned-correction-{key.hexdigest()[:16]}"
