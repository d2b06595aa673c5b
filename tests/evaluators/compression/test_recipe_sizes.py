"""What a compressed model takes is what it takes when it is written."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.compression import recipe_runner
from dse_evaluators.compression.model_layers import write_model
from dse_evaluators.compression.operators.bundle import unbundle_layers
from dse_evaluators.compression.operators.record import Record
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.recipe_size import Size
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.workload import Signals

MODEL = "digits-cnn"
RECIPES = [
    "keep",
    "format fp32",
    "format int4:group=32,asym,tail=short",
    "format mx:e2m1,tail=short",
    "format kmeans:3",
    "format adaptivfloat:6,3",
    "format ternary",
    "prune 0.3 > format int8:channel",
    "prune 0.2 > huffman kmeans:4",
    "blocks 0.5/2x1 > format fp16",
    "huffman int4:channel",
    "gptq int3:channel",
    "awq int3:channel",
    "svd 5/fp16",
    "whitened 5/int8:channel",
    "corrected 4/int2:channel",
]


@pytest.mark.parametrize("recipe", RECIPES)
def test_read_back_from_its_bytes_it_gives_the_same_outputs_and_is_as_long_as_it_said(recipe):
    workload = workload_of(MODEL)
    whole = dict.fromkeys(workload.compressible, recipe)
    data = write_model(MODEL, whole)
    parameters = unbundle_layers(Record.from_bytes(data))
    again = workload.outputs(parameters, "search", Signals())
    said = recipe_runner.measure_recipes(MODEL, whole, "search", Signals())
    told = recipe_runner.outputs(MODEL, whole, "search", Signals())
    assert np.array_equal(again.view(np.uint32), told.view(np.uint32))
    assert said["size"] == len(data)


def test_layers_with_different_recipes_are_written_as_they_were_measured():
    made = ByRecipe(model=MODEL, recipe="gptq int3:channel", layers={"conv*": "format fp16"})
    found = made.evaluate(Batch.of([{"unused": 1}]))
    assert found.columns["size"][0] == len(write_model(MODEL, made.recipes({})))


def both(design, **options):
    batch = Batch.of([design])
    run = ByRecipe(model=MODEL, **options).evaluate(batch).columns
    known = Size(model=MODEL, **options).evaluate(batch).columns
    return [[float(of[name][0]) for name in ("size", "bits_per_weight")] for of in (run, known)]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_size_is_known_without_running_the_model(recipe):
    measured, known = both({"unused": 1}, recipe=recipe)
    assert known == measured


def test_the_size_of_a_list_of_recipes_is_known():
    lists = {f"bits[{place}]": f"int{bits}" for place, bits in enumerate((8, 7, 3))}
    measured, known = both(lists, recipe="format {bits}", layers={"fc*": "gptq int4"})
    assert known == measured


def test_of_many_designs_each_is_as_large_as_by_itself():
    rows = [{"bits": f"int{2 + row % 7}"} for row in range(40)]
    made = Size(model=MODEL, recipe="format {bits}")
    together = made.evaluate(Batch.of(rows)).columns["size"]
    alone = [made.evaluate(Batch.of([row])).columns["size"][0] for row in rows]
    assert together.tolist() == alone


def test_what_does_not_fit_a_layer_is_a_fault_of_the_rows_that_say_it():
    rows = [{"bits": text} for text in ("int4:group=32", "int4", "int4:group=32")]
    got = Size(model=MODEL, recipe="format {bits}").evaluate(Batch.of(rows))
    assert sorted(got.failures) == [0, 2]
    assert got.failures[2].reason.startswith("conv1.weight, 'format int4:group=32'")
