"""Rotations folded into a decoder leave its outputs the same, and spread its outliers."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from dse.errors import DseError, SpecError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.workloads.own.families.config_values import ConfigValues
from dse_evaluators.workloads.own.families.family import family_of
from dse_evaluators.workloads.own.families.hadamard import (
    hadamard_block,
    hadamard_matrix,
    has_hadamard_matrix,
    random_rotation,
)
from dse_evaluators.workloads.own.safetensors_model import load_folder, match_weights
from tests.evaluators.compression.own_models import LLAMA, write_safetensors

SIZES = {**LLAMA, "num_hidden_layers": 2, "hidden_size": 24, "intermediate_size": 40, "head_dim": 8}
TOKENS = np.random.default_rng(5).integers(0, 32, (90, 12))


def write_decoder(folder, *, outliers=1.0, **changes):
    """Write a decoder with random weights and norms; some channels of its stream are larger."""
    config = {**SIZES, **changes}
    module = family_of(config).build(ConfigValues(config, 10**6), {})
    rng = np.random.default_rng(0)
    arrays = {}
    for name, one in module.named_parameters():
        values = rng.normal(size=tuple(one.shape)) * 0.3
        arrays[name] = (values + 1 if name.endswith("norm.weight") else values).astype(np.float32)
    arrays["model.embed_tokens.weight"][:, :2] *= outliers
    for name in [one for one in arrays if one.endswith(("o_proj.weight", "down_proj.weight"))]:
        arrays[name][:2] *= outliers
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model.safetensors", arrays)
    np.savez(folder.parent / "tokens.npz", tokens=TOKENS)
    return folder


def logits(folder, seed=None):
    """Return the outputs of a folder's decoder, rotated with a seed."""
    workload = load_folder(folder, "net", None, ())
    if seed is not None:
        workload.rotate(seed)
    tensors = {name: torch.tensor(one) for name, one in workload.parameters.items()}
    given = torch.tensor(TOKENS)
    return torch.func.functional_call(workload._module, tensors, (given,)).detach().numpy()


@pytest.mark.parametrize("size", [1, 2, 4, 12, 20, 24, 28, 36, 40, 44, 60, 128, 176, 768])
def test_hadamard_matrices_are_orthogonal(size):
    matrix = hadamard_matrix(size)
    assert np.array_equal(np.abs(matrix), np.ones((size, size)))
    assert np.array_equal(matrix @ matrix.T, size * np.eye(size))


def test_sizes_without_a_hadamard_matrix_are_rotated_in_blocks():
    assert not has_hadamard_matrix(92)  # its first matrix is none of Paley's
    assert hadamard_block(92) == 4
    assert hadamard_block(184) == 8
    assert hadamard_block(5120) == 5120
    rotation = random_rotation(92, 3)
    assert np.allclose(rotation @ rotation.T, np.eye(92), atol=1e-12)
    with pytest.raises(SpecError, match="vectors of 63 numbers have no Hadamard rotation"):
        hadamard_block(63)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {"attention_bias": True, "mlp_bias": True}),
        ("qwen2", {}),
        ("qwen3", {}),
        ("mistral", {"head_dim": 6}),
        ("phi3", {"pad_token_id": 0}),
        ("gemma", {"tie_word_embeddings": False}),
        ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    ],
)
def test_a_rotated_decoder_computes_the_same_function(tmp_path, family, changes):
    folder = write_decoder(tmp_path / "net", model_type=family, **changes)
    plain, rotated = logits(folder), logits(folder, seed=7)
    assert np.abs(rotated - plain).max() < 2e-5 * np.abs(plain).max()
    matched = match_weights(folder)
    for name in ("model.embed_tokens.weight", "lm_head.weight"):
        assert not np.allclose(matched.rotated(7).read(name), matched.read(name), atol=0.1)


