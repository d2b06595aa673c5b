"""A network inherits the weights that the supernet was trained with, and is measured in int8."""

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.architectures.image_files import read_images
from dse_evaluators.architectures.shared_networks import (
    SharedNetwork,
    draw_network,
    largest_network,
)
from dse_evaluators.architectures.supernet import Supernet
from dse_evaluators.architectures.supernet_weights import (
    SupernetTraining,
    inherit,
    load_or_train_supernet,
    train_supernet,
)
from dse_evaluators.workloads.network import forward, stages

NET = {"width_1": 4, "depth_1": 2, "width_2": 8, "depth_2": 1, "kernel_1_1": 5}


@pytest.fixture(scope="module")
def weights():
    return load_or_train_supernet(read_images("digits").train, SupernetTraining(epochs=1))


def test_the_largest_network_inherits_all_weights(weights):
    found = inherit(largest_network(8), weights)
    names = [name.removesuffix(".weight") for name in weights if name.endswith("weight")]
    assert all(
        torch.equal(one.weight, weights[f"{n}.weight"]) for n, one in zip(names, found, strict=True)
    )


def test_a_smaller_network_has_the_first_filters_and_the_middle_of_kernels(weights):
    net = SharedNetwork(resolution=8, widths=(2, 4), kernels=((3,), (5,)))
    first, second, _ = inherit(net, weights)
    whole = weights["conv1_1.weight"]
    assert torch.allclose(first.weight, whole[:2, :1, 1:4, 1:4] * (25 / 9) ** 0.5)
    assert torch.allclose(second.weight, weights["conv2_1.weight"][:4, :2] * 2)


def test_a_drawn_network_runs(weights):
    rng = np.random.default_rng(0)
    nets = [draw_network(8, rng) for _ in range(5)]
    shapes = [
        forward(
            stages(net.layers(1, 10)),
            inherit(net, weights),
            torch.zeros(2, 1, net.resolution, net.resolution),
        ).shape
        for net in nets
    ]
    assert shapes == [(2, 10)] * 5


def test_equal_seeds_train_equal_weights(weights):
    again = train_supernet(read_images("digits").train, SupernetTraining(epochs=1))
    assert all(torch.equal(one, weights[name]) for name, one in again.items())


def test_fewer_bits_make_a_network_smaller_and_change_its_answers(weights):
    made = Supernet(epochs=1, limit="0.01 s", precision=0.9)
    designs = [NET | {"weight_format": one} for one in ("fp32", "int8", "int4")]
    found = made.evaluate(Batch.of(designs)).columns
    weights_stored = 25 * 4 + 9 * 4 * 4 + 9 * 4 * 8 + 8 * 10
    assert found["size"][0] - found["size"][1] == pytest.approx(3 * weights_stored, rel=0.1)
    assert found["size"][2] < found["size"][1]
    assert len(set(found["loss"])) == 3
    assert found["parameters"][0] == weights_stored + 4 + 4 + 8 + 10


def test_an_odd_resolution_is_infeasible():
    made = Supernet(epochs=1)
    assert made.evaluate(Batch.of([NET | {"resolution": 7}])).faults[0].kind == "infeasible"


def test_images_of_your_own_have_their_own_side_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    images = rng.random((240, 2, 12, 12)) * 0.2 + labels[:, None, None, None] * 0.3
    np.savez(tmp_path / "mine.npz", images=images, labels=labels)
    made = Supernet(data=str(tmp_path / "mine.npz"), epochs=1, limit="0.01 s", precision=0.9)
    found = made.evaluate(Batch.of([NET]))
    assert not found.faults
    assert found.columns["parameters"][0] == 2 * 25 * 4 + 9 * 4 * 4 + 9 * 4 * 8 + 8 * 3 + 19


def test_images_that_are_not_square_are_refused(tmp_path):
    np.savez(
        tmp_path / "mine.npz", images=np.zeros((240, 1, 8, 6)), labels=np.zeros(240, dtype=int)
    )
    with pytest.raises(SpecError, match=r"images are \(240, 1, 8, 6\)"):
        read_images(str(tmp_path / "mine.npz"))
