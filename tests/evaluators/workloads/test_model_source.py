"""Language models of the user: a config.json, a built-in one with changes, and what is refused."""

from __future__ import annotations

import json
from dataclasses import asdict

import pytest

from dse.errors import SpecError
from dse_evaluators.workloads.model_source import model_edition, transformer_of
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS

_LATENT = {
    "q_lora_rank": 1536,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "hidden_size": 7168,
    "num_hidden_layers": 61,
    "intermediate_size": 18432,
    "moe_intermediate_size": 2048,
    "n_shared_experts": 1,
    "num_experts_per_tok": 8,
}
_GPT_OSS = {
    "model_type": "gpt_oss",
    "attention_bias": True,
    "head_dim": 64,
    "hidden_size": 2880,
    "intermediate_size": 2880,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "vocab_size": 201088,
}
CONFIGS = {  # sizes as in the published config.json of each model
    "llama3-8b": {
        "model_type": "llama",
        "attention_bias": False,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "tie_word_embeddings": False,
        "vocab_size": 128256,
    },
    "qwen3-0.6b": {
        "model_type": "qwen3",
        "attention_bias": False,
        "head_dim": 128,
        "hidden_size": 1024,
        "intermediate_size": 3072,
        "max_window_layers": 28,
        "num_attention_heads": 16,
        "num_hidden_layers": 28,
        "num_key_value_heads": 8,
        "sliding_window": None,
        "tie_word_embeddings": True,
        "use_sliding_window": False,
        "vocab_size": 151936,
    },
    "mixtral-8x22b": {
        "model_type": "mixtral",
        "hidden_size": 6144,
        "intermediate_size": 16384,
        "num_attention_heads": 48,
        "num_experts_per_tok": 2,
        "num_hidden_layers": 56,
        "num_key_value_heads": 8,
        "num_local_experts": 8,
        "sliding_window": None,
        "vocab_size": 32000,
    },
    "deepseek-v3": {
        **_LATENT,
        "model_type": "deepseek_v3",
        "first_k_dense_replace": 3,
        "n_routed_experts": 256,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
    },
    "deepseek-v3.2": {
        **_LATENT,
        "model_type": "deepseek_v32",
        "first_k_dense_replace": 3,
        "index_head_dim": 128,
        "index_n_heads": 64,
        "index_topk": 2048,
        "n_routed_experts": 256,
        "num_attention_heads": 128,
        "num_key_value_heads": 128,
        "num_nextn_predict_layers": 1,
        "vocab_size": 129280,
    },
    "glm-5": {
        "model_type": "glm_moe_dsa",
        "first_k_dense_replace": 3,
        "head_dim": 64,
        "hidden_size": 6144,
        "index_head_dim": 128,
        "index_n_heads": 32,
        "index_topk": 2048,
        "intermediate_size": 12288,
        "kv_lora_rank": 512,
        "moe_intermediate_size": 2048,
        "n_routed_experts": 256,
        "n_shared_experts": 1,
        "num_attention_heads": 64,
        "num_experts_per_tok": 8,
        "num_hidden_layers": 78,
        "num_key_value_heads": 64,
        "num_nextn_predict_layers": 1,
        "q_lora_rank": 2048,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "tie_word_embeddings": False,
        "v_head_dim": 256,
        "vocab_size": 154880,
    },
    "kimi-k2": {
        **_LATENT,
        "model_type": "kimi_k2",
        "first_k_dense_replace": 1,
        "n_routed_experts": 384,
        "num_attention_heads": 64,
        "num_key_value_heads": 64,
        "num_nextn_predict_layers": 0,
        "vocab_size": 163840,
    },
    "gpt-oss-20b": {
        **_GPT_OSS,
        "layer_types": ["sliding_attention", "full_attention"] * 12,
        "num_hidden_layers": 24,
        "num_local_experts": 32,
    },
    "gpt-oss-120b": {**_GPT_OSS, "num_hidden_layers": 36, "num_local_experts": 128},
    "gemma3-12b": {
        "model_type": "gemma3",
        "text_config": {
            "model_type": "gemma3_text",
            "hidden_size": 3840,
            "intermediate_size": 15360,
            "num_attention_heads": 16,
            "num_hidden_layers": 48,
            "num_key_value_heads": 8,
            "head_dim": 256,
            "sliding_window": 1024,
            "vocab_size": 262208,
        },
        "vision_config": {"hidden_size": 1152},
    },
    "qwen3-next-80b-a3b": {
        "model_type": "qwen3_next",
        "decoder_sparse_step": 1,
        "full_attention_interval": 4,
        "head_dim": 256,
        "hidden_size": 2048,
        "intermediate_size": 5120,
        "linear_conv_kernel_dim": 4,
        "linear_key_head_dim": 128,
        "linear_num_key_heads": 16,
        "linear_num_value_heads": 32,
        "linear_value_head_dim": 128,
        "mlp_only_layers": [],
        "moe_intermediate_size": 512,
        "mtp_num_hidden_layers": 1,
        "num_attention_heads": 16,
        "num_experts": 512,
        "num_experts_per_tok": 10,
        "num_hidden_layers": 48,
        "num_key_value_heads": 2,
        "shared_expert_intermediate_size": 512,
        "vocab_size": 151936,
    },
}


