"""BFV against SEAL, the security standard, and clear errors of what cannot work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.private_inference.bfv import Bfv
from dse_evaluators.private_inference.bfv_parameters import RINGS, SECURE_BITS, plain_modulus
from dse_evaluators.private_inference.bfv_run import BfvRun
from dse_evaluators.private_inference.packed_layer import SCHEDULES
from dse_evaluators.private_inference.seal_session import BfvParameters, SealSession
from dse_evaluators.private_inference.unit_times import COLUMNS, read_unit_times

SMALL = {"height": 8, "width": 8, "channels": 6, "filters": 5, "window": 3}
DENSE = {"height": 1, "width": 1, "channels": 20, "filters": 12}
WIDE = {"height": 28, "width": 28, "channels": 3, "filters": 4, "window": 3}
DEPTHWISE = {"height": 4, "width": 4, "channels": 8, "filters": 8, "window": 3, "groups": 8}
USUAL = {
    "ring": 4096, "data_primes": 2, "prime_bits": 36, "plain_bits": 18,
    "weight_bits": 4, "activation_bits": 4,
}  # fmt: skip
COUNTED = ("rotations", "products", "additions")


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("shape", [SMALL, DENSE, WIDE, DEPTHWISE])
def test_layers_decrypt_on_seal_with_as_many_operations_and_as_much_noise(shape, schedule):
    design = Batch.of([{**USUAL, "schedule": schedule}])
    measured = BfvRun(shape=shape, repeats=1).evaluate(design)
    modelled = Bfv(shape=shape).evaluate(design)
    assert not measured.failures
    assert not modelled.failures
    for name in COUNTED:
        assert measured.columns[name][0] == modelled.columns[name][0]
    # One key pair differs from another by a fourth of a bit: four standard deviations.
    assert abs(measured.columns["noise_budget"][0] - modelled.columns["noise_budget"][0]) < 1.0


def test_a_budget_is_measured_to_a_fraction_of_a_bit():
    parameters = BfvParameters(ring=4096, data_primes=2, prime_bits=36, plain_bits=20)
    session = SealSession(parameters, [], swap=False)
    ciphertext = session.encrypt(list(range(4096)))
    budget = session.measure_budget(ciphertext)
    assert int(budget) == session.budget(ciphertext)
    tripled = session.multiply(ciphertext, session.api.Plaintext("3"))
    assert session.measure_budget(tripled) == pytest.approx(budget - np.log2(3), abs=0.04)


def test_what_the_model_refuses_for_noise_uses_its_budget_up_on_seal():
    design = Batch.of([{**USUAL, "data_primes": 1}])
    assert Bfv(shape=SMALL).evaluate(design).failures[0].reason.startswith("noise leaves a budget")
    assert BfvRun(shape=SMALL, repeats=1).evaluate(design).failures[0].reason == "budget used up"


@settings(max_examples=200)
@given(
    ring=st.sampled_from(RINGS),
    primes=st.integers(1, 16),
    width=st.integers(24, 60),
    level=st.sampled_from([128, 192, 256]),
)
def test_no_sound_design_has_a_larger_modulus_than_the_standard_allows(ring, primes, width, level):
    design = {**USUAL, "ring": ring, "data_primes": primes, "prime_bits": width}
    found = Bfv(shape=SMALL, security=level).evaluate(Batch.of([design]))
    assert found.failures or (primes + 1) * width <= SECURE_BITS[level][ring]


@pytest.mark.parametrize(("ring", "bits"), [(2048, 17), (4096, 20), (8192, 30), (32768, 17)])
def test_plaintext_modulus_is_the_one_that_seal_takes(ring, bits):
    from tenseal import sealapi

    assert plain_modulus(ring, bits) == sealapi.PlainModulus.Batching(ring, bits).value()


def test_plaintext_modulus_that_no_operands_fit_is_refused_before_the_study():
    evaluator = Bfv(shape=SMALL, weight_bits=8)
    with pytest.raises(SpecError, match="does not hold the sums of the layer") as caught:
        evaluator.check_values({"plain_bits": [16, 18], "activation_bits": [8]})
    assert "plain_bits of 21 or more" in str(caught.value.hint)


def test_plaintext_modulus_that_does_not_fit_is_a_reason():
    design = Batch.of([{**USUAL, "weight_bits": 8, "activation_bits": 8}])
    reason = Bfv(shape=SMALL).evaluate(design).failures[0].reason
    assert reason == (
        "plain_bits is 18, and sums of the layer need 20.7 bits: 54 products of 8 and 8 bits"
    )


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, "neither workload nor shape"),
        ({"workload": "digits-cnn", "layer": "conv9"}, "no layer 'conv9'"),
        ({"shape": {"height": 4}}, "shape has no width"),
        ({"shape": {**SMALL, "windows": 3}}, "no key 'windows'"),
        ({"shape": {**SMALL, "groups": 4}}, "4 groups do not divide"),
        ({"shape": SMALL, "layer": "conv1"}, "shape stands beside"),
        ({"shape": SMALL, "security": 100}, "security is 100"),
        ({"shape": SMALL, "times": "absent.csv"}, "there is no file absent.csv"),
    ],
)
def test_wrong_options_are_refused(options, problem):
    with pytest.raises(SpecError, match=problem):
        Bfv(**options)


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ("4096,2,0,1,1,1,1,1", "rotation_s is '0'"),
        ("4000,2,1,1,1,1,1,1", "ring is 4000"),
        ("4096,2,1,1,1,1,1,1\n4096,2,1,1,1,1,1,1", "listed twice"),
    ],
)
def test_wrong_rows_of_unit_times_are_named_by_their_line(tmp_path, row, problem):
    file = tmp_path / "times.csv"
    file.write_text(",".join(COLUMNS) + "\n" + row + "\n")
    with pytest.raises(SpecError, match=problem) as caught:
        read_unit_times(file)
    assert str(caught.value.where).startswith(f"{file}:")


def test_times_of_the_user_make_the_latency(tmp_path):
    file = tmp_path / "times.csv"
    file.write_text(",".join(COLUMNS) + "\n4096,2,100,10,1,0.1,0.01,0.001\n")
    found = Bfv(shape=DENSE, times=str(file), weights_in_ntt=False).evaluate(Batch.of([USUAL]))
    assert found.columns["latency"][0] == pytest.approx(30 * 100 + 30 * 10 + 31)


def test_network_with_one_set_of_parameters_is_the_sum_of_its_layers():
    design = Batch.of([{**USUAL, "ring": 8192, "prime_bits": 54}])
    names = ["conv1", "conv2", "conv3", "fc1", "fc2"]
    layers = [Bfv(workload="digits-cnn", layer=name).evaluate(design).columns for name in names]
    whole = Bfv(workload="digits-cnn").evaluate(design).columns
    assert whole["latency"][0] == pytest.approx(np.sum([one["latency"] for one in layers]))
    assert whole["noise_budget"][0] == min(one["noise_budget"][0] for one in layers)
