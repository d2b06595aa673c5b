"""GradSign is the agreement of the signs of gradients, and more steps lower the loss."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from dse.core.batch import Batch
from dse_evaluators.architectures.proxies import Proxies
from dse_evaluators.architectures.proxy_scores import score_alignment, score_grad_sign
from dse_evaluators.architectures.shared_networks import SharedNetwork
from dse_evaluators.architectures.supernet_weights import run_normalised, start_weights
from dse_evaluators.workloads.images import ImageDataset

NET = SharedNetwork(resolution=4, widths=(2, 3), kernels=((3,), (3,)))


def test_grad_sign_is_that_of_gradients_by_another_way():
    rng = np.random.default_rng(0)
    images = rng.random((6, 1, 4, 4)).astype(np.float32)
    examples = ImageDataset(images=images, labels=np.arange(6) % 2)
    weights = start_weights(NET.layers(1, 2), torch.Generator().manual_seed(3))

    def loss(held, image, label):
        one = functional.conv2d(
            image[None], held["conv1_1.weight"], held["conv1_1.bias"], padding=1
        )
        two = functional.max_pool2d(one.relu(), 2)
        two = functional.conv2d(two, held["conv2_1.weight"], held["conv2_1.bias"], padding=1).relu()
        last = functional.linear(
            two.amax((2, 3)), held["classifier.weight"], held["classifier.bias"]
        )
        return functional.cross_entropy(last, label[None])

    held = {name: one.detach() for name, one in weights.items() if "gain" not in name}
    each = torch.func.vmap(torch.func.grad(loss), (None, 0, 0))(
        held, torch.tensor(images), torch.tensor(examples.labels)
    )
    expected = sum(float(one.sign().sum(0).abs().sum()) for one in each.values()) / 6
    assert score_grad_sign(NET, examples, 3, 6) == pytest.approx(expected)


def test_alignment_is_the_correlation_of_the_kernel_of_jacobians_and_labels():
    images = np.random.default_rng(0).random((6, 1, 4, 4)).astype(np.float32)
    examples = ImageDataset(images=images, labels=np.arange(6) % 2)
    weights = start_weights(NET.layers(1, 2), torch.Generator().manual_seed(3))
    order = torch.randperm(6, generator=torch.Generator().manual_seed(3))
    names = [name for name in weights if name.endswith("weight")]

    def outputs(*held):
        given = weights | dict(zip(names, held, strict=True))
        return run_normalised(NET, given, torch.tensor(images)[order]).sum(1)

    parts = torch.autograd.functional.jacobian(outputs, tuple(weights[one] for one in names))
    rows = torch.cat([one.flatten(1) for one in parts], dim=1).numpy()
    labels = examples.labels[order.numpy()]
    same = (labels[:, None] == labels[None]).astype(float)
    expected = np.corrcoef((rows @ rows.T).ravel(), same.ravel())[0, 1]
    assert score_alignment(NET, weights, examples, 3, 6) == pytest.approx(expected, abs=1e-5)


def test_more_steps_of_training_lower_the_loss():
    design = Batch.of([{"width_1": 8, "depth_1": 1, "width_2": 16, "depth_2": 1}])
    few, many = (
        Proxies(steps=n, images=2).evaluate(design).columns["step_loss"][0] for n in (1, 30)
    )
    assert many < few