def walsh(size):
    """Return the Walsh-Hadamard matrix of QuaRot's section 3, H(2n) = H(2) x H(n)."""
    return np.ones((1, 1)) if size == 1 else np.kron([[1, 1], [1, -1]], walsh(size // 2))


def test_rotated_weights_are_those_of_the_equations_of_quarot(tmp_path):
    changes = {"hidden_size": 32, "head_dim": 8, "num_hidden_layers": 1}
    matched = match_weights(write_decoder(tmp_path / "net", **changes))
    given, found = matched.read, matched.rotated(7).read
    # Q = diag(s) H / sqrt(d) with random signs s, which a row's first entry shows: H's are 1
    signs = {size: np.sign(random_rotation(size, seed)[:, 0]) for size, seed in ((32, 7), (8, 8))}
    stream, head = (signs[n][:, None] * walsh(n) / np.sqrt(n) for n in (32, 8))
    block = "model.layers.0."
    before = np.diag(given(f"{block}input_layernorm.weight"))
    after = np.diag(given(f"{block}post_attention_layernorm.weight"))
    last = np.diag(given("model.norm.weight"))
    values = np.kron(np.eye(2), head)  # stage 1b: W_v and W_o with one rotation for each head
    queries = np.kron(np.eye(4), head)
    wanted = {  # (outputs, inputs), so that the paper's W is transposed here
        "model.embed_tokens": given("model.embed_tokens.weight") @ stream,
        f"{block}self_attn.q_proj": given(f"{block}self_attn.q_proj.weight") @ before @ stream,
        f"{block}self_attn.k_proj": given(f"{block}self_attn.k_proj.weight") @ before @ stream,
        f"{block}self_attn.v_proj": values.T
        @ given(f"{block}self_attn.v_proj.weight")
        @ before
        @ stream,
        f"{block}self_attn.o_proj": stream.T @ given(f"{block}self_attn.o_proj.weight") @ queries,
        f"{block}mlp.gate_proj": given(f"{block}mlp.gate_proj.weight") @ after @ stream,
        f"{block}mlp.up_proj": given(f"{block}mlp.up_proj.weight") @ after @ stream,
        f"{block}mlp.down_proj": stream.T @ given(f"{block}mlp.down_proj.weight"),
        "lm_head": given("lm_head.weight") @ last @ stream,
    }
    off = {name: np.abs(found(f"{name}.weight") - one).max() for name, one in wanted.items()}
    assert max(off.values()) < 1e-6, off
    assert np.array_equal(found(f"{block}input_layernorm.weight"), np.ones(32))


def test_another_seed_is_another_rotation_and_a_seed_the_same(tmp_path):
    folder = write_decoder(tmp_path / "net")
    read = [match_weights(folder).rotated(seed).read("lm_head.weight") for seed in (1, 1, 2)]
    assert np.array_equal(read[0], read[1])
    assert not np.allclose(read[0], read[2], atol=1e-2)


def test_rotation_cuts_the_error_of_a_model_with_outliers(tmp_path):
    folder = write_decoder(tmp_path / "net", outliers=30.0)
    options = {
        "data": str(tmp_path / "tokens.npz"),
        "recipe": "format int8:channel",
        "layers": {"model.embed*": "keep", "lm_head*": "keep"},
        "activations": "int6:channel",  # a scale for each token
    }
    plain = ByRecipe(model=str(folder), **options)
    rotated = ByRecipe(model=str(folder), rotation="hadamard", **options)
    found = [one._measure_design({})["deviation"] for one in (plain, rotated)]
    assert found[1] < found[0] / 2
    assert plain.version != rotated.version


@pytest.mark.parametrize(
    ("recipe", "sequential"),
    [("format int4:group=8", False), ("gptq int4:group=8", False), ("gptq int4:group=8", True)],
)
def test_a_rotated_folder_is_compressed_as_the_model_is(tmp_path, recipe, sequential):
    folder = write_decoder(tmp_path / "net")
    source = ByRecipe(
        model=str(folder),
        data=str(tmp_path / "tokens.npz"),
        recipe=recipe,
        layers={"model.embed*": "keep", "lm_head*": "keep"},
        rotation="hadamard:3",
        calibration="sequential" if sequential else "independent",
    )
    wanted = source.deployed_model({}).tensors
    tokens = source._model.data.load().inputs_of("calibration") if "gptq" in recipe else None
    found = dict(
        compress_folder(folder, recipe, tokens, rotation="hadamard:3", sequential=sequential)
    )
    assert found.keys() == wanted.keys()
    for name, tensor in found.items():
        np.testing.assert_array_equal(tensor.values, wanted[name].values)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tie_word_embeddings": True}, "its embeddings are also its head"),
        ({"model_type": "gemma2", "tie_word_embeddings": False}, "norms stand between its layers"),
        ({"hidden_size": 25}, "vectors of 25 numbers have no Hadamard rotation"),
    ],
)
def test_models_whose_structure_allows_no_rotation_are_refused(tmp_path, changes, words):
    folder = write_decoder(tmp_path / "net", **changes)
    with pytest.raises(DseError, match=words):
        ByRecipe(model=str(folder), data=str(tmp_path / "tokens.npz"), rotation="hadamard")


def test_rotations_of_other_models_and_other_names_are_refused(tmp_path):
    with pytest.raises(SpecError, match="rotation does not apply to shakespeare-lm"):
        ByRecipe(model="shakespeare-lm", rotation="hadamard")
    folder = write_decoder(tmp_path / "net")
    with pytest.raises(SpecError, match="there is no rotation 'hadamart'"):
        ByRecipe(model=str(folder), data=str(tmp_path / "tokens.npz"), rotation="hadamart")
