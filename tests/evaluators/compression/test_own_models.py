"""A user's own models: each runs in a study, and built-in ones read again give equal numbers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from dse import Space, Study
from dse.core.batch import Batch
from dse.errors import EvaluationError
from dse.schema.study.plan import plan_of
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_noise import Noise
from dse_evaluators.compression.recipe_size import Size
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.digits_cnn import digits_cnn
from dse_evaluators.workloads.network import passed_on, stages
from dse_evaluators.workloads.own.module_layers import calibration_rows
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import (
    MLP,
    SPACE,
    STUDY,
    image_network,
    images,
    vision_transformer,
    write_images,
    write_llama,
    write_onnx,
    write_study,
    write_table,
    write_tokens,
)


def metrics_of(study):
    study.run()
    assert {one.failure for one in study.engine.finished} == {None}
    return [dict(one.metrics) for one in study.engine.finished]


def test_a_study_of_a_users_file_takes_at_most_12_lines():
    assert len((SPACE + STUDY).splitlines()) <= 12


def test_onnx_network_with_depthwise_layers_runs_in_a_study(tmp_path):
    write_onnx(tmp_path / "net.onnx", image_network(), torch.zeros(1, 1, 8, 8))
    write_images(tmp_path / "data.npz")
    file = write_study(tmp_path, "model: net.onnx, data: data.npz, quality: accuracy")
    found = metrics_of(Study.open(file, storage="memory://"))
    assert len(found) == 2
    assert found[0]["quality.size"] > found[1]["quality.size"]


def test_llama_with_shared_key_heads_runs_in_a_study(tmp_path):
    write_llama(tmp_path / "llama")
    write_tokens(tmp_path / "text.npz")
    file = write_study(
        tmp_path, "model: ./llama, data: text.npz, quality: perplexity", "perplexity", "minimize"
    )
    found = metrics_of(Study.open(file, storage="memory://"))
    assert all(one["quality.perplexity"] > 1 for one in found)


def test_function_of_a_file_runs_on_a_table(tmp_path):
    (tmp_path / "net.py").write_text(MLP)
    write_table(tmp_path / "people.csv")
    file = write_study(
        tmp_path, 'model: {python: "net.py:make"}, data: people.csv, quality: [auc, f1]', "auc"
    )
    found = metrics_of(Study.open(file, storage="memory://"))
    assert all(0 <= one["quality.f1"] <= 1 for one in found)


def test_module_of_a_program_runs_in_a_study():
    def error_rate(outputs, targets):
        return float((outputs.argmax(axis=1) != targets).mean())

    study = Study(
        "vit",
        Space({"bits": ["int8:channel", "int2:channel"]}),
        evaluators={
            "quality": {
                "use": "compression.recipe",
                "model": vision_transformer(),
                "data": images(),
                "quality": [{"python": error_rate, "goal": "minimize"}, "accuracy"],
                "recipe": "format {bits}",
            }
        },
        minimize=["quality.error_rate", "quality.size"],
        optimizer="exhaustive",
        storage="memory://",
    )
    found = metrics_of(study)
    wrong = [one["quality.error_rate"] + one["quality.accuracy"] for one in found]
    assert wrong == pytest.approx([1, 1])


def test_uncompressed_model_equals_the_users_module():
    net, (inputs, targets) = image_network(), images()
    made = ByRecipe(model=net, data=(inputs, targets), quality="accuracy")._model.make()
    given = made.outputs(made.parameters, "test", _signals())
    with torch.inference_mode():
        wanted = net(torch.tensor(_inputs_of(made, "test"))).numpy()
    np.testing.assert_allclose(given, wanted, rtol=1e-6, atol=1e-6)


def test_built_in_network_read_again_gives_equal_numbers_to_the_last_bit():
    built_in = digits_cnn()
    made = ByRecipe(
        model=_digits_module(built_in),
        data={"arrays": _digits_data(built_in), "split": "split"},
        quality=["accuracy", "loss", "divergence"],
    )._model.make()
    own = made.outputs(made.parameters, "test", _signals())
    wanted = built_in.outputs(built_in.parameters, "test", _signals())
    np.testing.assert_array_equal(own, wanted)
    theirs = built_in.quality(wanted, wanted, "test")
    assert made.quality(own, own, "test") == {
        name: theirs[name] for name in ("accuracy", "loss", "divergence")
    }


def test_llama_attends_causally(tmp_path):
    made = _llama(tmp_path)
    tokens = torch.tensor(_inputs_of(made, "test"))
    changed = tokens.clone()
    changed[:, -1] = (changed[:, -1] + 1) % 32
    with torch.inference_mode():
        first, second = made._module(tokens), made._module(changed)
    torch.testing.assert_close(first[:, :-1], second[:, :-1])
    assert not torch.allclose(first[:, -1], second[:, -1])


def test_keys_and_values_of_a_llama_are_rounded(tmp_path):
    made = _llama(tmp_path)
    exact = made.outputs(made.parameters, "test", _signals())
    rounded = made.outputs(made.parameters, "test", _signals(kv_cache="int4:channel"))
    assert not np.array_equal(exact, rounded)


def test_keys_and_values_of_a_module_are_refused():
    made = ByRecipe(model=image_network(), data=images(), quality="accuracy")._model.make()
    with pytest.raises(EvaluationError, match="keys and values"):
        made.outputs(made.parameters, "test", _signals(kv_cache="int4:channel"))


def test_activations_of_convolutions_are_rounded():
    made = ByRecipe(model=image_network(), data=images(), quality="accuracy")._model.make()
    exact = made.outputs(made.parameters, "test", _signals())
    rounded = made.outputs(made.parameters, "test", _signals(activations="int4:channel"))
    assert not np.array_equal(exact, rounded)


def test_layer_that_a_hook_cannot_see_is_named_where_activations_are_rounded():
    made = ByRecipe(model=vision_transformer(), data=images(), quality="accuracy")._model.make()
    with pytest.raises(EvaluationError, match=r"self_attn\.out_proj\.weight"):
        made.outputs(made.parameters, "test", _signals(activations="int8:channel"))


def test_calibration_windows_give_the_outputs_of_a_depthwise_convolution():
    torch.manual_seed(0)
    layer = nn.Conv2d(4, 4, 3, padding=1, groups=4, bias=False)
    inputs = torch.randn(2, 4, 5, 5)
    rows = calibration_rows(layer, inputs).reshape(2, 25, 4, 9)
    given = np.einsum("npck,ck->ncp", rows, layer.weight.detach().numpy().reshape(4, 9))
    wanted = layer(inputs).detach().numpy().reshape(2, 4, 25)
    np.testing.assert_allclose(given, wanted, rtol=1e-4, atol=1e-5)


def test_onnx_and_module_get_the_same_calibration_inputs(tmp_path):
    net = image_network()
    write_onnx(
        tmp_path / "net.onnx",
        net,
        torch.zeros(1, 1, 8, 8),
        do_constant_folding=False,
        training=torch.onnx.TrainingMode.PRESERVE,
    )
    module = ByRecipe(model=net, data=images(), quality="accuracy")._model.make()
    file = ByRecipe(model=str(tmp_path / "net.onnx"), data=images(), quality="accuracy")
    seen, wanted = file._model.make().calibration(), module.calibration()
    name = "8.weight"
    np.testing.assert_allclose(seen[name], wanted[name], rtol=1e-4, atol=1e-5)


def test_sizes_and_noises_need_no_data():
    net = image_network()
    size = Size(model=net, recipe="format {bits}").evaluate(_batch())
    noise = Noise(model=net, recipe="format {bits}").evaluate(_batch())
    assert size.columns["size"][0] > 0
    assert 0 < noise.columns["noise"][0] < 1e-3


def test_content_of_the_files_is_part_of_the_identity(tmp_path):
    (tmp_path / "net.py").write_text(MLP)
    write_table(tmp_path / "people.csv")
    file = write_study(
        tmp_path, 'model: {python: "net.py:make"}, data: people.csv, quality: f1', "f1"
    )
    before = plan_of(file).identity["evaluators"]["quality"]["version"]
    (tmp_path / "net.py").write_text(MLP.replace("8", "9"))
    assert plan_of(file).identity["evaluators"]["quality"]["version"] != before


def test_check_never_imports_the_users_file(tmp_path):
    (tmp_path / "net.py").write_text("raise SystemExit('imported')\ndef make():\n    pass\n")
    write_table(tmp_path / "people.csv")
    file = write_study(
        tmp_path, 'model: {python: "net.py:make"}, data: people.csv, quality: f1', "f1"
    )
    bound = plan_of(file).pipeline.bound[0]
    assert "net.py" in bound.starts[0]
    assert not bound.pure


def _batch():
    return Batch.of([{"bits": "int8:channel"}])


def _signals(activations=None, kv_cache=None):
    def form(text):
        return None if text is None else format_of(text)

    return Signals(activations=form(activations), kv_cache=form(kv_cache))


def _inputs_of(made, split):
    return made._task.data.inputs_of(split)


def _llama(tmp_path):
    folder = write_llama(tmp_path / "llama")
    write_tokens(tmp_path / "text.npz")
    data = str(tmp_path / "text.npz")
    return ByRecipe(model=str(folder), data=data, quality="perplexity")._model.make()


def _digits_module(built_in):
    """The layers of ``digits-cnn`` as a user would write them."""

    class Digits(nn.Module):
        def __init__(self):
            super().__init__()
            for stage, affine in zip(stages(built_in.layers), built_in.affines, strict=True):
                shape = affine.weight.shape
                if stage.dense:
                    own = nn.Linear(shape[1], shape[0])
                else:
                    own = nn.Conv2d(
                        shape[1], shape[0], shape[2:], stage.stride, padding=stage.padding
                    )
                own.weight.data, own.bias.data = affine.weight.clone(), affine.bias.clone()
                self.add_module(stage.name, own)

        def forward(self, signal):
            for stage in stages(built_in.layers):
                own = getattr(self, stage.name)
                signal = own(signal.flatten(1) if stage.dense else signal)
                signal = passed_on(stage, signal)
            return signal

    return Digits()


def _digits_data(built_in):
    parts = [("search", built_in.judging["search"]), ("test", built_in.judging["test"])]
    parts.append(("calibration", built_in.calibrating))
    return {
        "inputs": np.concatenate([data.images for _, data in parts]),
        "targets": np.concatenate([data.labels for _, data in parts]),
        "split": np.concatenate([[name] * len(data.images) for name, data in parts]),
    }
