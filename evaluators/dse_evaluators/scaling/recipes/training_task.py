"""Networks and examples of training runs: shipped ones, and those of the user."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.images import halve_examples
from dse_evaluators.workloads.own.own_data import OwnData
from dse_evaluators.workloads.own.own_model import OwnModel
from dse_evaluators.workloads.own.own_outputs import OwnTask
from dse_evaluators.workloads.own.own_quality import qualities_of
from dse_evaluators.workloads.own.own_readers import module_of

TRAINED_ON = "calibration"
"""Split of the user's data whose examples the network is trained on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingTask:
    """Network to train, with its training examples and quality metrics.

    ``draws`` is whether the initial weights are drawn anew by the seed.
    """

    module: nn.Module
    task: OwnTask
    draws: bool

    def start(self, seed: int) -> nn.Module:
        """Return a copy of the network with its initial weights."""
        module = copy.deepcopy(self.module).float()
        if self.draws:
            torch.manual_seed(seed)
            for part in module.modules():
                if callable(reset := getattr(part, "reset_parameters", None)):
                    reset()
        return module

    @property
    def examples(self) -> int:
        """Number of training examples."""
        return self.task.count_examples(TRAINED_ON)

    def feeds(self) -> dict[str, Tensor]:
        """Return the inputs of the training examples by name, each (n, ...)."""
        feeds = self.task.data.feeds_of(TRAINED_ON)
        return {name: torch.tensor(one) for name, one in feeds.items()}

    def targets(self) -> Tensor | None:
        """Return the targets of the training examples; ``None`` if the next token is the target."""
        found = self.task.data.targets_of(TRAINED_ON)
        return None if found is None else torch.tensor(found)


def own_task(own: OwnModel, *, draws: bool) -> TrainingTask:
    """Return the task of a model of the user.

    Raises:
        EvaluationError: a function of the user fails, or returns something else.
        SpecError: the data is not valid, or lacks the targets that a metric needs.
    """
    source = None if own.data is None else own.data.load()
    task = OwnTask(label=own.label, source=source, qualities=own.qualities)
    return TrainingTask(module=module_of(own.origin, own.label), task=task, draws=draws)


@lru_cache(maxsize=4)
def shipped_task(name: str) -> TrainingTask:
    """Return the task of a shipped network: scikit-learn's digits, in their usual splits."""
    source = digits()
    search, test = halve_examples(source.held_out)
    parts = (source.train, search, test)
    data = OwnData(
        inputs=np.concatenate([one.images for one in parts]),
        targets=np.concatenate([one.labels for one in parts]),
        parts=np.repeat(np.arange(3), [len(one.labels) for one in parts]),
        named={},
    )
    task = OwnTask(label=name, source=data, qualities=qualities_of(["accuracy", "loss"]))
    return TrainingTask(module=_NETWORKS[name](), task=task, draws=True)


def _digits_mlp() -> nn.Module:
    """Return LeNet-300-100 on 8 x 8 pixels; LeCun et al., 1998."""
    return nn.Sequential(
        nn.Flatten(),
        *(nn.Linear(64, 300), nn.ReLU()),
        *(nn.Linear(300, 100), nn.ReLU()),
        nn.Linear(100, 10),
    )


def _digits_cnn() -> nn.Module:
    """Return two convolutions of 3 x 3 with max-pooling, and two dense layers."""
    return nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(128, 64), nn.ReLU()),
        nn.Linear(64, 10),
    )


_NETWORKS: Mapping[str, Any] = {"digits-mlp": _digits_mlp, "digits-cnn": _digits_cnn}
