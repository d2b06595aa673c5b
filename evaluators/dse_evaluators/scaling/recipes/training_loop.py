"""Training of a network by a recipe, with its quality after each epoch."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import numpy as np
import torch
from torch import Tensor, nn

from dse.errors import DseError, EvaluationError, InfeasibleError, nearest
from dse.evaluation.timing.energy_counters import EnergyCounter, find_counters, read_counters
from dse_evaluators.formats.arrays import Single
from dse_evaluators.scaling.recipes.gradient_steps import make_optimizer
from dse_evaluators.scaling.recipes.learning_rates import TrainingRecipe
from dse_evaluators.scaling.recipes.learning_rules import (
    Backprop,
    LearningRule,
    MonoForward,
    call_module,
)
from dse_evaluators.scaling.recipes.training_task import TrainingTask
from dse_evaluators.workloads.own.own_batches import batches_of
from dse_evaluators.workloads.own.own_outputs import table_of
from dse_evaluators.workloads.torch_scope import deterministic
from dse_evaluators.workloads.workload import Split

Reached = Callable[[Mapping[str, float]], bool]
"""Function that states whether quality metrics have reached the target."""


@dataclass(slots=True, kw_only=True)
class TrainingProgress:
    """Measured course of a training.

    Attributes:
        updates: number of updates so far.
        seconds: elapsed time of the updates so far, without evaluations.
        energy_j: energy of the updates so far; ``None`` if no counter of the machine can be read.
        loss: mean training loss of the last epoch.
        quality: quality metrics after the last epoch.
        reached: updates and seconds at which the target was reached first, if it was.
        activation_bytes: most bytes that an update keeps for its gradients at a time.
        outputs: outputs for the examples of the split after the last epoch, (n, k).
    """

    updates: int = 0
    seconds: float = 0.0
    energy_j: float | None = None
    loss: float = 0.0
    quality: Mapping[str, float] = field(default_factory=dict)
    reached: tuple[int, float] | None = None
    activation_bytes: int = 0
    outputs: Single = field(default_factory=lambda: np.zeros((0, 1), dtype=np.float32))


def train(
    source: TrainingTask,
    recipe: TrainingRecipe,
    *,
    split: Split,
    freeze: Sequence[str] = (),
    reached: Reached | None = None,
) -> TrainingProgress:
    """Train a network by a recipe; the same task and recipe give the same weights.

    Args:
        source: the network and its examples.
        recipe: the settings.
        split: the examples whose quality is measured after each epoch.
        freeze: patterns of names of parameters that keep their initial values.
        reached: whether quality metrics have reached the target; ``None`` without a target.

    Raises:
        InfeasibleError: the training diverges, or the recipe does not fit the network or the data.
        EvaluationError: the user's network fails.
    """
    with torch.random.fork_rng(devices=[]), deterministic():
        module = source.start(recipe.seed)
        weights = _select_trained(module, recipe.frozen, freeze)
        torch.manual_seed(recipe.seed)
        run = _Run(module=module, weights=weights, source=source, recipe=recipe)
        try:
            return run.go(split, reached)
        except DseError:
            raise
        except Exception as error:
            raise EvaluationError(
                f"{source.task.label} cannot be trained: {type(error).__name__}: {error}",
                hint="forward takes a batch of inputs, and returns (n, classes) or the targets",
            ) from error


@dataclass(slots=True, kw_only=True)
class _Run:
    module: nn.Module
    weights: Sequence[nn.Parameter]
    source: TrainingTask
    recipe: TrainingRecipe

    def go(self, split: Split, reached: Reached | None) -> TrainingProgress:
        chosen = self._choose_examples()
        if self.recipe.batch > len(chosen):
            raise InfeasibleError(
                f"a batch of {self.recipe.batch} is more than the {len(chosen)} training examples"
            )
        updates = self._prepare_updates(chosen)
        plan = self.recipe.batches(len(chosen))
        progress, counters = TrainingProgress(), find_counters()
        for epoch, size in enumerate(plan.sizes()):
            before_j = read_counters(counters)
            started = time.perf_counter()
            order = torch.randperm(len(chosen))[: len(chosen) // size * size].reshape(-1, size)
            losses = []
            self.module.train()
            for rows in order:
                rate = self.recipe.rate(progress.updates, plan.updates, epoch)
                losses.append(updates.make(rows, rate))
                progress.updates += 1
            progress.loss = float(torch.stack(losses).mean())
            progress.seconds += time.perf_counter() - started
            if counters:
                progress.energy_j = (progress.energy_j or 0) + _sum_used(counters, before_j)
            progress.activation_bytes = updates.rule.kept.most
            self._measure(progress, split)
            if reached and progress.reached is None and reached(progress.quality):
                progress.reached = progress.updates, progress.seconds
        return progress

    def _prepare_updates(self, chosen: Tensor) -> _Updates:
        feeds = {name: one[chosen] for name, one in self.source.feeds().items()}
        targets = self.source.targets()
        rule: LearningRule = Backprop(module=self.module)
        if self.recipe.rule == "mono-forward":
            example = {name: one[:2] for name, one in feeds.items()}
            rule = MonoForward.of(self.module, example, seed=self.recipe.seed)
        return _Updates(
            feeds=feeds,
            targets=None if targets is None else targets[chosen],
            rule=rule,
            optimizer=make_optimizer(self.recipe, [*self.weights, *rule.more_weights]),
            narrow=self.recipe.precision == "bf16",
        )

    def _choose_examples(self) -> Tensor:
        count = self.source.examples
        kept = max(1, round(self.recipe.data_share * count))
        return torch.randperm(count)[:kept] if kept < count else torch.arange(count)

    def _measure(self, progress: TrainingProgress, split: Split) -> None:
        """Measure the quality on a split; training that diverged makes the design infeasible."""
        self.module.eval()
        found: list[Single] = []
        with torch.inference_mode():
            for batch in batches_of(self.source.task.data.feeds_of(split)):
                tensors = {name: torch.tensor(one) for name, one in batch.items()}
                found.append(table_of(call_module(self.module, tensors)))
        table = np.concatenate(found)
        if not (np.isfinite(table).all() and np.isfinite(progress.loss)):
            raise InfeasibleError(f"the training diverges within {progress.updates} updates")
        progress.outputs = self.source.task.outputs(table, split)
        progress.quality = self.source.task.quality(progress.outputs, progress.outputs, split)


@dataclass(slots=True, kw_only=True)
class _Updates:
    """Updates of the weights by batches of the training examples."""

    feeds: Mapping[str, Tensor]
    targets: Tensor | None
    rule: LearningRule
    optimizer: torch.optim.Optimizer
    narrow: bool

    def make(self, rows: Tensor, rate: float) -> Tensor:
        """Update the weights by the examples of ``rows``; return their loss before it."""
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        self.optimizer.zero_grad()
        batch = {name: one[rows] for name, one in self.feeds.items()}
        targets = None if self.targets is None else self.targets[rows]
        loss = self.rule.compute_gradients(batch, targets, narrow=self.narrow)
        self.optimizer.step()
        return loss


def _sum_used(counters: tuple[EnergyCounter, ...], before_j: Mapping[str, float]) -> float:
    """Return the energy since a reading, over all counters."""
    now = read_counters(counters)
    return sum(one.used_j(before_j[one.name], now[one.name]) for one in counters)


def _select_trained(module: nn.Module, frozen: int, freeze: Sequence[str]) -> list[nn.Parameter]:
    """Return the parameters that are trained; the gradients of the others are switched off.

    Raises:
        InfeasibleError: no parameter is left.
        EvaluationError: a pattern matches no parameter.
    """
    names = [name for name, _ in module.named_parameters()]
    for pattern in freeze:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise EvaluationError(
                f"freeze: {pattern!r} matches no parameter", hint=nearest(pattern, names)
            )
    layers = list(dict.fromkeys(name.rpartition(".")[0] for name in names))
    kept = set(layers[:frozen])
    trained = []
    for name, weight in module.named_parameters():
        is_frozen = name.rpartition(".")[0] in kept
        is_frozen = is_frozen or any(fnmatchcase(name, one) for one in freeze)
        weight.requires_grad_(not is_frozen)
        trained += [] if is_frozen else [weight]
    if not trained:
        raise InfeasibleError(f"all {len(layers)} layers are frozen")
    return trained
