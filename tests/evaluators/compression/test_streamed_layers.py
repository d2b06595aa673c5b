"""A folder compressed block by block holds what the model compressed as a unit holds."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import dse
from dse.cli.app import app
from dse.errors import DseError, StudyError
from dse.interop.deployment.compressed_tensors import write_compressed_tensors
from dse.interop.deployment.safetensors_shards import write_shards
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.compression.streamed_layers import compress_folder
from dse_evaluators.workloads.own.own_data import data_source
from dse_evaluators.workloads.own.safetensors_file import read_header
from dse_evaluators.workloads.own.safetensors_model import load_folder, match_weights
from dse_evaluators.workloads.own.streamed_decoder import calibrate_blocks
from tests.evaluators.compression.own_models import LLAMA, write_safetensors

SIZES = {**LLAMA, "num_hidden_layers": 3, "hidden_size": 32, "intermediate_size": 64}
TOKENS = np.random.default_rng(5).integers(0, 32, (40, 12))


def _write_model(folder, **changes):
    config = {**SIZES, **changes}
    shapes = {"model.embed_tokens.weight": (32, 32), "model.norm.weight": (32,)}
    if not config.get("tie_word_embeddings"):
        shapes["lm_head.weight"] = (32, 32)
    for place in range(3):
        start = f"model.layers.{place}."
        sizes = {"q_proj": (32, 32), "k_proj": (16, 32), "v_proj": (16, 32), "o_proj": (32, 32)}
        shapes |= {f"{start}self_attn.{name}.weight": one for name, one in sizes.items()}
        sizes = {"gate_proj": (64, 32), "up_proj": (64, 32), "down_proj": (32, 64)}
        shapes |= {f"{start}mlp.{name}.weight": one for name, one in sizes.items()}
        norms = ("input_layernorm", "post_attention_layernorm")
        shapes |= {f"{start}{name}.weight": (32,) for name in norms}
        if config["model_type"] == "qwen3":
            shapes |= {f"{start}self_attn.{name}_norm.weight": (8,) for name in "qk"}
    rng = np.random.default_rng(0)
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config))
    arrays = {name: rng.normal(size=one).astype(np.float32) for name, one in shapes.items()}
    write_safetensors(folder / "model.safetensors", arrays)
    return folder


def _write_tokens(folder):
    np.savez(folder / "tokens.npz", tokens=np.random.default_rng(5).integers(0, 32, (90, 12)))
    return str(folder / "tokens.npz")


def _as_a_unit(folder, recipe):
    kept = {"model.embed_tokens.weight": "keep", "lm_head.weight": "keep"}
    data = _write_tokens(folder.parent)
    return ByRecipe(model=str(folder), data=data, recipe=recipe, layers=kept).deployed_model({})


def _entries(path):
    data = path.read_bytes()
    return {
        name: (one.kind, one.shape, data[one.start : one.end])
        for name, one in read_header(path).items()
    }


@pytest.mark.parametrize("recipe", ["format int4:group=16", "gptq int4:group=16"])
def test_shards_hold_the_bytes_of_the_model_as_a_unit(tmp_path, recipe):
    folder = _write_model(tmp_path / "net")
    (tmp_path / "unit.safetensors").write_bytes(
        write_compressed_tensors(_as_a_unit(folder, recipe)).content
    )
    tokens = data_source(str(tmp_path / "tokens.npz")).load().inputs_of("calibration")
    streamed = compress_folder(folder, recipe, tokens if "gptq" in recipe else None)
    config = json.loads((folder / "config.json").read_text())
    done = write_shards(streamed, tmp_path / "out", config, shard_bytes=8000)
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    found = {}
    for shard in done.files[:-2]:
        found |= _entries(shard)
    assert len(done.files) > 4
    assert found == _entries(tmp_path / "unit.safetensors")
    assert index["weight_map"].keys() == found.keys()


@pytest.mark.parametrize("family", ["gemma", "qwen3", "mistral"])
def test_streamed_calibration_inputs_equal_those_of_a_forward_pass(tmp_path, family):
    changes = {"tie_word_embeddings": True, "model_type": family, "head_dim": 8}
    folder = _write_model(tmp_path / "net", **changes)
    data = data_source(_write_tokens(tmp_path))
    wanted = load_folder(folder, "net", data.load(), ()).calibration()
    tokens = data.load().inputs_of("calibration")
    found = {}
    for block in calibrate_blocks(match_weights(folder), tokens):
        found |= block.inputs
    assert found.keys() == {name for name in wanted if "layers" in name}
    for name, inputs in found.items():
        np.testing.assert_array_equal(inputs, wanted[name])


def test_a_block_is_released_before_the_next_is_read(tmp_path):
    matched = match_weights(_write_model(tmp_path / "net"))
    held = []
    for _ in calibrate_blocks(matched, TOKENS):
        blocks = matched.module.model.layers
        held.append([not next(one.parameters()).is_meta for one in blocks])
    assert held == [[True, False, False], [False, True, False], [False, False, True]]


def test_compressed_tensors_reads_the_shards(tmp_path):
    compressed = pytest.importorskip("compressed_tensors", reason="the consumer of the files")
    folder = _write_model(tmp_path / "net")
    tensors = dict(compress_folder(folder, "format int4:group=16"))
    config = json.loads((folder / "config.json").read_text())
    write_shards(tensors.items(), tmp_path / "out", config, shard_bytes=8000)
    read = json.loads((tmp_path / "out" / "config.json").read_text())["quantization_config"]
    settings = compressed.QuantizationConfig(**read)
    assert settings.config_groups["group_0"].weights.num_bits == 4
    assert set(settings.ignore) == {"model.embed_tokens", "lm_head"}


MISTAKES = {
    "needs calibration tokens": ("gptq int4:group=16", None, {}),
    "uses no calibration tokens": ("format int4:group=16", TOKENS, {}),
    "reach from 0 to 40": ("gptq int4:group=16", TOKENS * 0 + 40 * (np.arange(12) == 5), {}),
    "are float64": ("gptq int4:group=16", TOKENS * 1.0, {}),
    "embeddings and heads do not get": ("format int4", None, {"others": "gptq int4"}),
    "q_proj.weight, 'formt int4'": ("formt int4", None, {}),
}


@pytest.mark.parametrize("problem", MISTAKES)
def test_a_mistake_is_named(tmp_path, problem):
    recipe, tokens, options = MISTAKES[problem]
    with pytest.raises(DseError, match=problem):
        list(compress_folder(_write_model(tmp_path / "net"), recipe, tokens, **options))


def test_a_folder_with_files_is_not_written_to(tmp_path):
    folder = _write_model(tmp_path / "net")
    with pytest.raises(StudyError, match="is not empty"):
        write_shards(compress_folder(folder, "format int4:group=16"), folder, {})


def test_the_command_and_the_function_write_the_same_files(tmp_path):
    folder = _write_model(tmp_path / "net")
    tokens = _write_tokens(tmp_path)
    recipe = "gptq int4:group=16"
    dse.compress(folder, tmp_path / "one", recipe=recipe, data=tokens)
    words = ["compress", str(folder), "--recipe", recipe, "--data", tokens]
    done = CliRunner().invoke(app, [*words, "-o", str(tmp_path / "two")])
    assert done.exit_code == 0, done.output
    files = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "two").iterdir())
    assert len(files) == 3
    for name in files:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
