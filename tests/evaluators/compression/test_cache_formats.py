"""Keys and values in formats of their own, and of each block."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import EvaluationError, SpecError
from dse_evaluators.compression.cache_size import CacheSize
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.signal_formats import count_attention
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.own.safetensors_model import load_folder
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import write_llama, write_tokens

LM = "shakespeare-lm"
COARSE = format_of("int2:channel")


def outputs(**signals):
    model = workload_of(LM)
    return model.outputs(model.parameters, "search", Signals(**signals))


def measured(design, **options):
    made = ByRecipe(model=LM, recipe="keep", **options)
    found = made.evaluate(Batch.of([design]))
    assert not found.failures
    return found.columns["deviation"][0]


def test_one_format_for_keys_and_values_is_that_of_the_cache():
    both = outputs(kv_cache=COARSE)
    assert np.array_equal(both, outputs(keys=(COARSE,), values=(COARSE,)))
    assert np.array_equal(both, outputs(keys=(COARSE,) * 3, kv_cache=COARSE))


def test_formats_of_keys_values_and_blocks_are_applied_where_they_belong():
    places = [
        {part: tuple(COARSE if place == block else None for place in range(3))}
        for part in ("keys", "values")
        for block in range(3)
    ]
    plain = outputs()
    found = [np.abs(outputs(**place) - plain).max(axis=1) for place in places]
    assert all((one > 0).mean() > 0.9 for one in found)
    assert len({one.tobytes() for one in found}) == 6


def test_a_study_chooses_formats_of_each_block():
    lists = {"k[0]": "keep", "k[1]": "int4:channel", "k[2]": "int2:channel", "v": "int8:channel"}
    found = measured(lists, keys="{k}", values="{v}")
    wanted = outputs(
        keys=(None, format_of("int4:channel"), COARSE), values=(format_of("int8:channel"),)
    )
    plain = outputs().astype(np.float64)
    assert found == pytest.approx(((wanted - plain) ** 2).mean() / (plain**2).mean(), rel=1e-9)


def test_values_alone_take_the_place_of_the_cache():
    design = {"v": "keep", "both": "int3:channel"}
    assert measured(design, kv_cache="{both}", values="{v}") == measured(
        {"k": "int3:channel"}, keys="{k}"
    )


def test_a_decoder_of_the_user_has_formats_of_each_block(tmp_path):
    folder = write_llama(tmp_path / "llama")
    write_tokens(tmp_path / "text.npz")
    options = {"model": str(folder), "data": f"{tmp_path}/text.npz"}
    made = ByRecipe(recipe="keep", keys="{k}", values="{v}", **options)
    assert count_attention(made._model) == 1
    designs = [{"k": k, "v": v} for k, v in (("int2", "keep"), ("keep", "int2"), ("keep", "keep"))]
    keys, values, none = made.evaluate(Batch.of(designs)).columns["deviation"]
    assert min(keys, values) > 0 == none
    assert keys != values
    with pytest.raises(SpecError, match="'k' has 2 elements, but keys need one for each of the 1"):
        made.check_values({"k[0]": ["int8"], "k[1]": ["int8"], "v": ["keep"]})


def test_lists_of_another_length_are_refused(tmp_path):
    folder = write_llama(tmp_path / "llama")
    module = load_folder(folder, "llama", None, ())._module
    from dse_evaluators.workloads.own.module_layers import rounding_cache

    signals = Signals(keys=(COARSE, COARSE))
    with (
        pytest.raises(EvaluationError, match="keys have 2 formats, but the model has 1 block"),
        rounding_cache(module, signals),
    ):
        pass


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kv_cache": "int8", "keys": "int4", "values": "int4"}, "kv_cache: int8 has no effect"),
        ({"keys": "int99"}, "int99"),
        ({"model": "digits-cnn", "values": "int8"}, "digits-cnn has no attention"),
    ],
)
def test_mistakes_are_named_before_a_run(options, words):
    with pytest.raises(SpecError, match=words):
        ByRecipe(**{"model": LM, "recipe": "keep", **options})


def test_size_counts_keys_and_values_apart():
    made = CacheSize(keys="{k}", values="{v}", blocks=2, heads=1, width=32, context=4)
    designs = [
        {"k[0]": "keep", "k[1]": "int8:channel", "v": "int4:channel"},
        {"k[0]": "fp16", "k[1]": "fp16", "v": "fp16"},
    ]
    sizes = made.evaluate(Batch.of(designs)).columns["cache"]
    vectors = 4 * np.array([32 * 32 + 32 * 8 + 16 + 2 * (32 * 4 + 16), 4 * 32 * 16])
    assert sizes.tolist() == (vectors / 8).tolist()
    assert made.reads == {"k", "v"}
    with pytest.raises(SpecError, match="one for each of the 2 blocks"):
        made.check_values({"k[0]": ["fp16"], "v": ["fp16"]})
