"""GPTQ with activation order, against the equations of the paper."""

from __future__ import annotations

import numpy as np
import pytest

from dse_evaluators.compression.operators.dense import Dense
from dse_evaluators.compression.operators.gptq import Gptq
from dse_evaluators.compression.operators.inputs import output_error
from dse_evaluators.compression.operators.reading import restore_tensor

GROUP = 16
TEXT = f"int4:group={GROUP},scale=fp32"


def by_equations(weight, inputs, damping=0.01):
    """Quantize by GPTQ eq. 2 and 3: one input at a time, with an explicit inverse Hessian."""
    left = weight.astype(np.float64)
    groups = weight.reshape(len(weight), -1, GROUP)
    scales = np.repeat(np.abs(groups).max(axis=2) / 7, GROUP, axis=1).astype(np.float32)
    hessian = 2 * inputs.astype(np.float64).T @ inputs
    hessian += damping * np.diag(hessian).mean() * np.eye(len(hessian))
    given = np.zeros_like(left)
    rest = list(np.argsort(-np.diag(hessian), kind="stable"))
    while rest:
        inverse = np.linalg.inv(hessian[np.ix_(rest, rest)])
        now = rest[0]
        given[:, now] = np.clip(np.rint(left[:, now] / scales[:, now]), -7, 7) * scales[:, now]
        lost = (left[:, now] - given[:, now]) / inverse[0, 0]
        left[:, rest] -= np.outer(lost, inverse[0])
        rest = rest[1:]
    return given


@pytest.fixture(scope="module")
def uneven():
    """Return weights (24, 80) and correlated inputs of very different magnitudes (300, 80)."""
    rng = np.random.default_rng(3)
    spread = rng.normal(size=(80, 80)) * np.exp(rng.normal(size=80))
    weight = rng.normal(size=(24, 80)).astype(np.float32)
    return weight, (rng.normal(size=(300, 80)) @ spread).astype(np.float32)


def test_columns_are_quantized_as_the_equations_say(uneven):
    given = restore_tensor(Gptq(TEXT, act_order=True)(*uneven))
    wanted = by_equations(*uneven)
    assert np.allclose(given, wanted, rtol=1e-6, atol=1e-6)
    assert not np.allclose(given, restore_tensor(Gptq(TEXT)(*uneven)), atol=1e-3)


def test_groups_and_scales_stay_those_of_plain_rounding(uneven):
    weight, inputs = uneven
    ordered, plain = Gptq(TEXT, act_order=True)(weight, inputs), Dense(TEXT)(weight)
    assert ordered.cost == plain.cost
    assert ordered.sections[1] == plain.sections[1]  # scales


def test_columns_with_large_inputs_first_cut_the_output_error(uneven):
    weight, inputs = uneven
    plain, ordered = (
        restore_tensor(Gptq(TEXT, act_order=o)(weight, inputs)) for o in (False, True)
    )
    assert output_error(weight, ordered, inputs) < output_error(weight, plain, inputs)
