"""The device of a model of the user: CUDA gives the numbers of the CPU, or is refused in words."""

from __future__ import annotations

import pytest
import torch

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.compression.recipe_evaluator import ByRecipe
from tests.evaluators.compression.own_models import image_network, images, write_llama, write_tokens

HAS_CUDA = torch.cuda.is_available()


def _measure(device, **options):
    found = ByRecipe(device=device, **options).evaluate(Batch.of([{}]))
    assert not found.failures
    return {name: float(values[0]) for name, values in found.columns.items()}


def _cases(folder):
    write_tokens(folder / "tokens.npz")
    llama = {"model": str(write_llama(folder / "net")), "data": str(folder / "tokens.npz")}
    decoder = {**llama, "recipe": "gptq int4:channel", "quality": "perplexity"}
    decoder["layers"] = {"model.embed_tokens.weight": "keep"}
    return {
        "decoder": {**decoder, "activations": "int8", "kv_cache": "int8"},
        "cnn": {"model": image_network(), "data": images(), "recipe": "gptq int4:channel"},
    }


@pytest.mark.skipif(not HAS_CUDA, reason="there is no CUDA device")
@pytest.mark.parametrize("case", ["decoder", "cnn"])
def test_cuda_gives_the_metrics_of_the_cpu(tmp_path, case):
    options = _cases(tmp_path)[case]
    assert _measure("cuda", **options) == pytest.approx(_measure("cpu", **options), rel=1e-3)


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device")
@pytest.mark.parametrize("case", ["decoder", "cnn"])
def test_auto_is_the_cpu_where_there_is_no_cuda(tmp_path, case):
    options = _cases(tmp_path)[case]
    assert _measure("auto", **options) == _measure("cpu", **options)


@pytest.mark.skipif(HAS_CUDA, reason="there is a CUDA device")
def test_cuda_is_refused_where_there_is_none(tmp_path):
    evaluator = ByRecipe(device="cuda", **_cases(tmp_path)["decoder"])
    reason = evaluator.evaluate(Batch.of([{}])).failures[0].reason
    assert "device: cuda, but PyTorch finds no CUDA device here" in reason


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"model": "digits-cnn", "device": "auto"}, "digits-cnn runs on the CPU only"),
        ({"model": "digits-cnn", "device": "cudo"}, "no device 'cudo'"),
    ],
)
def test_a_device_without_effect_is_refused(options, problem):
    with pytest.raises(SpecError, match=problem):
        ByRecipe(**options)
