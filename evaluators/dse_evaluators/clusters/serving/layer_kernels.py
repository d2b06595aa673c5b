"""Small kernels and messages of a layer that follow from its architecture, besides its GEMMs."""

from __future__ import annotations

import numpy as np

from dse.core.values import Floats
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.mixers import StepTokens
from dse_evaluators.clusters.serving.share import ModelSharding
from dse_evaluators.workloads.transformer_configs import Transformer

_EVERY_LAYER = 2.0
"""Rotary embedding and activation function; norms with their residuals come to these."""

_QUERY_NORM = 1.0
"""Norms of queries and keys, in one kernel."""

_LATENT = 2.0
"""Norms of the latents, and the second of the two absorbed projections, which count as one GEMM."""

_INDEXER = 8.0
"""On the path of the queries: rotary embedding, its copy, rotation, conversion to 8 bits, GEMM of
the heads' weights, their scale, scores, selection. The kernels of the keys run beside them."""

_STATE = 2.0
"""Splitting the projection, and the gated norm; a convolution stands for the rotary embedding."""

_GATE = 1.0
"""Gate of the attention's output."""

_SHARED_EXPERTS = 2.0
"""Activation function of the shared experts, and the sum with the routed ones."""

_VARIANCE_BYTES = 8.0
"""Bytes per token of the squared norms of queries and keys, in fp32."""


def count_kernels(model: Transformer) -> float:
    """Return the number of small kernels of a layer, each of which takes its launch time or more.

    Open-source servers run one kernel for each operation that they do not fuse with others.

    Source:
        sgl-project/sglang (Apache-2.0): nsa_indexer.py (indexer), qwen3_next.py (states, gates);
        vllm-project/vllm (Apache-2.0): minimax_m2.py (norm of queries and keys).
    """
    return (
        _EVERY_LAYER
        + model.norms
        + (_QUERY_NORM if model.query_norm and not model.state else 0.0)
        + (_LATENT if model.kv_latent else 0.0)
        + (_INDEXER if model.index_tokens else 0.0)
        + (_STATE if model.state else 0.0)
        + (_GATE if model.gated_attention and not model.state else 0.0)
        + (_SHARED_EXPERTS if model.shared_ffn and model.experts > 1 else 0.0)
    )


def query_norm_s(share: ModelSharding, tokens: StepTokens, fabric: ServingFabric) -> Floats:
    """Return the seconds of the all-reduce of a layer's norm of queries and keys, (n,).

    A norm over all heads at once needs the squares of the heads on the other devices.

    Source:
        vllm-project/vllm (Apache-2.0): minimax_rms_norm.py (one all-reduce for both).
    """
    if share.model.query_norm != "all" or share.model.state:
        return np.zeros_like(tokens.all)
    return fabric.sum_s(_VARIANCE_BYTES * tokens.all, share.devices)
