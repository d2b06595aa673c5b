"""Bit flips in a user's ONNX file: rates against enumeration, protections, mistakes."""

from __future__ import annotations

import numpy as np
import pytest

from dse import Study
from dse.core.batch import Batch
from dse.errors import DseError
from dse_evaluators.faults.bit_flips import BitFlips
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.onnx_resumed import ResumedGraph
from dse_evaluators.workloads.own.named_model import model_ref
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.faults.small_networks import (
    run,
    weights_of,
    write_embedding,
    write_examples,
    write_network,
)


@pytest.fixture
def options(tmp_path):
    weights = weights_of()
    model, data = write_network(tmp_path, weights), write_examples(tmp_path, weights)
    return {"model": model, "data": data, "quality": "accuracy"}


def test_all_flips_of_a_tiny_network_give_the_rate_of_enumeration(options):
    weights = weights_of()
    made = BitFlips(**options, format="bf16", trials=10_000, split="test")
    metrics = made.evaluate(Batch.of([{}])).columns
    rounded = [
        (one.view(np.uint32) + 0x7FFF + (one.view(np.uint32) >> 16 & 1)) >> 16 for one in weights
    ]
    stored = [(one << 16).astype(np.uint32).view(np.float32) for one in rounded]
    with np.load(options["data"]) as arrays:
        inputs = arrays["inputs"]
    chosen = workload_of(made._model)._task.data.inputs_of("test")
    assert len(chosen) < len(inputs)
    wanted = run(stored, chosen).argmax(axis=1)
    corrupt = []
    for layer, words in enumerate(rounded):
        for place in np.ndindex(words.shape):
            for bit in range(16):
                faulty = [one.copy() for one in rounded]
                faulty[layer][place] ^= np.uint32(1 << bit)
                values = [(one << 16).astype(np.uint32).view(np.float32) for one in faulty]
                with np.errstate(all="ignore"):
                    found = run(values, chosen)
                lost = not np.isfinite(found).all()
                corrupt.append(lost or (found.argmax(axis=1) != wanted).any())
    assert metrics["sdc_rate"][0] == pytest.approx(np.mean(corrupt))


def test_rows_of_an_embedding_that_no_input_names_do_not_corrupt(tmp_path):
    options, table, weight = write_embedding(tmp_path)
    made = BitFlips(**options, where="table", bits="sign", trials=100)
    rate = made.evaluate(Batch.of([{}])).columns["sdc_rate"][0]
    codes = np.array([(one, other) for one in range(4) for other in range(4)])[:12]
    wanted = (table[codes].mean(axis=1) @ weight).argmax(axis=1)
    corrupt = []
    for place in np.ndindex(table.shape):
        faulty = table.copy()
        faulty[place] *= -1
        found = (faulty[codes].mean(axis=1) @ weight).argmax(axis=1)
        corrupt.append((found != wanted).any())
    assert not any(corrupt[8:])
    assert rate == pytest.approx(np.mean(corrupt))
    assert rate > 0


@pytest.mark.parametrize("skip", [False, True])
def test_running_from_a_layer_on_equals_running_the_whole_model(tmp_path, skip):
    weights = weights_of((4, 4, 4, 4))
    model, data = write_network(tmp_path, weights, skip=skip), write_examples(tmp_path, weights)
    workload = workload_of(model_ref(model, data, "accuracy", runs=True))
    rng = np.random.default_rng(5)
    *_, last = workload.parameters.values()
    for layer, weight in workload.parameters.items():
        changed = (weight + rng.normal(size=weight.shape)).astype(np.float32)
        graph = ResumedGraph(workload.onnx_model(), layer, workload.onnx_batches("search"), weight)
        assert graph.together > 1 or weight is last
        tables = list(graph.run_each([weight, changed, weight]))
        found = workload.read_outputs(tables[1], "search")
        whole = workload.outputs({**workload.parameters, layer: changed}, "search", Signals())
        np.testing.assert_allclose(found, whole, rtol=1e-5, atol=1e-6)
    assert graph.share < 0.5  # the last layer leaves out the layers before it


def test_protections_cost_what_they_store_and_majority_corrects_all(options):
    made = BitFlips(**options, protection="{p}", trials=60)
    designs = [{"p": name} for name in ("none", "clip", "parity", "duplicate", "tmr")]
    found = made.evaluate(Batch.of(designs)).columns
    ends = 2 * 2 * 3 * 32 / (18 * 32)  # of two layers with 18 weights, each in three copies
    assert found["bits_overhead"].tolist() == [0, ends, 1 / 32, 9 / 32, 2]
    assert found["time_overhead"].tolist() == [0, 1, 1, 1, 2.5]
    assert found["sdc_rate"][4] == 0
    assert found["sdc_rate"][0] > 0
    assert (found["sdc_low"] <= found["sdc_rate"]).all()
    assert (found["sdc_rate"] <= found["sdc_high"]).all()


