"""Parameters of language models against print, and bytes of a sequence by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dse_evaluators.workloads.parameter_count import count_parameters, sequence_bytes
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, layer_kinds

# The numbers were copied without access to the publications that are named as their sources.
PRINTED = [  # model, what is counted, number, half a unit of its last digit, source
    ("gpt2", "total", 124.44e6, 0.005e6, "transformers: GPT2LMHeadModel of openai-community/gpt2"),
    ("llama2-7b", "total", 6_738_415_616, 0, "meta-llama/Llama-2-7b-hf: its safetensors files"),
    ("llama3-8b", "total", 8_030_261_248, 0, "meta-llama/Meta-Llama-3-8B: its safetensors files"),
    ("llama3-70b", "total", 70.6e9, 0.05e9, "meta-llama/Meta-Llama-3-70B: its safetensors files"),
    ("llama3-405b", "total", 405.9e9, 0.05e9, "meta-llama/Llama-3.1-405B: its safetensors files"),
    ("mixtral-8x7b", "total", 46.7e9, 0.05e9, "Mistral AI: Mixtral of experts, 2023"),
    ("mixtral-8x7b", "active", 12.9e9, 0.05e9, "Mistral AI: Mixtral of experts, 2023"),
    ("mixtral-8x22b", "total", 141e9, 0.5e9, "Mistral AI: Cheaper, Better, Faster, 2024"),
    ("mixtral-8x22b", "active", 39e9, 0.5e9, "Mistral AI: Cheaper, Better, Faster, 2024"),
    ("qwen3-0.6b", "layers", 0.44e9, 0.005e9, "Qwen/Qwen3-0.6B: non-embedding, model card"),
    ("qwen3-4b", "layers", 3.6e9, 0.05e9, "Qwen/Qwen3-4B: non-embedding, model card"),
    ("qwen3-8b", "total", 8.2e9, 0.05e9, "Qwen/Qwen3-8B: model card"),
    ("qwen3-8b", "layers", 6.95e9, 0.005e9, "Qwen/Qwen3-8B: non-embedding, model card"),
    ("qwen3-14b", "layers", 13.2e9, 0.05e9, "Qwen/Qwen3-14B: non-embedding, model card"),
    ("qwen3-32b", "layers", 31.2e9, 0.05e9, "Qwen/Qwen3-32B: non-embedding, model card"),
    ("qwen3-30b-a3b", "total", 30.5e9, 0.05e9, "Qwen/Qwen3-30B-A3B: model card"),
    ("qwen3-30b-a3b", "layers", 29.9e9, 0.05e9, "Qwen/Qwen3-30B-A3B: non-embedding, model card"),
    ("qwen3-235b-a22b", "total", 235e9, 0.5e9, "Qwen/Qwen3-235B-A22B: model card"),
    ("qwen3-235b-a22b", "layers", 234e9, 0.5e9, "Qwen/Qwen3-235B-A22B: non-embedding"),
    ("deepseek-v2-lite", "total", 15.7e9, 0.05e9, "DeepSeek-V2, 2024, appendix B"),
    ("deepseek-v2", "total", 236e9, 0.5e9, "DeepSeek-V2, 2024, abstract"),
    ("deepseek-v2", "active", 21e9, 0.5e9, "DeepSeek-V2, 2024, abstract"),
    ("deepseek-v3", "total", 671e9, 0.5e9, "DeepSeek-V3 Technical Report, 2024, abstract"),
    ("deepseek-v3", "used", 37e9, 0.5e9, "DeepSeek-V3 Technical Report, 2024, abstract"),
    ("glm-5", "total", 744e9, 0.5e9, "zai-org/GLM-5: model card"),
    # Printed as 40B; with the indexer, without the embedding.
    ("glm-5", "used", 40e9, 0.9e9, "zai-org/GLM-5: model card"),
    ("gpt-oss-20b", "total", 20.91e9, 0.005e9, "gpt-oss model card, 2025, table 1"),
    ("gpt-oss-20b", "used", 3.61e9, 0.005e9, "gpt-oss model card: active, with unembedding"),
    ("gpt-oss-120b", "total", 116.83e9, 0.005e9, "gpt-oss model card, 2025, table 1"),
    ("gpt-oss-120b", "used", 5.13e9, 0.005e9, "gpt-oss model card: active, with unembedding"),
    ("gemma3-1b", "layers", 698e6, 0.5e6, "Gemma 3, 2025, table 1: non-embedding"),
    ("gemma3-4b", "layers", 3_209e6, 0.5e6, "Gemma 3, 2025, table 1: non-embedding"),
    ("gemma3-12b", "layers", 10_759e6, 0.5e6, "Gemma 3, 2025, table 1: non-embedding"),
    ("gemma3-27b", "layers", 25_600e6, 0.5e6, "Gemma 3, 2025, table 1: non-embedding"),
    ("gemma3-27b", "embedding", 1_416e6, 8e6, "Gemma 3, table 1: counts 262,144 + 64 words"),
    ("qwen3-next-80b-a3b", "layers", 79e9, 0.5e9, "Qwen3-Next: non-embedding, model card"),
    ("qwen3.5-35b-a3b", "total", 35e9, 0.5e9, "its name"),
    ("qwen3.5-122b-a10b", "total", 122e9, 0.5e9, "its name"),
    ("qwen3.5-122b-a10b", "active", 10e9, 0.5e9, "its name"),
    # The name counts the image encoder, which this leaves out.
    ("qwen3.5-397b-a17b", "total", 397e9, 0.7e9, "its name"),
    ("codestral-mamba-7b", "total", 7_285_403_648, 0, "Mistral AI: Codestral Mamba, 2024"),
    # Zeng et al. leave the embedding and the LM head out.
    ("glm-4.5", "layers+mtp", 355e9, 0.5e9, "GLM-4.5, 2025, table 1"),
    ("glm-4.5-air", "layers", 106e9, 0.5e9, "GLM-4.5, 2025, table 1, without its MTP layer"),
    # 1.3 % less than printed: the sizes of the published config.json have no more weights.
    ("kimi-k2", "total", 1.04e12, 0.014e12, "Kimi K2, 2025, table 2"),
    ("kimi-k2", "active", 32.6e9, 0.3e9, "Kimi K2, 2025, table 2"),
]


@pytest.mark.parametrize(("name", "what", "number", "off", "source"), PRINTED)
def test_parameters_are_those_of_print(name, what, number, off, source):
    found = count_parameters(TRANSFORMERS[name])
    counts = {
        "total": found.total,
        "active": found.active,
        "used": found.active - found.embedding,  # a token looks one row up
        "layers": found.layers,
        "layers+mtp": found.layers + found.mtp,
        "embedding": found.embedding,
    }
    assert counts[what] == pytest.approx(number, abs=off), source


def test_multi_token_prediction_of_deepseek_has_14_billion_with_what_it_shares():
    # deepseek-ai/DeepSeek-V3, README: 685B = 671B of the main model + 14B of the MTP module.
    found = count_parameters(TRANSFORMERS["deepseek-v3"])
    assert found.mtp + found.embedding + found.head == pytest.approx(14e9, abs=0.6e9)


BY_HAND = [  # model, tokens, bytes at 2 bytes an element
    ("llama2-7b", 1, 32 * 2 * 32 * 128 * 2),  # MHA
    ("llama3-8b", 1000, 1000 * 32 * 2 * 8 * 128 * 2),  # GQA
    ("palm-540b", 1, 118 * 2 * 1 * 256 * 2),  # MQA
    ("deepseek-v3", 1, 61 * (512 + 64) * 2),  # latent
    ("deepseek-v3.2", 1, 61 * ((512 + 64) * 2 + 128 + 4)),  # latent, and the indexer's key in fp8
    ("gpt-oss-20b", 4096, (12 * 4096 + 12 * 128) * 2 * 8 * 64 * 2),  # every second with a window
    ("gemma3-27b", 8192, (10 * 8192 + 52 * 1024) * 2 * 16 * 128 * 2),  # five of six with a window
    # Every fourth layer attends; a state is 32 heads of 128 x 128 in fp32, a convolution of 4.
    (
        "qwen3-next-80b-a3b",
        1000,
        1000 * 12 * 2 * 2 * 256 * 2 + 36 * (32 * 128 * 128 * 4 + 3 * (2 * 16 * 128 + 32 * 128) * 2),
    ),
    # No layer attends; 128 heads of 64 x 128.
    ("codestral-mamba-7b", 1000, 64 * (128 * 64 * 128 * 4 + 3 * (8192 + 2 * 8 * 128) * 2)),
]


@pytest.mark.parametrize(("name", "tokens", "expected"), BY_HAND)
def test_bytes_of_a_sequence_are_those_by_hand(name, tokens, expected):
    assert sequence_bytes(TRANSFORMERS[name], tokens) == expected


def test_a_window_longer_than_the_sequence_keeps_all_of_it():
    model = TRANSFORMERS["gemma3-1b"]
    whole = replace(model, window_layers=0, window=0)
    assert sequence_bytes(model, 512) == sequence_bytes(whole, 512)
    assert sequence_bytes(model, 513) < sequence_bytes(whole, 513)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_kinds_of_layers_make_up_the_model(name):
    model = TRANSFORMERS[name]
    kinds = layer_kinds(model)
    assert sum(kind.layers for kind in kinds) == model.layers
    assert sum(kind.window_layers for kind in kinds) == model.window_layers
    assert sum(kind.state_layers for kind in kinds) == model.state_layers
    dense = sum(kind.layers for kind in kinds if kind.experts == 1)
    assert dense == (model.layers if model.experts == 1 else model.dense_layers)
