"""Layers calibrated in order get the inputs that the compressed layers before them give."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.errors import SpecError
from dse_evaluators.compression.operators.reading import restore_tensor
from dse_evaluators.compression.operators.recipe import compress_layer
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.workloads.own.safetensors_model import load_folder
from tests.evaluators.compression.test_rotations import write_decoder

RECIPE = "gptq int3:group=8"
KEPT = {"model.embed*": "keep", "lm_head*": "keep"}


def _values(folder, **options):
    data = str(folder.parent / "tokens.npz")
    found = ByRecipe(model=str(folder), data=data, recipe=RECIPE, layers=KEPT, **options)
    tensors = found.deployed_model({}).tensors
    return {name: one.values for name, one in tensors.items()}, found


def test_second_block_is_calibrated_by_outputs_of_the_compressed_first(tmp_path):
    folder = write_decoder(tmp_path / "net")
    given, source = _values(folder, calibration="sequential")
    workload = load_folder(folder, "net", None, ())
    first = {name: one for name, one in given.items() if ".layers.0." in name}
    tensors = {name: torch.tensor(one) for name, one in {**workload.parameters, **first}.items()}
    name = "model.layers.1.self_attn.q_proj.weight"
    seen = []
    module = workload._module
    handle = module.model.layers[1].self_attn.q_proj.register_forward_pre_hook(
        lambda _, args: seen.append(args[0].flatten(0, -2).numpy())
    )
    tokens = torch.tensor(source._model.data.load().inputs_of("calibration"))
    torch.func.functional_call(module, tensors, (tokens,))
    handle.remove()
    wanted = restore_tensor(compress_layer(RECIPE, workload.parameters[name], seen[0]))
    # Batches of another size round differently, so a few codes may differ by one step.
    assert np.mean(np.isclose(given[name], wanted, atol=1e-4)) > 0.98
    independent, _ = _values(folder)
    assert np.mean(np.isclose(given[name], independent[name], atol=1e-4)) < 0.98


def test_first_block_does_not_depend_on_the_order(tmp_path):
    folder = write_decoder(tmp_path / "net")
    ordered, independent = _values(folder, calibration="sequential")[0], _values(folder)[0]
    for name in (one for one in ordered if ".layers.0." in one):
        np.testing.assert_array_equal(ordered[name], independent[name])


def test_metrics_are_those_of_the_deployed_weights(tmp_path):
    folder = write_decoder(tmp_path / "net")
    given, source = _values(folder, calibration="sequential")
    measured = source._measure_design({})
    plain = _values(folder)[1]._measure_design({})
    assert source.version != _values(folder)[1].version
    assert measured["size"] == plain["size"]
    assert measured["deviation"] != plain["deviation"]
    assert given.keys() == source.deployed_model({}).tensors.keys()


@pytest.mark.parametrize("others", ["keep", "format int4:channel"])
def test_streamed_blocks_equal_those_of_the_model_as_a_unit(tmp_path, others):
    folder = write_decoder(tmp_path / "net")
    kept = dict.fromkeys(KEPT, others)
    source = ByRecipe(
        model=str(folder),
        data=str(tmp_path / "tokens.npz"),
        recipe=RECIPE,
        layers=kept,
        calibration="sequential",
    )
    tokens = source._model.data.load().inputs_of("calibration")
    wanted = source.deployed_model({}).tensors
    found = compress_folder(folder, RECIPE, tokens, others=others, sequential=True)
    for name, tensor in found:
        np.testing.assert_array_equal(tensor.values, wanted[name].values)


def test_calibration_in_order_is_refused_where_it_has_no_effect(tmp_path):
    folder = write_decoder(tmp_path / "net")
    with pytest.raises(SpecError, match="uses no calibration"):
        compress_folder(folder, "format int4:group=8", sequential=True)
    with pytest.raises(SpecError, match="no calibration 'sequentiel'"):
        ByRecipe(model="shakespeare-lm", calibration="sequentiel")
    with pytest.raises(SpecError, match="calibration does not apply to shakespeare-lm"):
        ByRecipe(model="shakespeare-lm", calibration="sequential")
    data = str(folder.parent / "tokens.npz")
    with pytest.raises(SpecError, match="no recipe uses calibration inputs"):
        ByRecipe(model=str(folder), data=data, recipe="format int4", calibration="sequential")
