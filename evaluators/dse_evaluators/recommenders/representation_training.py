"""Training of a recommender whose users and items have a table, hashed vectors, or both."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn import functional

from dse_evaluators.formats.arrays import Single
from dse_evaluators.recommenders.interactions import LARGE, Interactions
from dse_evaluators.recommenders.representations import Representation, hash_values
from dse_evaluators.workloads.dlrm_network import scores
from dse_evaluators.workloads.movielens import Ratings
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.weight_cache import load_or_make

_BOTTOM, _TOP = 64, (128, 64)
"""Hidden widths of the MLPs below and above the products, those of `movielens-dlrm`."""

_LEAST_STEPS = 16
"""Least steps of an epoch: few ratings are trained on in smaller batches."""

_BLOCK = 4096  # vectors that are computed at once
_SINGLE = 4  # bytes

Weights = dict[str, Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class RepresentationTraining:
    """Settings of the training of a recommender, as of the workload `movielens-dlrm`."""

    epochs: int = 8
    seed: int = 0
    batch: int = 512
    peak_rate: float = 3e-3
    table_decay: float = 10.0
    hash_decay: float = 1.0
    weight_decay: float = 1e-2
    start: float = 0.05  # standard deviation of the numbers of a vector


def load_scores(
    data: Interactions, form: Representation, training: RepresentationTraining
) -> Mapping[str, Single]:
    """Return the log odds of the ratings of the splits ``search`` and ``test``, (n,).

    They come from the cache, or from training and prediction.
    """
    words = f"1 {form} {training} {data.digest} {torch.__version__}"
    name = f"representation-{hashlib.sha256(words.encode()).hexdigest()[:16]}"
    shapes = {"search": (len(data.search.liked),), "test": (len(data.test.liked),)}
    return load_or_make(name, shapes, lambda: _score(data, form, training))


def count_model_bytes(rows: Mapping[str, int], features: int, form: Representation) -> int:
    """Return the bytes of all weights and hash functions, in single precision."""
    large = sum(form.count_bytes(count) for name, count in rows.items() if name in LARGE)
    small = sum(count * form.length for name, count in rows.items() if name not in LARGE)
    dense = sum(out * (inputs + 1) for _, out, inputs in _dense_shapes(rows, features, form))
    return large + _SINGLE * (small + dense)


def _score(
    data: Interactions, form: Representation, training: RepresentationTraining
) -> dict[str, Single]:
    with deterministic():
        weights = _train(data, form, training)
        with torch.inference_mode():
            tables = {
                f"embed_{name}.weight": torch.cat(
                    [
                        _vectors(weights, name, one)
                        for one in torch.split(torch.arange(count), _BLOCK)
                    ]
                )
                for name, count in data.rows.items()
            }
            return {
                name: scores({**weights, **tables}, *_tensors(split)[:2]).numpy()
                for name, split in (("search", data.search), ("test", data.test))
            }


def _train(data: Interactions, form: Representation, training: RepresentationTraining) -> Weights:
    """Train weights from scratch; the same data give bit-identical weights.

    Source:
        Loshchilov, Hutter, Decoupled Weight Decay Regularization, 2019 (AdamW); Smith, Topin,
        Super-Convergence, 2018 (one cycle of the rate).
    """
    weights, chance = _start(data, form, training)
    ids, features, liked = _tensors(data.train)
    batch = max(min(training.batch, len(liked) // _LEAST_STEPS), 1)
    steps = len(liked) // batch
    learnt = {name: one for name, one in weights.items() if one.requires_grad}
    optimizer = torch.optim.AdamW(_groups(learnt, training), lr=training.peak_rate)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimizer, training.peak_rate, total_steps=training.epochs * steps
    )
    for _ in range(training.epochs):
        order = torch.randperm(len(liked), generator=chance)
        for rows in order[: steps * batch].reshape(steps, batch):
            predicted = _predict(weights, data.rows, ids[rows], features[rows])
            optimizer.zero_grad()
            functional.binary_cross_entropy_with_logits(predicted, liked[rows]).backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            schedule.step()
    return {name: weight.detach() for name, weight in weights.items()}


def _predict(
    weights: Mapping[str, Tensor], rows: Mapping[str, int], ids: Tensor, features: Tensor
) -> Tensor:
    """Return the log odds of a batch; each value's vector is computed once."""
    tables, places = {}, []
    for name, column in zip(rows, ids.T, strict=True):
        values, place = torch.unique(column, return_inverse=True)
        tables[f"embed_{name}.weight"] = _vectors(weights, name, values)
        places.append(place)
    return scores({**weights, **tables}, torch.stack(places, dim=1), features)


