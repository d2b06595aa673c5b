"""Small kernels and messages of a layer that follow from its architecture."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.clusters.serving.layer_kernels import count_kernels
from dse_evaluators.clusters.serving.serving import Serving
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, layer_kinds


@pytest.mark.parametrize(
    ("model", "kernels"),
    [
        ("llama3-70b", [4.0]),
        ("qwen3-32b", [5.0]),
        ("gemma3-27b", [7.0, 7.0]),
        ("deepseek-v3", [6.0, 8.0]),
        ("deepseek-v3.2", [14.0, 16.0]),
        ("qwen3-next-80b-a3b", [8.0, 8.0]),
    ],
)
def test_kernels_of_a_layer_follow_from_its_architecture(model, kernels):
    assert [count_kernels(kind) for kind in layer_kinds(TRANSFORMERS[model])] == kernels


def test_a_norm_over_all_heads_needs_one_more_message_between_devices():
    three, two = (
        Serving(model=model, device="b200-sxm").evaluate(Batch.of([{"tp": 4, "batch": 1}])).columns
        for model in ("minimax-m2", {"like": "minimax-m2", "query_norm": "head"})
    )
    ratio = three["collectives_time"] / two["collectives_time"]
    np.testing.assert_allclose(ratio, 1.5, rtol=0.02)
