"""Networks trained with their rounding: gradients, determinism, data, and what is deployed."""

from __future__ import annotations

import copy
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse.interop.deployment.targets import target_of
from dse_evaluators.compression import recipe_runner
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.compression.operators.training_words import TrainedRecipe, WeightTraining
from dse_evaluators.compression.quantization_aware.network_training import _distance_to_teacher
from dse_evaluators.compression.quantization_aware.rounded_weights import (
    round_to_steps,
    round_weight,
)
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_noise import Noise
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import image_network, write_llama, write_onnx
from tests.evaluators.compression.test_rotations import write_decoder

LSQ = "lsq 40,rate=0.01/int2:channel"
SIDE = 4


def examples(count=240):
    """Return points of four classes, which lie around four corners."""
    rng = np.random.default_rng(0)
    labels = np.arange(count) % SIDE
    corners = rng.normal(size=(SIDE, 6)) * 1.2
    return (corners[labels] + rng.normal(size=(count, 6))).astype(np.float32), labels


def network():
    return copy.deepcopy(trained_network())


@cache
def trained_network():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, SIDE))
    inputs, labels = (torch.tensor(one) for one in examples())
    for _ in range(80):
        net.zero_grad()
        functional.cross_entropy(net(inputs), labels).backward()
        with torch.no_grad():
            for one in net.parameters():
                one.sub_(0.3 * one.grad)
    return net


def evaluator(recipe=LSQ, *, data=None, **options):
    given = examples() if data is None else data
    return ByRecipe(model=network(), data=given, quality="loss", recipe=recipe, **options)


def outputs(found, split="test"):
    return recipe_runner.outputs(found._model, found.recipes({}), split, Signals())


def test_lsq_gradients_are_those_of_the_papers_equations():
    rng = np.random.default_rng(3)
    numbers, low, high = rng.normal(size=(3, 50)), -2, 1
    steps, slope = np.array([[0.3], [0.5], [1.1]]), rng.normal(size=(3, 50))
    given, step = (torch.tensor(one, requires_grad=True) for one in (numbers, steps))
    (round_to_steps(given, step, low, high) * torch.tensor(slope)).sum().backward()
    ratio = numbers / steps
    inside = (ratio > low) & (ratio < high)
    of_step = np.where(inside, np.rint(ratio) - ratio, np.clip(ratio, low, high))  # eq. 3
    scale = 1 / np.sqrt(50 * high)  # section 2.2
    np.testing.assert_allclose(given.grad, np.where(inside, slope, 0), rtol=1e-12)  # eq. 5
    wanted = (of_step * slope).sum(axis=1, keepdims=True) * scale
    np.testing.assert_allclose(step.grad, wanted, rtol=1e-10)


@pytest.mark.parametrize(
    ("operator", "text"),
    [
        ("lsq", "int4:channel"),
        ("lsq", "int3:group=5,tail=short"),
        ("lsq", "int2"),
        ("straight-through", "ternary"),
        ("straight-through", "posit:6,1,rms"),
    ],
)
def test_the_record_decodes_to_the_weights_of_the_forward_pass(operator, text):
    weight = np.random.default_rng(0).normal(size=(6, 3, 2, 2)).astype(np.float32)
    found = round_weight(TrainedRecipe.of(operator, f"5/{text}"), weight)
    value = found.value().detach().numpy()
    np.testing.assert_array_equal(restore_tensor(found.record()), value)
    found.value().sum().backward()
    assert all(one.grad is not None for one in found.learnt.values())


def test_distillation_is_the_softened_divergence_of_hinton():
    rng = np.random.default_rng(0)
    ours, wanted = rng.normal(size=(2, 7, 5))

    def soften(logits):
        return np.exp(logits / 3) / np.exp(logits / 3).sum(axis=1, keepdims=True)

    p, q = soften(wanted), soften(ours)
    by_hand = 9 * (p * np.log(p / q)).sum(axis=1).mean()
    found = _distance_to_teacher(torch.tensor(ours), torch.tensor(wanted), 3.0)
    assert float(found) == pytest.approx(by_hand, rel=1e-10)


def calibration_loss(found):
    logits = torch.tensor(outputs(found, "calibration"))
    labels = workload_of(found._model)._task.targets_of("calibration")
    return float(functional.cross_entropy(logits, torch.tensor(labels)))


