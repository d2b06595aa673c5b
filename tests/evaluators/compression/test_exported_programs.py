"""Archives of ``torch.export.save``, which are read without a pickle and run by known operators."""

from __future__ import annotations

import json
import warnings
import zipfile

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse.interop.deployment.targets import target_of
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_runner import outputs
from dse_evaluators.workloads.own.exported_module import load_exported
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.own.own_workload import workload_of_option
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import image_network, images

ANY = torch.export.Dim("n")
RECIPE = {"recipe": "gptq int4:channel", "activations": "int8"}


class Tagger(nn.Module):
    """Encoder of two inputs with attention, tied weights, and a constant in its graph."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(11, 16)
        self.attention = nn.MultiheadAttention(16, 2, batch_first=True)
        self.position = nn.Parameter(torch.randn(5, 16))
        self.head = nn.Linear(16, 11, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids, mask):
        signal = self.embed(ids) + self.position[: ids.shape[1]]
        found = self.attention(signal, signal, signal, key_padding_mask=mask == 0)[0]
        left, right = functional.layer_norm(signal + found, (16,)).chunk(2, dim=-1)
        kept = torch.where(mask[:, :, None] > 0, torch.cat([right, left], -1), torch.tensor(0.5))
        return {"logits": self.head(functional.relu(kept * 2.0, inplace=True))}


def _export(module, path, *args, axes=None, **named):
    given = axes or {name: {0: ANY} for name in named} or tuple({0: ANY} for _ in args)
    program = torch.export.export(module.eval(), args, named, dynamic_shapes=given)
    torch.export.save(program, path)
    return program


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Archives of a network for images, of an encoder, and of a network of fixed batches."""
    place = tmp_path_factory.mktemp("exported")
    _export(image_network(), place / "net.pt2", torch.zeros(4, 1, 8, 8))
    ids = torch.zeros(3, 5, dtype=torch.long)
    _export(Tagger(), place / "tagger.pt2", ids=ids, mask=torch.ones_like(ids))
    _export(nn.Linear(3, 2), place / "two.pt2", torch.zeros(2, 3), axes=({},))
    return place


def _measure(model, **options):
    made = ByRecipe(model=model, data=images(), quality=["accuracy", "loss"], **options)
    found = made.evaluate(Batch.of([{}]))
    assert not found.failures, found.failures
    return {name: column.tolist() for name, column in found.columns.items()}


def _outputs(made):
    """Return the inputs of the search split, and the outputs that a study measures."""
    measured = outputs(made._model, made.recipes({}), "search", Signals())
    return made._model.make()._task.data.inputs_of("search"), measured


def test_exported_network_has_the_metrics_of_its_module_to_the_last_bit(folder):
    assert _measure(str(folder / "net.pt2"), **RECIPE) == _measure(image_network(), **RECIPE)


def test_attention_with_two_inputs_and_tied_weights_runs_as_pytorch_runs_it(folder):
    own = load_exported(folder / "tagger.pt2")
    rng = torch.Generator().manual_seed(0)
    ids = torch.randint(0, 11, (6, 5), generator=rng)
    mask = (torch.rand(6, 5, generator=rng) > 0.3).long()
    mask[:, 0] = 1
    loaded = torch.export.load(folder / "tagger.pt2").module()
    assert torch.equal(own(ids=ids, mask=mask), loaded(ids=ids, mask=mask)["logits"])
    layout = model_ref(str(folder / "tagger.pt2")).layout
    weights = {"attention.in_proj_weight", "attention.out_proj.weight", "head.weight"}
    assert set(layout.layers) == weights
    assert layout.kept == ("position",)


def test_compressed_network_is_deployed_as_a_state_dict_of_its_module(folder):
    made = ByRecipe(model=str(folder / "net.pt2"), data=images(), recipe="format int4:channel")
    content = target_of("torch").write(made.deployed_model({})).content
    (folder / "out.pt").write_bytes(content)
    network = image_network()
    network.load_state_dict(torch.load(folder / "out.pt", weights_only=True), strict=False)
    inputs, measured = _outputs(made)
    with torch.inference_mode():
        found = network.eval()(torch.tensor(inputs)).numpy()
    np.testing.assert_allclose(found, measured, rtol=1e-5, atol=1e-5)