def _write(folder, config):
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return str(folder / "config.json")


def _sizes(model):
    return {**asdict(model), "name": "", "source": ""}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_gives_the_sizes_of_the_row_of_its_model(tmp_path, name):
    path = _write(tmp_path / name, CONFIGS[name])
    assert _sizes(transformer_of(path)) == _sizes(TRANSFORMERS[name])
    assert transformer_of(path).name == name


def test_a_folder_is_read_as_its_config_json(tmp_path):
    path = _write(tmp_path / "mine", CONFIGS["llama3-8b"])
    assert transformer_of(str(tmp_path / "mine")) == transformer_of(path)


def test_fields_of_a_built_in_model_are_replaced():
    model = transformer_of({"like": "llama3-70b", "layers": 40, "kv_heads": 64})
    assert (model.layers, model.kv_heads, model.hidden) == (40, 64, 8192)


def test_the_edition_is_that_of_the_sizes_and_not_of_the_path(tmp_path):
    path = _write(tmp_path / "a", CONFIGS["llama3-8b"])
    other = _write(tmp_path / "b", {**CONFIGS["llama3-8b"], "torch_dtype": "float16"})
    deeper = _write(tmp_path / "c", {**CONFIGS["llama3-8b"], "num_hidden_layers": 33})
    assert model_edition(path) == model_edition(other) == model_edition({"like": "llama3-8b"})
    assert model_edition(path) != model_edition(deeper)
    assert model_edition("llama3-8b") == ""


REFUSED = [  # option, part of the problem, part of the hint
    ("llama3-9b", "model cannot be 'llama3-9b'", "llama3-8b"),
    ("./nowhere/config.json", "there is no file", "config.json"),
    ({"layers": 4}, "model has no key 'like'", "like"),
    ({"like": "llama3-8b", "layer": 4}, "model has no field 'layer'", "layers"),
    ({"like": "llama3-8b", "layers": "4"}, "layers cannot be '4'", "whole number"),
    ({"like": "llama3-8b", "layers": True}, "layers cannot be True", "whole number"),
    ({"like": "llama3-8b", "layers": 0}, "layers cannot be 0", "from 1 to 10000"),
    ({"like": "llama3-8b", "hidden": 10**9}, "hidden cannot be 1000000000", "from 1 to"),
    ({"like": "llama3-8b", "hidden": 4100}, "no multiple of 32 heads", "head_width"),
    ({"like": "llama3-8b", "kv_heads": 7}, "no multiple of 7 kv_heads", "divides"),
    ({"like": "llama3-8b", "active_experts": 2}, "active_experts of 2 with 1", "from 1 to 1"),
    ({"like": "gemma3-27b", "layers": 31}, "window_layers and state_layers are 52 of 31", "layers"),
    ({"like": "llama3-8b", "window_layers": 8}, "8 window_layers, but window is 0", "window"),
    ({"like": "llama3-8b", "dense_layers": 8}, "8 dense_layers need dense_ffn", "experts"),
    ({"like": "llama3-8b", "state": "mamba"}, "state cannot be 'mamba'", "mamba2"),
    ({"like": "llama3-8b", "state_layers": 2}, "lack the sizes of their state", "state_heads"),
    (7, "model cannot be 7", "config.json"),
]


@pytest.mark.parametrize(("option", "problem", "hint"), REFUSED)
def test_what_is_no_model_is_refused_with_its_mend(option, problem, hint):
    with pytest.raises(SpecError) as caught:
        transformer_of(option)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


_LLAMA = CONFIGS["llama3-8b"]
REFUSED_FILES = [  # what the file has, part of the problem, part of the hint
    ({**_LLAMA, "model_type": "lama"}, "the model_type 'lama' is unknown", "llama"),
    ({"hidden_size": 8}, "has no model_type", "model_type: llama"),
    ({**_LLAMA, "hidden_size": None}, "has no hidden_size", "add the number"),
    ({**_LLAMA, "hidden_size": "4096"}, "hidden_size cannot be '4096'", "whole number"),
    ({**_LLAMA, "num_hidden_layers": 10**6}, "layers cannot be 1000000", "from 1 to 10000"),
    ({**CONFIGS["gpt-oss-20b"], "layer_types": ["ful"]}, "cannot have 'ful'", "full_attention"),
    ({**CONFIGS["gpt-oss-20b"], "num_hidden_layers": 2}, "24 entries for 2 layers", ""),
    ([], "is no JSON object", "config.json"),
]


@pytest.mark.parametrize(("content", "problem", "hint"), REFUSED_FILES)
def test_what_is_no_config_of_a_model_is_refused_with_its_mend(tmp_path, content, problem, hint):
    path = _write(tmp_path / "mine", content)
    with pytest.raises(SpecError) as caught:
        transformer_of(path)
    assert problem in caught.value.problem
    assert hint in caught.value.hint


def test_text_that_is_no_json_is_refused(tmp_path):
    (tmp_path / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(SpecError, match="cannot be read as JSON"):
        transformer_of(str(tmp_path))