def _vectors(weights: Mapping[str, Tensor], name: str, values: Tensor) -> Tensor:
    """Return the vectors of values of a feature, (n, length).

    Source:
        Kang et al., KDD 2021, section 3.2 (the MLP, with Mish and without batch normalization).
    """
    parts = []
    if f"table_{name}" in weights:
        parts.append(functional.embedding(values, weights[f"table_{name}"]))
    if f"codes_{name}" in weights:
        signal, layer = functional.embedding(values, weights[f"codes_{name}"]), 0
        while f"hashed_{name}.{layer}.weight" in weights:
            layer_weights = (weights[f"hashed_{name}.{layer}.{one}"] for one in ("weight", "bias"))
            signal = functional.linear(functional.mish(signal) if layer else signal, *layer_weights)
            layer += 1
        parts.append(signal)
    return torch.cat(parts, dim=1)


def _start(
    data: Interactions, form: Representation, training: RepresentationTraining
) -> tuple[Weights, torch.Generator]:
    """Draw random weights; return them with the random generator, for further draws.

    Source:
        He et al., Delving Deep into Rectifiers, 2015, eq. 10 (layers).
    """
    chance = torch.Generator().manual_seed(training.seed)
    weights: Weights = {}

    def draw_layer(name: str, outputs: int, inputs: int, gain: float) -> None:
        weight = torch.randn((outputs, inputs), generator=chance)
        weights[f"{name}.weight"] = weight * gain / math.sqrt(inputs)
        weights[f"{name}.bias"] = torch.zeros(outputs)

    for feature, (name, count) in enumerate(data.rows.items()):
        is_large = name in LARGE
        if form.has_table or not is_large:
            width = form.dim if is_large else form.length
            table = torch.randn((count, width), generator=chance)
            weights[f"table_{name}"] = table * training.start
        if form.has_hash and is_large:
            codes = hash_values(torch.arange(count).numpy(), form.hashes, feature)
            weights[f"codes_{name}"] = torch.tensor(codes)
            for layer, shape in enumerate(form.shapes):
                gain = training.start if layer == form.layers else math.sqrt(2)
                draw_layer(f"hashed_{name}.{layer}", *shape, gain)
    width = data.train.features.shape[1]
    for name, outputs, inputs in _dense_shapes(data.rows, width, form):
        draw_layer(name, outputs, inputs, math.sqrt(2))
    for name, weight in weights.items():
        weight.requires_grad_(not name.startswith("codes_"))
    return weights, chance


def _dense_shapes(
    rows: Mapping[str, int], features: int, form: Representation
) -> list[tuple[str, int, int]]:
    """Return the name, the outputs and the inputs of each layer below and above the products."""
    vectors = len(rows) + 1
    signal = form.length + vectors * (vectors - 1) // 2
    chains = {"bottom": (features, _BOTTOM, form.length), "top": (signal, *_TOP, 1)}
    return [
        (f"{name}{place}", after, before)
        for name, widths in chains.items()
        for place, (before, after) in enumerate(pairwise(widths), start=1)
    ]


def _groups(
    weights: Mapping[str, Tensor], training: RepresentationTraining
) -> list[dict[str, object]]:
    decays = {"table": training.table_decay, "hashed": training.hash_decay}
    groups: dict[float, list[Tensor]] = {}
    for name, weight in weights.items():
        decay = decays.get(name.partition("_")[0], training.weight_decay)
        groups.setdefault(decay, []).append(weight)
    return [{"params": each, "weight_decay": decay} for decay, each in groups.items()]


def _tensors(ratings: Ratings) -> tuple[Tensor, Tensor, Tensor]:
    liked = torch.tensor(ratings.liked, dtype=torch.float32)
    return torch.tensor(ratings.ids), torch.tensor(ratings.features), liked