def test_rate_is_the_sum_over_layers_weighted_by_their_bits(options):
    made = BitFlips(**options, protection="{p}", where="{where}", trials=60)
    designs = [
        {"p[0]": "none", "p[1]": "tmr", "where": "*"},
        {"p[0]": "none", "p[1]": "none", "where": "w0"},
    ]
    apart = made.evaluate(Batch.of(designs)).columns["sdc_rate"]
    assert apart[0] == pytest.approx(apart[1] * 12 / 18)


def test_equal_seeds_give_equal_flips_and_other_seeds_others(options):
    made = BitFlips(**options, trials=40)
    found = made.evaluate(Batch.of([{"seed": 1}, {"seed": 1}, {"seed": 2}])).columns["accuracy"]
    assert found[0] == found[1] != found[2]


def test_layers_are_ranked_by_what_they_add(options):
    ranked = BitFlips(**options, trials=60).rank_layers({})
    added = [one.sdc.value * one.code_bits for one in ranked]
    assert added == sorted(added, reverse=True)
    assert {one.layer for one in ranked} == {"w0", "w1"}


def test_corruptions_concentrate_in_the_high_exponent_bit(options):
    made = BitFlips(**options, bits="{bit}", trials=18)
    found = made.evaluate(Batch.of([{"bit": 30}, {"bit": 0}])).columns["sdc_rate"]
    assert found[0] > 0.5
    assert found[1] == 0


def test_rate_of_one_flips_every_bit_and_majority_agrees_on_it(options):
    designs = Batch.of([{"p": "none"}, {"p": "tmr"}])
    made = BitFlips(**options, format="int8:tensor", protection="{p}", rate=1.0, trials=2)
    found = made.evaluate(designs).columns
    assert found["accuracy"][0] == found["accuracy"][1]
    rare = BitFlips(**options, format="int8:tensor", protection="{p}", rate=1e-3, trials=30)
    assert rare.evaluate(designs).columns["sdc_rate"][1] == 0


def test_torch_module_runs_as_a_whole(options):
    import torch

    net = torch.nn.Sequential(*(torch.nn.Linear(*one.shape, bias=False) for one in weights_of()))
    made = BitFlips(model=net, data=options["data"], quality="accuracy", trials=2, examples=8)
    assert 0 <= made.evaluate(Batch.of([{}])).columns["sdc_rate"][0] <= 1


MISTAKES = {
    "rate above 1": ({"rate": 1.5}, "above 0 and at most 1"),
    "rate of zero": ({"rate": 0.0}, "above 0 and at most 1"),
    "unknown layer": ({"layers": {"w00": "tmr"}}, "did you mean 'w0'"),
    "flips nowhere": ({"where": "w00"}, "did you mean 'w0'"),
    "unknown protection": ({"protection": "partiy"}, "did you mean 'parity'"),
    "no exponent": (
        {"format": "int8", "protection": "duplicate"},
        "no exponent, which duplicate protects",
    ),
    "no mantissa": ({"format": "int8", "bits": "mantissa"}, "int8 has no mantissa"),
    "no such bit": ({"format": "int8", "bits": "8"}, "0, the lowest, to 7"),
    "no such field": ({"bits": "exponents"}, "did you mean 'exponent'"),
    "unknown format": ({"format": "fp9_e4m3"}, "did you mean"),
    "no flips": ({"trials": 0}, "trials"),
    "unknown criterion": ({"criterion": "acuracy"}, "did you mean 'accuracy'"),
    "negative tolerance": ({"tolerance": -0.1}, "from 0"),
    "all predictions may change": ({"tolerance": 1.0}, "below 1"),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_mistake_is_one_error_that_names_the_mend(options, case):
    wrong, mend = MISTAKES[case]
    with pytest.raises(DseError) as caught:
        BitFlips(**{**options, **wrong})
    assert mend in f"{caught.value} {caught.value.hint}"


def test_shipped_model_has_its_own_examples():
    with pytest.raises(DseError, match="digits-cnn has its own examples"):
        BitFlips(model="digits-cnn", examples=8)


STUDY = """\
study: mine
space: space.yaml
evaluators:
  faults: {use: faults.bit-flips, model: net.onnx, data: data.npz, quality: accuracy, protection: "{protection}",
           trials: 20}
objectives: [{minimize: faults.sdc_rate}, {minimize: faults.bits_overhead}]
optimizer: exhaustive
budget: {trials: 3}
"""
SPACE = """\
space: protections
parameters:
  protection: {each: 2, choice: [none, parity, tmr]}
"""


def test_study_of_a_users_file_searches_protections_by_layer(options, tmp_path):
    (tmp_path / "study.yaml").write_text(STUDY)
    (tmp_path / "space.yaml").write_text(SPACE)
    study = Study.open(tmp_path / "study.yaml", storage="memory://")
    study.run()
    assert {one.failure for one in study.engine.finished} == {None}


def test_declared_sizes_of_flips_fall_with_protection(options):
    made = BitFlips(**options, protection="{p}")
    features = made.parts["sdc_rate"].features
    assert features is not None
    sizes = features(Batch.of([{"p": "none"}, {"p": "tmr"}]))
    assert (sizes[0] > 0).all()
    assert not sizes[1].any()
