"""A network inherits the weights that the supernet was trained with, and is measured in int8."""

import numpy as np
import pytest
import torch

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.architectures.image_files import read_images
from dse_evaluators.architectures.shared_networks import SharedNetwork, draw_network
from dse_evaluators.architectures.supernet import Supernet
from dse_evaluators.architectures.supernet_weights import (
    SupernetTraining,
    inherit,
    load_or_train_supernet,
    resize,
    run_normalised,
)
from dse_evaluators.workloads import weight_cache
from dse_evaluators.workloads.network import forward, stages

NET = {"width_1": 4, "depth_1": 2, "width_2": 8, "depth_2": 1, "kernel_1_1": 5}


@pytest.fixture(scope="module")
def weights():
    return load_or_train_supernet(read_images("digits").train, SupernetTraining(epochs=1))


@pytest.mark.parametrize("seed", range(3))
def test_inherited_weights_give_the_outputs_of_the_normalised_network(weights, seed):
    net = draw_network(8, np.random.default_rng(seed))
    images = torch.rand(40, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
    plain = inherit(net, weights, images)
    small = resize(images, net.resolution)
    expected = run_normalised(net, weights, small)
    found = forward(stages(net.layers(1, 10)), plain, small)
    assert torch.allclose(found, expected, atol=1e-4)


def test_a_network_has_no_weights_but_the_first_filters_and_the_middle_of_kernels(weights):
    net = SharedNetwork(resolution=8, widths=(2, 4), kernels=((3,), (5,)))
    images = torch.rand(20, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    others = {name: one.clone() for name, one in weights.items()}
    others["conv1_1.weight"][:, :, :, 0] = 7  # the edge of 5 x 5
    others["conv1_2.weight"][:] = 7
    others["conv2_1.weight"][4:] = 7
    others["conv2_1.weight"][:, 2:] = 7
    others["classifier.weight"][:, 4:] = 7
    same = zip(inherit(net, weights, images), inherit(net, others, images), strict=True)
    assert all(torch.equal(one.weight, other.weight) for one, other in same)


def test_equal_seeds_train_equal_weights(weights):
    (weight_cache.folder() / "again").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DSE_CACHE", str(weight_cache.folder() / "again"))
        again = load_or_train_supernet(read_images("digits").train, SupernetTraining(epochs=1))
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
    assert made.evaluate(Batch.of([NET | {"resolution": 7}])).failures[0].kind == "infeasible"


def test_images_of_your_own_have_their_own_side_and_classes(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(240) % 3
    images = rng.random((240, 2, 12, 12)) * 0.2 + labels[:, None, None, None] * 0.3
    np.savez(tmp_path / "mine.npz", images=images, labels=labels)
    made = Supernet(data=str(tmp_path / "mine.npz"), epochs=1, limit="0.01 s", precision=0.9)
    found = made.evaluate(Batch.of([NET]))
    assert not found.failures
    assert found.columns["parameters"][0] == 2 * 25 * 4 + 9 * 4 * 4 + 9 * 4 * 8 + 8 * 3 + 19


def test_images_that_are_not_square_are_refused(tmp_path):
    np.savez(
        tmp_path / "mine.npz", images=np.zeros((240, 1, 8, 6)), labels=np.zeros(240, dtype=int)
    )
    with pytest.raises(SpecError, match=r"images are \(240, 1, 8, 6\)"):
        read_images(str(tmp_path / "mine.npz"))
