"""Learned rotations stay orthogonal, leave the decoder's function, and fit its rounding."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dse.errors import SpecError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.workloads.models import workload_of
from dse_evaluators.workloads.own.families.learned_rotation import turn_matrix
from tests.evaluators.compression.test_rotations import write_decoder

LEARNED = "learned 12/int3:channel"
KEPT = {"model.embed*": "keep", "lm_head*": "keep"}


def evaluator(folder, rotation, recipe="keep", **options):
    data = str(folder.parent / "tokens.npz")
    return ByRecipe(
        model=str(folder), data=data, recipe=recipe, layers=KEPT, rotation=rotation, **options
    )


def test_a_turn_is_the_cayley_transform_of_the_papers_direction():
    rng = np.random.default_rng(0)
    matrix, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    slope, momentum = rng.normal(size=(2, 6, 6))
    found = torch.tensor(matrix)
    after = turn_matrix(found, torch.tensor(slope), torch.tensor(momentum), 0.01)
    pulled = 0.9 * momentum - slope  # Li et al. 2020, algorithm 1, lines 5 to 8
    wide = pulled @ matrix.T - 0.5 * matrix @ (matrix.T @ pulled @ matrix.T)
    skew = wide - wide.T
    step = min(0.01, 2 * 0.5 / np.linalg.norm(skew))
    eye = np.eye(6)
    wanted = np.linalg.inv(eye - step / 2 * skew) @ (eye + step / 2 * skew) @ matrix  # eq. 2
    np.testing.assert_allclose(found, wanted, atol=1e-12)
    np.testing.assert_allclose(found @ found.T, eye, atol=1e-12)
    np.testing.assert_allclose(after, skew @ matrix, atol=1e-12)


def test_turns_against_the_gradient_find_the_nearest_rotation():
    rng = np.random.default_rng(1)
    goal, _ = np.linalg.qr(rng.normal(size=(5, 5)))
    goal = torch.tensor(goal * np.sign(np.linalg.det(goal)))
    found, momentum = torch.eye(5, dtype=torch.float64), torch.zeros(5, 5, dtype=torch.float64)
    for step in range(200):
        momentum = turn_matrix(found, 2 * (found - goal), momentum, 0.1 * (1 - step / 200))
    assert float((found - goal).abs().max()) < 0.02


@pytest.mark.parametrize(
    ("family", "changes"), [("llama", {"attention_bias": True}), ("phi3", {"pad_token_id": 0})]
)
def test_a_learned_rotation_leaves_the_function_of_the_decoder(tmp_path, family, changes):
    folder = write_decoder(tmp_path / "net", model_type=family, **changes)
    found = evaluator(folder, LEARNED)
    assert found._measure_design({})["deviation"] == 0.0  # of the rotated decoder from itself
    rotated, plain = (workload_of(one._model) for one in (found, evaluator(folder, "none")))
    tokens = torch.tensor(plain._task.data.inputs_of("test"))
    both = [
        torch.func.functional_call(
            plain._module, {n: torch.tensor(a) for n, a in one.parameters.items()}, (tokens,)
        ).detach()
        for one in (plain, rotated)
    ]
    assert float((both[0] - both[1]).abs().max()) < 2e-5 * float(both[0].abs().max())
    start = workload_of(evaluator(folder, "hadamard")._model).parameters["lm_head.weight"]
    assert not np.allclose(rotated.parameters["lm_head.weight"], start, atol=0.01)


def test_learned_rotations_round_better_on_held_out_tokens_than_where_they_start(tmp_path):
    folder = write_decoder(tmp_path / "net")
    random, learned = (
        evaluator(folder, one, "format int3:channel", split="test")._measure_design({})
        for one in ("hadamard", LEARNED)
    )
    assert learned["deviation"] < random["deviation"]


@pytest.mark.parametrize(
    ("rotation", "problem"),
    [
        ("learned", "there is no rotation"),
        ("learned 9", "there is no rotation"),
        ("learned 9,rate=1/int4", "there is no rotation"),
        ("learned 9/int400", "int400"),
        ("lerned 9/int4", "there is no rotation"),
    ],
)
def test_a_wrong_rotation_is_refused_in_words(tmp_path, rotation, problem):
    folder = write_decoder(tmp_path / "net")
    with pytest.raises(SpecError) as caught:
        evaluator(folder, rotation)
    assert problem in str(caught.value)
    with pytest.raises(SpecError, match="there is no rotation"):
        compress_folder(folder, "format int4", rotation=LEARNED)
