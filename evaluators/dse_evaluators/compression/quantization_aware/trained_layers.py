"""Layers of a network whose weights were trained with their rounding, cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

import torch
from threadpoolctl import threadpool_limits

from dse.errors import EvaluationError
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.operators.training_words import (
    TrainedRecipe,
    trained_recipe,
    training_of,
)
from dse_evaluators.compression.quantization_aware.network_training import Network, train_network
from dse_evaluators.compression.quantization_aware.rounded_weights import (
    RoundedWeight,
    round_weight,
)
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.trainable import Trainable
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Parameters

_VERSION = 1


def train_layers(
    model: ModelRef, recipes: Mapping[str, str], fixed: Parameters
) -> tuple[dict[str, Record], dict[str, Single]]:
    """Train the layers whose recipe trains weights; the other layers keep their given weights.

    The same model, recipes and weights give the same result; it is kept in the project's cache.

    Args:
        model: name of a built-in model, or a model of the user.
        recipes: recipe of each trained layer, by layer name.
        fixed: weights of all other layers that have a recipe, after compression.

    Returns:
        The trained layers as they are stored, and the parameters without a recipe, by name.

    Raises:
        EvaluationError: the model cannot be trained, its layers have different settings, or the
            training fails.
    """
    workload = workload_of(model)
    if not isinstance(workload, Trainable):
        raise EvaluationError(
            f"{workload.name} cannot be trained: PyTorch does not run it with gradients here",
            hint="name the model as {python: net.py:make}, or use gptq, which needs no training",
        )
    parsed = {name: trained_recipe(text) for name, text in recipes.items()}
    layers = {name: one for name, one in parsed.items() if one is not None}
    rounded = {name: round_weight(one, workload.parameters[name]) for name, one in layers.items()}
    others = [name for name in workload.learnt if name not in fixed and name not in rounded]
    shapes = {name: workload.parameters[name].shape for name in others}
    for name, one in rounded.items():
        shapes |= {f"{name}/{part}": tuple(each.shape) for part, each in one.learnt.items()}
    network = Network(workload=workload, original=workload.parameters, fixed=fixed, rounded=rounded)
    key = _key(model, workload.parameters, recipes, fixed)
    found = load_or_make(f"trained-{key}", shapes, lambda: _train(network, layers))
    _put_back(rounded, found)
    records = {name: one.record() for name, one in rounded.items()}
    return records, {name: found[name] for name in others}


def _train(network: Network, layers: Mapping[str, TrainedRecipe]) -> Arrays:
    with threadpool_limits(limits=1):
        found = train_network(network, training_of(layers))
    for name, one in network.rounded.items():
        found |= {f"{name}/{part}": each.detach().numpy() for part, each in one.learnt.items()}
    return found


def _put_back(rounded: Mapping[str, RoundedWeight], found: Arrays) -> None:
    """Copy cached values into the tensors that were trained."""
    with torch.no_grad():
        for name, one in rounded.items():
            for part, each in one.learnt.items():
                each.copy_(torch.tensor(found[f"{name}/{part}"]))


def _key(
    model: ModelRef, parameters: Parameters, recipes: Mapping[str, str], fixed: Parameters
) -> str:
    label = model if isinstance(model, str) else f"{model.label} {model.edition}"
    text = f"{_VERSION} {label} {torch.__version__} {sorted(recipes.items())}"
    key = hashlib.sha256(text.encode())
    for arrays in (parameters, fixed):
        for name, array in arrays.items():
            key.update(name.encode() + array.tobytes())
    return key.hexdigest()[:16]
