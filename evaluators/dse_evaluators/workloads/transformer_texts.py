"""Transformer workloads by names such as ``llama3-70b:decode=4096,batch=8``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable
from dse_evaluators.workloads.transformer import TokenBatch, transformer
from dse_evaluators.workloads.transformer_configs import TRANSFORMERS, Transformer
from dse_evaluators.workloads.workload_text import NumberKey, WorkloadFamily, WorkloadOptions

_LONGEST = 2**20
_USUAL = 2048
_USUAL_ENCODED = 128
_BATCH = NumberKey(least=1, most=2**16, default=1)


def families() -> Mapping[str, WorkloadFamily]:
    """Return the workload family of every transformer without experts, by model name.

    In a workload's name, ``prefill=t`` processes t prompt tokens, ``decode=t`` generates the last
    of t tokens, each for ``batch`` sequences. The name alone means ``prefill=2048``, or the longest
    sequence that the position embeddings allow. A model that is not causal reads ``tokens``, 128 by
    default. A mixture of experts has no fixed layer table: the weights that a token uses depend on
    the token.
    """
    dense = (model for model in TRANSFORMERS.values() if model.experts == 1)
    return {model.name: _family(model) for model in dense}


def _family(model: Transformer) -> WorkloadFamily:
    longest = model.positions or _LONGEST
    phase = NumberKey(least=1, most=longest)
    if model.causal:
        keys = {"prefill": phase, "decode": phase, "batch": _BATCH}
        return WorkloadFamily(make=partial(_causal, model, min(_USUAL, longest)), keys=keys)
    length = NumberKey(least=1, most=longest, default=_USUAL_ENCODED)
    return WorkloadFamily(make=partial(_encoder, model), keys={"tokens": length, "batch": _BATCH})


def _causal(model: Transformer, usual: int, told: WorkloadOptions) -> LayerTable:
    found = told.numbers
    if "prefill" in found and "decode" in found:
        raise SpecError(
            f"the workload {told.text!r} is both prefill and decode", hint="leave one of them out"
        )
    if "decode" in found:
        tokens = TokenBatch(fresh=1, context=found["decode"], batch=found["batch"])
    else:
        length = found.get("prefill", usual)
        tokens = TokenBatch(fresh=length, context=length, batch=found["batch"])
    return transformer(model, tokens)


def _encoder(model: Transformer, told: WorkloadOptions) -> LayerTable:
    length = told.numbers["tokens"]
    return transformer(model, TokenBatch(fresh=length, context=length, batch=told.numbers["batch"]))