@pytest.mark.proof
def test_compressed_network_is_deployed_to_onnx(folder):
    runtime = pytest.importorskip("dse_evaluators.workloads.onnx_runtime")
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    made = ByRecipe(model=str(folder / "net.pt2"), data=images(), recipe="format int4:channel")
    content = target_of("onnx").write(made.deployed_model({})).content
    inputs, measured = _outputs(made)
    found = runtime.Session(content).run(inputs)[0]
    np.testing.assert_allclose(found, measured, rtol=1e-5, atol=1e-5)


def test_layers_of_an_exported_network_are_a_workload(folder):
    shaped = {"input": [1, 8, 8]}
    exported = workload_of_option({"file": str(folder / "net.pt2"), **shaped}).layers
    module = workload_of_option({"python": image_network(), **shaped}).layers
    assert [one.macs for one in exported] == [one.macs for one in module]
    with pytest.raises(SpecError, match=r"net\.pt2 needs the shape of its input"):
        workload_of_option(str(folder / "net.pt2"))


def test_fixed_number_of_examples_is_run_in_batches_or_refused(folder):
    own = load_exported(folder / "two.pt2")
    inputs = torch.randn(6, 3)
    assert torch.equal(own(inputs), torch.cat([own(inputs[p : p + 2]) for p in (0, 2, 4)]))
    with pytest.raises(EvaluationError, match="exactly 2 examples at a time"):
        own(inputs[:5])


def _altered(folder, target, change):
    """Copy an archive with its texts changed."""
    with zipfile.ZipFile(folder / "net.pt2") as archive, zipfile.ZipFile(target, "w") as copy:
        for info in archive.infolist():
            content = archive.read(info)
            if info.filename.endswith(".json"):
                content = json.dumps(change(json.loads(content))).encode()
            copy.writestr(info.filename, content)
    return str(target)


def _call(target):
    def change(content):
        if "graph_module" in content:
            content["graph_module"]["graph"]["nodes"][2]["target"] = target
        return content

    return change


def _pickle(content):
    for entry in content.get("config", {}).values():
        entry["use_pickle"] = True
    return content


def _train(content):
    if "graph_module" in content:
        for node in content["graph_module"]["graph"]["nodes"]:
            for one in node["inputs"]:
                if one["name"] == "training":
                    one["arg"] = {"as_bool": True}
    return content


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        (_call("torch.ops.aten.from_file.default"), "aten.from_file.default of the exported"),
        (_call("torch.ops.aten.rand.default"), "aten.rand.default of the exported program"),
        (_call("torch.ops.prims.iota.default"), "prims.iota.default of the exported program"),
        (_call("os.system"), "the operator os.system of the exported program is not read"),
        (_call("torch.ops.aten.relu.__class__"), "aten.relu.__class__ of the exported program"),
        (_pickle, "is a pickle, which could run code, and is never read"),
        (_train, "it was exported in training mode"),
        (lambda _: [], "has an entry of another form"),
    ],
)
def test_archive_that_asks_for_more_than_known_operators_is_refused(
    change, wanted, folder, tmp_path
):
    with pytest.raises(SpecError) as caught:
        model_ref(_altered(folder, tmp_path / "net.pt2", change))
    assert wanted in str(caught.value)
    assert caught.value.hint


def test_other_archives_are_refused_with_the_way_to_write_one(folder, tmp_path):
    content = (folder / "net.pt2").read_bytes()
    (tmp_path / "cut.pt2").write_bytes(content[: len(content) // 2])
    with zipfile.ZipFile(tmp_path / "old.pt2", "w") as archive:
        archive.writestr("serialized_exported_program.json", "{}")
    with zipfile.ZipFile(tmp_path / "packed.pt2", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("net/models/model.json", "{}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated
        torch.jit.script(nn.Linear(3, 2)).save(tmp_path / "script.pt")
    wanted = {
        "cut.pt2": "not a complete",
        "old.pt2": "an older PyTorch",
        "packed.pt2": "compressed",
    }
    for name, words in {**wanted, "script.pt": "pickle"}.items():
        with pytest.raises(SpecError, match=words) as caught:
            model_ref(str(tmp_path / name))
        assert "torch.export.save" in caught.value.hint
