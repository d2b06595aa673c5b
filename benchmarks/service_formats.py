"""Number formats and load of the measured services of ai-dynamo/aiconfigurator, as inputs.

The table has a format for the GEMMs of all layers and one for those of routed experts. Published
checkpoints say more, and are followed: MiniMax-M2.5 in 8 bits has one scale for each 128 x 128
weights in all its layers; gpt-oss and Kimi-K2.5 in 4 bits have only the routed experts in 4 bits,
and the others in 16; the nvfp4 checkpoints of GLM-5, Kimi-K2.5, MiniMax-M2.5 and Qwen3.5 leave
attention in 16 bits (``exclude_modules`` or ``ignore`` of their quantisation, as in
``aic-core/src/aiconfigurator_core/model_configs`` of the table's commit; dense layers and shared
experts of GLM-5 and Kimi-K2.5, which are in nvfp4, count as 16 bits, too). Devices without units of
4 bits widen them to bf16.
"""

from __future__ import annotations

from collections.abc import Mapping

FORMATS = {"": "bf16", "bf16": "bf16", "bfloat16": "bf16", "fp8": "fp8", "fp8_block": "fp8_block"}
FORMATS |= {"nvfp4": "nvfp4", "int4_wo": "bf16"}
WIDENED_BITS = {"int4_wo": 4.5, "nvfp4": 4.5, "mxfp4": 4.25}
"""Bits of a weight with its share of the scale, where GEMMs widen it to 16 bits."""

WITHOUT_FP4 = ("h100_sxm", "h200_sxm")
IN_BLOCKS = ("minimax-m2",)
"""Models whose only checkpoint in 8 bits has a scale for each block of weights."""

ONLY_EXPERTS = {"gpt-oss-120b": "mxfp4", "kimi-k2": "int4_wo"}
"""Format of the published weights of 4 bits, of models whose other layers have 16."""

ATTENTION_IN_16 = ("glm-5", "kimi-k2", "minimax-m2", "qwen3.5-397b-a17b")
"""Models whose checkpoint in nvfp4 has attention in 16 bits."""


PREFILL_FIRST = ("sglang",)
"""Servers that compute all waiting prompts before the next decode step.

Source: sgl-project/sglang, documentation of the server arguments: ``enable_mixed_chunk``, which
joins prompts to decode steps, is off by default. vLLM and TensorRT-LLM join them.
"""


def is_in_step(row: Mapping[str, str]) -> bool:
    """Return whether the sequences of a row's service start and end together.

    They do if the server computes prompts first and all lengths are equal. The project's own load
    tests have equal lengths (standard deviation 0, end of text ignored:
    ``src/aiconfigurator/generator/sflow.py`` of the table's commit); those of InferenceX vary from
    80 to 100 % of the nominal ones (``RANDOM_RANGE_RATIO`` of its workflows).
    """
    return row["backend"] in PREFILL_FIRST and "/data/" in row["silicon_data_source"]


def read_formats(row: Mapping[str, str], model: str) -> dict[str, object]:
    """Return the formats of a row's service as inputs of ``clusters.serving``.

    Args:
        row: a row of the table.
        model: our name of its model.

    Raises:
        KeyError: a format of the row is unknown.
    """
    mode = row["gemm_quant_mode"]
    number_format, of_experts = FORMATS[mode], FORMATS[row["moe_quant_mode"]]
    found: dict[str, object] = {
        "weight_format": number_format,
        "kv_format": "bf16" if number_format == "bf16" else "fp8",
    }
    widened = mode == "int4_wo" or (mode == "nvfp4" and row["system"] in WITHOUT_FP4)
    if model in ONLY_EXPERTS and (widened or mode == "nvfp4"):
        own = ONLY_EXPERTS[model]
        if widened:
            return {**found, "weight_format": "bf16", "expert_bits": WIDENED_BITS[own]}
        if own == "mxfp4":  # Kimi-K2.5 in nvfp4 is another checkpoint
            return {**found, "weight_format": "bf16", "expert_format": number_format}
    if model in ATTENTION_IN_16 and number_format == "nvfp4" and not widened:
        return {**found, "weight_format": "bf16", "expert_format": number_format}
    if widened:
        return {**found, "weight_format": "bf16", "weight_bits": WIDENED_BITS[mode]}
    if model in IN_BLOCKS and number_format == "fp8":
        return {**found, "weight_format": "fp8_block"}
    if row["moe_quant_mode"] and of_experts != number_format:
        return {**found, "expert_format": of_experts}
    return found