@pytest.mark.parametrize("operator", ["lsq", "straight-through"])
def test_training_lowers_the_loss_that_it_descends(operator):
    before, after = (
        calibration_loss(evaluator(f"{operator} {steps},rate=0.01/int2:channel"))
        for steps in (0, 40)
    )
    assert after < before - 0.05


@pytest.mark.proof
@pytest.mark.parametrize("recipe", ["lsq 200/int2:channel", "straight-through 200/int2:channel"])
def test_two_bits_of_digits_cnn_lose_less_on_held_out_images_than_gptq(recipe):
    rounded, trained = (
        ByRecipe(model="digits-cnn", recipe=one, split="test")._measure_design({})
        for one in ("gptq int2:channel", recipe)
    )
    assert trained["size"] == rounded["size"]
    assert trained["accuracy"] > rounded["accuracy"] + 0.03  # measured: 0.973 and 0.916


def test_training_reads_the_calibration_split_alone():
    inputs, labels = examples()
    parts = np.array(["calibration", "search", "test"])[np.arange(len(labels)) // SIDE % 3]
    chosen = parts == "calibration"
    other = np.where(chosen[:, None], inputs, inputs[::-1] + 1).astype(np.float32)
    both = [
        {"arrays": {"x": x, "y": y, "part": parts}, "split": "part"}
        for x, y in ((inputs, labels), (other, np.where(chosen, labels, (labels + 1) % SIDE)))
    ]
    one, two = (evaluator(data=data).deployed_model({}).tensors for data in both)
    for name in one:
        np.testing.assert_array_equal(one[name].values, two[name].values)


def test_the_same_seed_trains_the_same_network_and_another_does_not(monkeypatch, tmp_path):
    found = [evaluator().deployed_model({}).tensors["0.weight"].values]
    monkeypatch.setenv("DSE_CACHE", str(tmp_path))  # so that it is trained again
    workload_of.cache_clear()
    from dse_evaluators.compression import model_layers

    model_layers._train_items.cache_clear()
    found.append(evaluator().deployed_model({}).tensors["0.weight"].values)
    np.testing.assert_array_equal(*found)
    other = evaluator("lsq 40,rate=0.01,seed=1/int2:channel").deployed_model({})
    assert (other.tensors["0.weight"].values != found[0]).any()


def test_a_deployed_state_dict_gives_the_measured_outputs(tmp_path):
    found = evaluator()
    wanted = outputs(found)
    file = tmp_path / "net.pt"
    file.write_bytes(target_of("torch").write(found.deployed_model({})).content)
    net = network()
    before = net[0].bias.detach().numpy().copy()
    net.load_state_dict({n: t.float() for n, t in torch.load(file, weights_only=True).items()})
    assert (net[0].bias.detach().numpy() != before).any()  # biases are trained, and deployed
    inputs = workload_of(found._model)._task.data.inputs_of("test")
    np.testing.assert_allclose(net(torch.tensor(inputs)).detach(), wanted, atol=1e-5)


@pytest.mark.proof
def test_onnxruntime_gives_the_measured_outputs_of_trained_codes():
    runtime = pytest.importorskip("onnxruntime")
    found = ByRecipe(model="digits-cnn", recipe="lsq 20/int4:channel")
    content = target_of("onnx").write(found.deployed_model({})).content
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    images = workload_of("digits-cnn").judging["test"].images
    np.testing.assert_allclose(session.run(None, {"images": images})[0], outputs(found), atol=1e-4)


def test_layers_that_are_not_trained_keep_their_recipes():
    trained = evaluator(layers={"0.*": "keep"}).deployed_model({}).tensors
    np.testing.assert_array_equal(
        trained["0.weight"].values, workload_of(evaluator()._model).parameters["0.weight"]
    )
    mixed = evaluator(layers={"0.*": "gptq int3:channel"}).deployed_model({}).tensors
    alone = evaluator("gptq int3:channel").deployed_model({}).tensors
    np.testing.assert_array_equal(mixed["0.weight"].values, alone["0.weight"].values)


def test_a_folder_without_targets_is_trained_on_its_own_outputs(tmp_path):
    model, data = str(write_decoder(tmp_path / "net")), str(tmp_path / "tokens.npz")
    recipes = ("format int2:group=8", "lsq 30,rate=0.005,distill=1,batch=8/int2:group=8")
    plain, trained = (
        ByRecipe(model=model, data=data, recipe=one)._measure_design({})["deviation"]
        for one in recipes
    )
    assert trained < plain


def test_data_without_targets_need_distillation():
    found = ByRecipe(model=network(), data=examples()[0], recipe=LSQ)
    with pytest.raises(EvaluationError, match="no targets to train on") as caught:
        found._measure_design({})
    assert "distill=1" in str(caught.value)


def test_layers_with_different_settings_are_refused():
    found = evaluator(layers={"0.*": "lsq 41/int2:channel"})
    with pytest.raises(EvaluationError, match="their steps or settings differ"):
        found._measure_design({})


def test_a_rate_that_diverges_is_named():
    found = evaluator("lsq 40,rate=1e30/int2:channel")
    with pytest.raises(EvaluationError, match=r"step \d+ of 40"):
        found._measure_design({})


@pytest.mark.parametrize(
    ("recipe", "problem"),
    [
        ("lsq int4:channel", "is not of the form '200/int4:channel'"),
        ("lsq many/int4", "'many' is no whole number"),
        ("lsq 9/nf4", "lsq learns the step of symmetric integers"),
        ("lsq 9/int4:channel,asym", "lsq learns the step of symmetric integers"),
        ("lsq 9/int4:channel,mse", "'mse' of 'int4:channel,mse' has no effect"),
        ("lsq 9,rat=1/int4", "training has no setting 'rat=1'"),
        ("lsq 9,rate=-1/int4", "rate cannot be '-1'"),
        ("lsq 9,seed=1,seed=2/int4", "two settings 'seed'"),
        ("lsq 9,distill=2/int4", "distill cannot be '2'"),
        ("lsq 9,temperature=2/int4", "temperature has no effect"),
        ("lsq 9,batch=0/int4", "a batch cannot be empty"),
        ("prune 0.5 > lsq 9/int4", "does not preserve zeros"),
        ("straight-through 9/int5000", "int5000"),
    ],
)
def test_a_wrong_recipe_is_refused_in_words(recipe, problem):
    with pytest.raises(SpecError) as caught:
        evaluator(recipe)
    assert problem in str(caught.value)


def test_what_cannot_be_trained_is_refused_in_words(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    data = (
        np.zeros((20, 1, 8, 8), np.float32) + np.arange(20, dtype=np.float32)[:, None, None, None]
    )
    with pytest.raises(SpecError, match="onnxruntime computes no gradients"):
        ByRecipe(model=str(tmp_path / "net.onnx"), data=data, recipe=LSQ)
    with pytest.raises(SpecError, match="cannot train minilm"):
        ByRecipe(model="minilm", recipe=LSQ)
    with pytest.raises(SpecError, match=r"compression\.noise runs no model"):
        Noise(model="digits-cnn", recipe=LSQ)
    with pytest.raises(SpecError, match="dse compress runs no model"):
        compress_folder(write_llama(tmp_path / "llama"), LSQ)
    with pytest.raises(EvaluationError, match="compressing a single layer cannot do"):
        compress_layer(LSQ, np.ones((4, 4), np.float32))


def test_settings_are_read_from_the_recipe():
    text = "200,rate=0.01,batch=8,seed=3,distill=0.5,temperature=4/int4:group=32"
    found = TrainedRecipe.of("lsq", text)
    assert found.form.name == "int4:group=32"
    assert found.training == WeightTraining(
        steps=200, rate=0.01, batch=8, seed=3, distill=0.5, temperature=4.0
    )


def test_probabilities_train_a_network_as_its_logits_do():
    logits, inputs = network(), examples()
    shares = nn.Sequential(*network(), nn.Softmax(dim=1))
    stated = {"metrics": "loss", "outputs": "probabilities"}
    losses = [
        ByRecipe(model=net, data=inputs, quality=quality, recipe=LSQ)
        .evaluate(Batch.of([{}]))
        .columns["loss"][0]
        for net, quality in ((logits, "loss"), (shares, stated))
    ]
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


def test_a_single_output_is_trained_as_the_log_odds_of_class_one():
    inputs, labels = examples()
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
    found = [
        ByRecipe(model=net, data=(inputs, labels % 2), quality="accuracy", recipe=recipe)
        .evaluate(Batch.of([{}]))
        .columns["accuracy"][0]
        for recipe in ("format int8:channel", "lsq 120,rate=0.02/int8:channel")
    ]
    assert found[1] > found[0] + 0.05
