"""The evaluator `compression.recipe` on the network that reads digits."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.workloads.models import MODELS

MODEL = "digits-cnn"
COUNT = len(MODELS[MODEL].layers)
LAYERWISE = ["int8:channel", "int3:channel", "int4:channel", "int2:channel", "int8"]
MEMBERS = {f"bits[{place}]": text for place, text in enumerate(LAYERWISE)}

OTHER_PROCESS = """
import json, sys
from dse.core.batch import Batch
from dse_evaluators.compression.recipe_evaluator import ByRecipe
got = ByRecipe(model="digits-cnn", recipe="format {bits}").evaluate(Batch.of(json.loads(sys.argv[1])))
print(json.dumps({name: column[0].hex() for name, column in got.columns.items()}))
"""


def reading(design=None, **options):
    got = ByRecipe(model=MODEL, **options).evaluate(Batch.of([design or {"unused": 1}]))
    assert not got.failures
    return {name: float(column[0]) for name, column in got.columns.items()}


def failure(design, **options):
    return ByRecipe(model=MODEL, **options).evaluate(Batch.of([design])).failures[0].reason


def test_left_alone_it_is_the_trained_network():
    alone = reading()
    assert alone["bits_per_weight"] == 32
    assert [alone[name] for name in ("divergence", "deviation", "mismatch")] == [0.0, 0.0, 0.0]
    assert alone["accuracy"] >= 0.97


def test_it_tells_its_workloads_quality_and_what_it_takes():
    quality = set(MODELS[MODEL].quality)
    assert set(reading()) == quality | {"size", "bits_per_weight", "deviation"}


def test_a_scale_of_sixteen_bits_for_each_filter_is_counted():
    filters, weights = 32 + 64 + 64 + 128 + 10, 89_632
    assert reading(recipe="format int4:channel")["bits_per_weight"] == pytest.approx(
        4 + 16 * filters / weights, rel=1e-12
    )


def test_fewer_bits_lose_more():
    found = [reading(recipe=f"format int{bits}:channel") for bits in (8, 4, 3, 2)]
    deviations = [one["deviation"] for one in found]
    assert deviations == sorted(deviations)
    assert found[-1]["loss"] > found[0]["loss"]


def test_output_aware_rounding_loses_less_than_rounding():
    plain, aware = reading(recipe="format int3:channel"), reading(recipe="gptq int3:channel")
    assert aware["deviation"] < plain["deviation"]
    assert aware["size"] == plain["size"]


def test_a_list_gives_each_layer_its_own_entry():
    names = MODELS[MODEL].layers
    told = {name: f"format {text}" for name, text in zip(names, LAYERWISE, strict=True)}
    assert reading(MEMBERS, recipe="format {bits}") == reading(layers=told)


def test_a_pattern_names_the_layers_with_another_recipe():
    mixed = reading(recipe="format int4:channel", layers={"conv*": "format int8:channel"})
    low, high = reading(recipe="format int4:channel"), reading(recipe="format int8:channel")
    assert low["size"] < mixed["size"] < high["size"]


def test_rounded_activations_cost_quality_and_no_bytes():
    whole, rounded = reading(), reading({"a": "int3"}, activations="{a}")
    assert rounded["deviation"] > 0
    assert rounded["size"] == whole["size"]


def test_search_and_test_are_other_examples():
    searched, tested = reading(recipe="format int3"), reading(recipe="format int3", split="test")
    assert searched["loss"] != tested["loss"]
    assert searched["size"] == tested["size"]


def test_another_process_measures_the_same_bits():
    here = {name: value.hex() for name, value in reading(MEMBERS, recipe="format {bits}").items()}
    command = [sys.executable, "-c", OTHER_PROCESS, json.dumps([MEMBERS])]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert json.loads(answer.stdout) == here


def test_what_cannot_be_done_to_a_layer_is_a_fault_that_names_it():
    reason = failure({"rank": 100}, recipe="svd {rank}/fp16")
    assert reason == "conv1.weight, 'svd 100/fp16': a rank of 100 is not in 1 to 9"


def test_blocks_that_do_not_fit_are_a_fault_of_their_row_only():
    batch = Batch.of([{"f": "int4:group=32"}, {"f": "int4:channel"}])
    got = ByRecipe(model=MODEL, recipe="format {f}").evaluate(batch)
    assert list(got.failures) == [0]
    assert got.columns["accuracy"][1] > 0.9


def test_it_reads_what_its_braces_name():
    made = ByRecipe(
        model=MODEL,
        recipe="prune {keep} > format {bits}",
        layers={"fc*": "svd {rank}/fp16"},
        activations="{signal}",
    )
    assert made.reads == {"keep", "bits", "rank", "signal"}


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"model": "digit-cnn"}, "digits-cnn"),
        ({"model": MODEL, "split": "tests"}, "test"),
        ({"model": MODEL, "recipe": "format int44"}, "int16"),
        ({"model": MODEL, "layers": {"cnv1*": "keep"}}, "conv1.weight"),
        ({"model": MODEL, "layers": ["conv1*"]}, "recipes by pattern"),
        ({"model": MODEL, "recipe": 8}, "format int8"),
        ({"model": MODEL, "activations": "itn8"}, "int8"),
        ({"model": MODEL, "kv_cache": "fp8_e4m33"}, "fp8_e4m3"),
    ],
)
def test_a_misspelt_option_is_answered_with_the_nearest_name(options, hint):
    with pytest.raises((PluginError, SpecError)) as error:
        ByRecipe(**options)
    assert hint in error.value.hint


def test_a_list_that_is_too_long_is_refused_before_it_is_run():
    longer = {**MEMBERS, f"bits[{COUNT}]": "int8"}
    with pytest.raises(SpecError, match="'bits' has 6 entries"):
        ByRecipe(model=MODEL, recipe="format {bits}").evaluate(Batch.of([longer]))


def test_smoothing_alone_changes_nothing():
    told = reading(recipe="keep", layers={"fc*": "smooth 0.5/fp32"})
    assert told["deviation"] < 1e-10


def test_smoothed_inputs_are_rounded_after_they_were_divided():
    plain = reading(layers={"fc*": "format fp32"}, recipe="keep", activations="int4")
    smooth = reading(layers={"fc*": "smooth 0.5/fp32"}, recipe="keep", activations="int4")
    assert smooth["deviation"] != plain["deviation"]


def test_a_convolution_cannot_be_smoothed():
    assert "fully connected" in failure({"unused": 1}, recipe="smooth 0.5/int8:channel")
