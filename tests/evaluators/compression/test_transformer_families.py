"""Transformers read from files give the outputs of their authors' library, up to rounding."""

from __future__ import annotations

import json

import pytest
import torch

from dse_evaluators.compression.recipe_evaluator import ByRecipe
from dse_evaluators.formats.names import format_of
from dse_evaluators.workloads.own.safetensors_model import folder_layout, load_folder
from dse_evaluators.workloads.workload import Signals
from tests.evaluators.compression.own_models import write_tokens

transformers = pytest.importorskip("transformers", reason="the reference needs transformers")

SIZES = {
    "vocab_size": 32,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2 = {"vocab_size": 32, "n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}
ROUTED = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16}
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}
LONG = {"rope_type": "longrope", "long_factor": [1.5, 4.0], "short_factor": [1.0, 1.25]}
LOCAL = {
    "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4},
}


def _rope(**settings):
    return {"rope_parameters": {"rope_theta": 10000.0, **settings}}


CASES = {
    "llama": ("LlamaForCausalLM", {"attention_bias": True, "mlp_bias": True}),
    "llama-linear": ("LlamaForCausalLM", _rope(rope_type="linear", factor=4.0)),
    "llama-llama3": ("LlamaForCausalLM", _rope(**LLAMA3)),
    "mistral": ("MistralForCausalLM", {"sliding_window": 5, "head_dim": 6}),
    "qwen2": (
        "Qwen2ForCausalLM",
        {"use_sliding_window": True, "sliding_window": 5, "max_window_layers": 1},
    ),
    "qwen3": ("Qwen3ForCausalLM", {"head_dim": 8, "tie_word_embeddings": True}),
    "qwen3-yarn": ("Qwen3ForCausalLM", {"head_dim": 8, **_rope(**YARN)}),
    "phi3": ("Phi3ForCausalLM", {"sliding_window": 7}),
    "phi3-long": (
        "Phi3ForCausalLM",
        {"original_max_position_embeddings": 8, **_rope(**LONG)},
    ),
    "phi3-short": (
        "Phi3ForCausalLM",
        {"original_max_position_embeddings": 32, **_rope(**LONG)},
    ),
    "phi3-partial": ("Phi3ForCausalLM", _rope(partial_rotary_factor=0.5)),
    "gemma": ("GemmaForCausalLM", {"head_dim": 8}),
    "gemma2": (
        "Gemma2ForCausalLM",
        {"head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 12},
    ),
    "gemma3": (
        "Gemma3ForCausalLM",
        {
            "head_dim": 8,
            "sliding_window": 5,
            "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
            "rope_parameters": LOCAL,
            "final_logit_softcapping": 20.0,
        },
    ),
    "mixtral": ("MixtralForCausalLM", {"num_local_experts": 4, "sliding_window": 6}),
    "qwen2-moe": (
        "Qwen2MoeForCausalLM",
        {**ROUTED, "shared_expert_intermediate_size": 12, "mlp_only_layers": [1]},
    ),
    "qwen3-moe": ("Qwen3MoeForCausalLM", {**ROUTED, "head_dim": 8, "norm_topk_prob": True}),
    "gpt2": ("GPT2LMHeadModel", {"scale_attn_by_inverse_layer_idx": True}),
    "bert-tokens": ("BertForMaskedLM", {}),
    "bert-classes": ("BertForSequenceClassification", {"num_labels": 3}),
    "bert-pooled": ("BertModel", {}),
}


def _reference(case, folder, **options):
    """Write a model with random weights; return it in single precision, read from the files."""
    name, changes = CASES[case]
    kind = getattr(transformers, name)
    sizes = GPT2 if case == "gpt2" else SIZES
    torch.manual_seed(0)
    model = kind(kind.config_class(**{**sizes, **changes}))
    for parameter in model.parameters():
        parameter.data += 0.1 * torch.randn_like(parameter)  # also of norms and biases
    dtype = options.pop("dtype", torch.float32)
    model.to(dtype).save_pretrained(folder, **options)
    return kind.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()


def _loaded(folder):
    return load_folder(folder, folder.name, None, ())._module


def _tokens():
    return torch.randint(3, 32, (3, 13), generator=torch.Generator().manual_seed(1))


def _logits(output):
    if isinstance(output, torch.Tensor):
        return output
    return output.logits if "logits" in output else output.pooler_output


def _compare(folder, reference, **inputs):
    given = {"input_ids": _tokens(), **inputs}
    with torch.inference_mode():
        wanted = _logits(reference(**given))
        found = _loaded(folder)(**given)
    assert found.shape == wanted.shape
    assert float(wanted.std()) > 0.01
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", CASES)
def test_logits_equal_those_of_the_reference(case, tmp_path):
    _compare(tmp_path, _reference(case, tmp_path))


@pytest.mark.parametrize("case", ["llama", "gpt2", "bert-tokens"])
def test_padding_is_hidden_as_in_the_reference(case, tmp_path):
    mask = torch.ones(3, 13, dtype=torch.int64)
    mask[0, 9:] = 0
    mask[1, 4:] = 0
    reference = _reference(case, tmp_path)
    given = {"input_ids": _tokens(), "attention_mask": mask}
    with torch.inference_mode():
        wanted, found = reference(**given).logits, _loaded(tmp_path)(**given)
    seen = mask.bool()
    torch.testing.assert_close(found[seen], wanted[seen], rtol=1e-5, atol=1e-5)


def test_token_types_count_as_in_the_reference(tmp_path):
    kinds = torch.tensor([[0] * 6 + [1] * 7] * 3)
    _compare(tmp_path, _reference("bert-pooled", tmp_path), token_type_ids=kinds)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_shards_in_half_precision_equal_the_reference(dtype, tmp_path):
    reference = _reference("mixtral", tmp_path, dtype=dtype, max_shard_size="4KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 1
    _compare(tmp_path, reference)


def test_config_of_an_old_version_equals_the_reference(tmp_path):
    reference = _reference("llama-llama3", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = rope
    (tmp_path / "config.json").write_text(json.dumps(config))
    _compare(tmp_path, reference)


def test_experts_of_a_mixture_are_compressed_and_rounded(tmp_path):
    _reference("mixtral", tmp_path / "moe")
    layers = folder_layout(tmp_path / "moe").layers
    assert sum("experts" in name for name in layers) == 3 * 4 * 3
    write_tokens(tmp_path / "text.npz")
    made = ByRecipe(model=str(tmp_path / "moe"), data=str(tmp_path / "text.npz"), quality="loss")
    workload = made._model.make()
    signals = Signals(activations=format_of("int8:channel"), kv_cache=format_of("int8:channel"))
    exact = workload.outputs(workload.parameters, "search", Signals())
    assert (workload.outputs(workload.parameters, "search", signals) != exact).any()


def test_weights_of_gpt2_have_one_row_for_each_output(tmp_path):
    _reference("gpt2", tmp_path)
    layout = folder_layout(tmp_path)
    assert layout.shapes["transformer.h.0.attn.c_attn.weight"] == (48, 16)
    assert "lm_head.weight" not in layout.shapes
