"""Values that a reading cannot have are told before a study is run."""

from __future__ import annotations

import pytest

from dse.errors import PluginError, SpecError
from dse_evaluators.accelerators.systolic.systolic import Systolic
from dse_evaluators.compression.cache_size import CacheSize
from dse_evaluators.compression.depth_early_exit import EarlyExit
from dse_evaluators.compression.depth_layer_drop import LayerDrop
from dse_evaluators.compression.embeddings.mlet import Mlet
from dse_evaluators.compression.onnx_models import OnnxModels
from dse_evaluators.compression.post_training import PostTraining
from dse_evaluators.compression.retraining.retraining import Retraining
from dse_evaluators.compression.sliced_evaluator import Sliced
from dse_evaluators.compression.tuned_evaluator import TunedCorrection
from dse_evaluators.numerics.attention import Attention
from dse_evaluators.numerics.distortion import Distortion
from dse_evaluators.numerics.layercast import LayerCast
from dse_evaluators.scaling.elastic import ElasticPrecision
from dse_evaluators.scaling.qat_law import QatLaw
from dse_evaluators.scaling.resnet_cost import ResnetCost

WRONG = [
    (CacheSize(), {"kv_format": ("int8", "int99")}, "int99"),
    (EarlyExit(), {"confidence": (0.5, 7)}, "confidence cannot be 7"),
    (EarlyExit(), {"confidence[0]": (0.5,), "confidence[1]": (0.5,)}, "is a list of 2"),
    (EarlyExit(), {"heads": ("shared", "share")}, "heads cannot be 'share'"),
    (LayerDrop(), {"ffn[0]": (True,), "ffn[1]": (True,)}, "'ffn' has 2 entries"),
    (LayerDrop(), {"attention": ("yes",)}, "attention cannot be 'yes'"),
    (Mlet(), {"embedding_dimension": (0, 4)}, "embedding_dimension cannot be 0"),
    (Mlet(), {"embedding_dimension": (1.5, 4.0)}, "embedding_dimension cannot be 1.5"),
    (OnnxModels(), {"per_channel": ("a",)}, "per_channel cannot be 'a'"),
    (PostTraining(), {"sparsity": (0.0, 1.5)}, "sparsity cannot be 1.5"),
    (Retraining(), {"density": (-1.0, 1.0)}, "density cannot be -1.0"),
    (Retraining(), {"method": ("magnitud",)}, "method cannot be 'magnitud'"),
    (Sliced(), {"slice": (-1.0, 0.5)}, "slice cannot be -1.0"),
    (Sliced(), {f"slice[{place}]": (0.5,) for place in range(3)}, "'slice' has 3 entries"),
    (TunedCorrection(), {"rank": (-3, 8)}, "rank cannot be -3"),
    (Attention(), {"block_keys": (0, 64)}, "block_keys cannot be 0"),
    (Attention(), {"attention_format": ("bf17",)}, "bf17"),
    (Distortion(), {"tensors": ("gaussian", "normal")}, "no tensors 'normal'"),
    (LayerCast(), {"parts": (0, 3)}, "parts cannot be 0"),
    (ElasticPrecision(), {"wide_bits": ("a",)}, "wide_bits cannot be 'a'"),
    (QatLaw(), {"share": (-1.0, 2.0)}, "share cannot be -1.0"),
    (ResnetCost(), {"width": (-1.0, 2.0)}, "width cannot be -1.0"),
    (Systolic(), {"dataflow": ("ws", "wz")}, "dataflow cannot be 'wz'"),
    (Systolic(), {"rows": (8, "many")}, "rows cannot be 'many'"),
]


@pytest.mark.parametrize(("evaluator", "values", "told"), WRONG)
def test_a_value_that_cannot_be_is_told(evaluator, values, told):
    with pytest.raises(SpecError, match=told) as caught:
        evaluator.check_values(values)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("evaluator", "values"),
    [
        (LayerDrop(), {"attention": (True, False), **{f"ffn[{n}]": (True,) for n in range(3)}}),
        (Sliced(), {f"slice[{place}]": (0.0, 0.5) for place in range(7)}),
        (CacheSize(), {"kv_format": ("keep", "int8")}),
        (Attention(), {"state_format": ("same", "fp32"), "keys": (64, 2048.0)}),
    ],
)
def test_values_that_can_be_are_taken(evaluator, values):
    evaluator.check_values(values)


def test_a_range_is_told_in_full():
    with pytest.raises(SpecError) as caught:
        Attention().check_values({"block_keys": (5.3,)})
    assert caught.value.hint == "a whole number from 1 to 1048576"


def test_a_model_without_blocks_cannot_be_cut():
    with pytest.raises(PluginError, match="minilm has no blocks") as caught:
        Sliced(model="minilm")
    assert "shakespeare-lm" in caught.value.hint
