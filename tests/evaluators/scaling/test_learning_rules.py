"""Gradients by backpropagation and by Mono-Forward: what they are, keep and refuse."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dse.core.batch import Batch
from dse_evaluators.scaling.recipes.learning_rules import Backprop, MonoForward
from dse_evaluators.scaling.recipes.training_run import TrainingRun

GIVEN = {"": torch.arange(24.0).reshape(6, 4) / 10}
RIGHT = torch.tensor([0, 1, 0, 1, 2, 2])


def network(*, hidden=2):
    torch.manual_seed(1)
    layers = [nn.Linear(4, 5), nn.ReLU()]
    for _ in range(hidden - 1):
        layers += [nn.Linear(5, 5), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(5, 3))


def measured(model, **more):
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, 240)
    points = (rng.normal(size=(240, 4)) + 2.0 * labels[:, None]).astype(np.float32)
    data = {"arrays": (points, labels), "calibration": 0.8, "test": 0.1}
    made = TrainingRun(
        model=model, data=data, quality="accuracy", rule="mono-forward", epochs=4, **more
    )
    found = made.evaluate(Batch.of([{"learning_rate": 0.01}]))
    return found.failures.get(0), {name: column[0] for name, column in found.columns.items()}


def test_each_hidden_layer_gets_the_gradient_of_its_own_loss():
    """Hand computation of section 3 of Gong et al., 2025: cross-entropy of projected activations."""
    module = network()
    rule = MonoForward.of(module, GIVEN, seed=0)
    rule.compute_gradients(GIVEN, RIGHT, narrow=False)
    first, projection = module[0], rule.projections[0]
    hidden = torch.relu(GIVEN[""] @ first.weight.T + first.bias)
    chances = torch.softmax(hidden @ projection.T, dim=1) - functional.one_hot(RIGHT, 3)
    slopes = (chances / 6) @ projection * (hidden > 0)
    assert torch.allclose(projection.grad, (chances / 6).T @ hidden, atol=1e-6)
    assert torch.allclose(first.weight.grad, slopes.T @ GIVEN[""], atol=1e-6)


def test_the_last_hidden_layer_and_the_outputs_learn_as_by_backpropagation():
    local, whole = network(), network()
    MonoForward.of(local, GIVEN, seed=0).compute_gradients(GIVEN, RIGHT, narrow=False)
    Backprop(module=whole).compute_gradients(GIVEN, RIGHT, narrow=False)
    assert torch.allclose(local[2].weight.grad, whole[2].weight.grad)
    assert torch.allclose(local[4].bias.grad, whole[4].bias.grad)
    assert not torch.allclose(local[0].weight.grad, whole[0].weight.grad)


def test_mono_forward_keeps_one_layer_however_deep_the_network():
    kept = {}
    for hidden in (2, 8):
        module = network(hidden=hidden)
        for rule in (Backprop(module=module), MonoForward.of(module, GIVEN, seed=0)):
            rule.compute_gradients(GIVEN, RIGHT, narrow=False)
            kept[type(rule).__name__, hidden] = rule.kept.most
    assert kept["MonoForward", 8] == kept["MonoForward", 2]
    # each of six more layers keeps its activations: six examples of five numbers of four bytes
    assert kept["Backprop", 8] - kept["Backprop", 2] == 6 * 6 * 5 * 4


def test_a_network_of_the_user_learns_by_mono_forward():
    failure, found = measured(network())
    assert failure is None
    assert found["accuracy"] > 0.85
    assert found["activation_memory"] > 0


def test_frozen_layers_keep_their_weights():
    module = network()
    module[0].requires_grad_(requires_grad=False)
    rule = MonoForward.of(module, GIVEN, seed=0)
    rule.compute_gradients(GIVEN, RIGHT, narrow=False)
    assert module[0].weight.grad is None
    assert len(rule.more_weights) == 0


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 2)

    def forward(self, inputs):
        return self.inner(inputs)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Residual(), "trains a sequence of layers, and Residual is none"),
        (network(hidden=1), "is backpropagation in a network of 2 layers"),
        (nn.Sequential(nn.GRU(4, 5), nn.Linear(5, 3), nn.Linear(3, 2)), "one returns tuple"),
    ],
)
def test_networks_that_mono_forward_cannot_train_are_named(model, message):
    failure, _ = measured(model)
    assert message in failure.reason
