"""Layer tables of a transformer that processes a batch of tokens, from its sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from dse.errors import SpecError
from dse_evaluators.workloads.layer_table import LayerTable, Lookup
from dse_evaluators.workloads.layers import Layer, product
from dse_evaluators.workloads.transformer_configs import PLAIN_TRANSFORMERS, Transformer
from dse_evaluators.workloads.workload_text import NumberKey, WorkloadFamily, WorkloadOptions

_LONGEST = 2**20

_USUAL = 2048

_USUAL_ENCODED = 128

_BATCH = NumberKey(least=1, most=2**16, default=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenBatch:
    """Tokens to process: ``fresh`` new ones in each of ``batch`` sequences.

    Each new token attends to the ``context`` tokens of its sequence, which include the new ones. In
    prefill ``fresh`` equals ``context``; in decode it is one.
    """

    fresh: int
    context: int
    batch: int = 1


def transformer(model: Transformer, tokens: TokenBatch) -> LayerTable:
    """Return the layer table of a language model that processes ``tokens``.

    The LM head (or classifier) processes one token of each sequence: the last one in a causal
    model, the first one in others.
    """
    head = (
        product("head", tokens.batch, model.hidden, model.vocabulary)
        if model.causal
        else product("pooler", tokens.batch, model.hidden, model.hidden)
    )
    words = Lookup(
        name="words",
        rows=model.vocabulary,
        width=model.hidden,
        picked=tokens.fresh * tokens.batch,
        shared=model.tied,
    )
    return LayerTable(
        layers=(*blocks(model, tokens), head),
        lookups=(words,),
        others=others(model) + (0 if model.causal else model.hidden),
    )


def blocks(model: Transformer, tokens: TokenBatch) -> list[Layer]:
    """Build the layers of all transformer blocks.

    The projections of queries, keys and values are one matrix product, as are both halves of a
    gated feed-forward layer.

    Source:
        Vaswani et al.: Attention Is All You Need, 2017, section 3.
    """
    rows = tokens.fresh * tokens.batch
    up = model.ffn * (2 if model.gated else 1)
    layers: list[Layer] = []
    for name in (f"block{place}" for place in range(model.layers)):
        layers += [
            product(f"{name}-qkv", rows, model.hidden, model.together),
            *attention(name, (model.heads, model.kv_heads), model.head, tokens),
            product(f"{name}-out", rows, model.heads * model.head, model.hidden),
            product(f"{name}-up", rows, model.hidden, up, prunes="outputs"),
            product(f"{name}-down", rows, model.ffn, model.hidden, prunes="inputs"),
        ]
    return layers


def attention(
    name: str, heads: tuple[int, int], head: int, tokens: TokenBatch
) -> tuple[Layer, Layer]:
    """Build the two matrix products of attention: the scores and the weighted sums of values.

    Each product has a copy for each sequence and key/value head. ``heads`` are the numbers of query
    heads and of key/value heads; ``head`` is the width of a head. Query heads that share a
    key/value head are rows of one product, so the keys and values are read once (GQA). The full
    score matrix is computed, including the masked half of a causal model.

    Source:
        Vaswani et al.: Attention Is All You Need, 2017, eq. 1; Ainslie et al.: GQA, 2023.
    """
    of_queries, of_keys = heads
    rows = tokens.fresh * (of_queries // of_keys)
    copies = tokens.batch * of_keys
    return (
        product(f"{name}-scores", rows, head, tokens.context, copies=copies, weighted=False),
        product(f"{name}-mix", rows, tokens.context, head, copies=copies, weighted=False),
    )


def others(model: Transformer) -> int:
    """Return the number of parameters outside of the layers' weights and the word embedding.

    The count covers biases, norms, and position and segment embeddings.
    """
    norm = model.hidden * (2 if model.biased else 1)
    norms = norm * (2 * model.layers + model.final_norm + model.embedding_norm)
    biases = model.layers * (model.together + model.ffn + 2 * model.hidden) * model.biased
    return norms + biases + (model.positions + model.segments) * model.hidden


def families() -> Mapping[str, WorkloadFamily]:
    """Return the workload family of every transformer without experts, by model name.

    In a workload's name, ``prefill=t`` processes t prompt tokens, ``decode=t`` generates the last
    of t tokens, each for ``batch`` sequences. The name alone means ``prefill=2048``, or the longest
    sequence that the position embeddings allow. A model that is not causal reads ``tokens``, 128 by
    default. A mixture of experts has no fixed layer table: the weights that a token uses depend on
    the token.
    """
    dense = (model for model in PLAIN_TRANSFORMERS.values() if model.experts == 1)
    return {model.name: family_of_transformer(model) for model in dense}


def family_of_transformer(model: Transformer) -> WorkloadFamily:
    """Return the workload family of a transformer whose layers are equal, without experts.

    Args:
        model: sizes of the transformer.
    """
    longest = model.positions or _LONGEST
    phase = NumberKey(least=1, most=longest)
    if model.causal:
        keys = {"prefill": phase, "decode": phase, "batch": _BATCH}
        return WorkloadFamily(make=partial(_causal, model, min(_USUAL, longest)), keys=keys)
    length = NumberKey(least=1, most=longest, default=_USUAL_ENCODED)
    return WorkloadFamily(make=partial(_encoder, model), keys={"tokens": length, "batch": _BATCH})


def _causal(model: Transformer, usual: int, options: WorkloadOptions) -> LayerTable:
    found = options.numbers
    if "prefill" in found and "decode" in found:
        raise SpecError(
            f"the workload {options.text!r} is both prefill and decode",
            hint="leave one of them out",
        )
    if "decode" in found:
        tokens = TokenBatch(fresh=1, context=found["decode"], batch=found["batch"])
    else:
        length = found.get("prefill", usual)
        tokens = TokenBatch(fresh=length, context=length, batch=found["batch"])
    return transformer(model, tokens)


def _encoder(model: Transformer, options: WorkloadOptions) -> LayerTable:
    length = options.numbers["tokens"]
    return transformer(
        model, TokenBatch(fresh=length, context=length, batch=options.numbers["batch"])
    )
