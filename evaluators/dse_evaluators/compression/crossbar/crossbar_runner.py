"""Training of a network for a crossbar, and its runs on crossbars that were programmed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from threadpoolctl import threadpool_limits
from torch import Tensor

from dse.core.values import Ints
from dse.errors import EvaluationError
from dse_evaluators.compression.crossbar.conductances import Cells, NoisyConductances
from dse_evaluators.compression.crossbar.converters import Converters
from dse_evaluators.compression.operators.training_words import WeightTraining
from dse_evaluators.compression.quantization_aware.network_training import Network, train_network
from dse_evaluators.formats.arrays import Single
from dse_evaluators.one_by_one import Found
from dse_evaluators.workloads.models import ModelRef, workload_of
from dse_evaluators.workloads.trainable import Trainable
from dse_evaluators.workloads.weight_cache import Arrays, load_or_make
from dse_evaluators.workloads.workload import Parameters, Signals, Split, Workload

_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossbars:
    """Crossbars on which some layers of a network run, and the settings of a training for them.

    Attributes:
        layers: names of the layers' weights.
        cells: cells of the crossbars that the network runs on.
        adc_bits: bits of a converter.
        rows: rows of a crossbar.
        training: settings of the training; no steps for none.
        training_noise: noise of the cells during training.
        training_bits: bits of a converter during training.
    """

    layers: tuple[str, ...]
    cells: Cells
    adc_bits: int
    rows: int
    training: WeightTraining
    training_noise: float
    training_bits: int


def measure_on_crossbars(model: ModelRef, crossbars: Crossbars, split: Split, draws: Ints) -> Found:
    """Return the quality of a network on noisy crossbars, and the number of conversions.

    Args:
        model: the network.
        crossbars: what its layers run on.
        split: the examples.
        draws: seeds of the noise; each is another set of crossbars.

    Returns:
        The means over the draws, with the standard errors of the qualities.

    Raises:
        EvaluationError: the network cannot be trained, or does not compute one of the layers by
            ``torch.nn.functional.linear`` or ``conv2d``.
    """
    workload = workload_of(model)
    with threadpool_limits(limits=1):
        parameters = train_for_crossbars(model, crossbars)
        whole = workload.outputs(workload.parameters, split, Signals())
        runs = [_run_draw(workload, parameters, crossbars, split, int(draw)) for draw in draws]
    qualities = [workload.quality(outputs, whole, split) for outputs, _ in runs]
    values, errors = {}, {}
    for name in workload.metrics:
        found = np.array([one[name] for one in qualities])
        values[name] = float(found.mean())
        errors[name] = float(found.std(ddof=1) / np.sqrt(len(found))) if len(found) > 1 else 0.0
    values["conversions"] = runs[0][1] / workload.count_examples(split)
    values["conversion_steps"] = values["conversions"] * 2**crossbars.adc_bits
    return Found(values=values, errors=errors)


def train_for_crossbars(model: ModelRef, crossbars: Crossbars) -> Parameters:
    """Return the parameters after training with the crossbars' levels, converters and noise.

    The same model and settings give the same parameters; they are kept in the project's cache.

    Raises:
        EvaluationError: the network cannot be trained.
    """
    workload = workload_of(model)
    if not crossbars.training.steps:
        return workload.parameters
    before = workload.parameters
    if not isinstance(workload, Trainable):
        raise EvaluationError(
            f"{workload.name} cannot be trained: PyTorch does not run it with gradients here",
            hint="steps: 0, or name the model as {python: net.py:make}",
        )
    trained = {*workload.learnt, *crossbars.layers}
    shapes = {name: before[name].shape for name in trained}
    key = _key(model, before, crossbars)
    found = load_or_make(f"crossbar-{key}", shapes, lambda: _train(workload, before, crossbars))
    return {**before, **found}


class _OnConverters:
    """Network whose outputs in training are those with converters."""

    def __init__(
        self, workload: Trainable, layers: tuple[str, ...], converters: Converters
    ) -> None:
        self._workload, self._layers, self._converters = workload, layers, converters
        self.learnt = workload.learnt
        self.count_training_examples = workload.count_training_examples
        self.training_targets = workload.training_targets

    def training_outputs(self, parameters: Mapping[str, Tensor], rows: Ints) -> Tensor:
        self._converters.watch(parameters[name] for name in self._layers)
        with self._converters:
            return self._workload.training_outputs(parameters, rows)


def _train(workload: Trainable, before: Parameters, crossbars: Crossbars) -> Arrays:
    cells = Cells(levels=crossbars.cells.levels, noise=crossbars.training_noise)
    stored = {
        name: NoisyConductances(cells, before[name], seed)
        for seed, name in enumerate(crossbars.layers)
    }
    converters = Converters(crossbars.training_bits, crossbars.rows)
    network = Network(
        workload=_OnConverters(workload, crossbars.layers, converters),
        original=before,
        fixed={},
        rounded=stored,
    )
    rest = train_network(network, crossbars.training)
    trained = {name: one.learnt["weight"].detach().numpy() for name, one in stored.items()}
    return {**rest, **trained}


def _run_draw(
    workload: Workload, parameters: Parameters, crossbars: Crossbars, split: Split, draw: int
) -> tuple[Single, int]:
    """Return the outputs on the split, and the number of conversions of all examples."""
    chance = torch.Generator().manual_seed(draw)
    stored = {
        name: crossbars.cells.store(torch.tensor(parameters[name]), chance)
        for name in crossbars.layers
    }
    converters = Converters(crossbars.adc_bits, crossbars.rows)
    converters.watch(stored.values())
    arrays = {name: one.numpy() for name, one in stored.items()}
    with converters:
        outputs = workload.outputs({**parameters, **arrays}, split, Signals())
    missed = converters.find_missed(stored)
    if missed:
        raise EvaluationError(
            f"{', '.join(missed)} cannot run on a crossbar: the model does not compute it by "
            "nn.Linear or nn.Conv2d",
            hint="name the layers that do by analog, as in analog: 'fc*'",
        )
    return outputs, converters.conversions


def _key(model: ModelRef, parameters: Parameters, crossbars: Crossbars) -> str:
    label = model if isinstance(model, str) else f"{model.label} {model.edition}"
    trained = (
        crossbars.layers,
        crossbars.cells.levels,
        crossbars.training_bits,
        crossbars.rows,
        crossbars.training,
        crossbars.training_noise,
    )
    key = hashlib.sha256(f"{_VERSION} {label} {torch.__version__} {trained}".encode())
    for name, array in parameters.items():
        key.update(name.encode() + array.tobytes())
    return key.hexdigest()[:16]
