"""Calibration inputs of a decoder's layers, with the weights of one block in memory at a time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from dse.core.values import Ints
from dse.errors import SpecError
from dse_evaluators.formats.arrays import Single
from dse_evaluators.workloads.own.families.decoder import RotaryDecoder
from dse_evaluators.workloads.own.module_layers import ModuleLayers, calibration_rows
from dse_evaluators.workloads.own.module_workload import (
    MOST_CALIBRATING,
    plain_attention,
    rows_of_batch,
)
from dse_evaluators.workloads.own.own_batches import batches_of
from dse_evaluators.workloads.own.safetensors_model import MatchedWeights, fill_module
from dse_evaluators.workloads.torch_scope import deterministic

EMBEDDING = "model.embed_tokens."
"""Start of the names of the parameters of the embedding."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedBlock:
    """Layers of one block of a decoder, with the inputs that calibrate them.

    Attributes:
        prefix: start of the names of the block's parameters.
        inputs: calibration inputs of each linear layer, (rows, inputs), by the weight's name.
    """

    prefix: str
    inputs: dict[str, Single]


def calibrate_blocks(
    matched: MatchedWeights, tokens: Ints, replaced: dict[str, Single] | None = None
) -> Iterator[CalibratedBlock]:
    """Yield the blocks of a decoder in order, with the calibration inputs of their layers.

    The activations between two blocks are kept, (n, t, h); a block's weights are read when it is
    its turn and released after it. The inputs are those of the uncompressed model, bit for bit as
    a forward pass of all blocks gives them.

    Args:
        matched: the module without values, and its stored tensors.
        tokens: token ids, (n, t); at most 512 sequences are used.
        replaced: for sequential calibration, a mapping of compressed weights by name. The caller
            adds those of the embedding before the first block, and those of each block before the
            next; they are removed when the block's outputs are computed with them.

    Raises:
        SpecError: the model is no decoder with rotary positions, or a token id is not in its
            vocabulary.
    """
    decoder = matched.module
    if not isinstance(decoder, RotaryDecoder):
        raise SpecError(
            "blocks of this model cannot be calibrated one by one",
            hint="decoders with rotary positions can: Llama, Mistral, Qwen, Phi-3, Gemma; for "
            "others, 'format ...' needs no calibration",
        )
    _check_ids(tokens, decoder.config.vocab_size)
    feeds = batches_of({"": tokens[:MOST_CALIBRATING]})
    tokens_of_batches = [torch.tensor(one[""]) for one in feeds]
    signals = _embed_batches(matched, decoder, tokens_of_batches, replaced or {})
    contexts = decoder.model.contexts(tokens.shape[1])
    for place, block in enumerate(decoder.model.layers):
        prefix = f"model.layers.{place}."
        fill_module(matched, prefix)
        passed = signals if replaced is None else list(signals)
        yield CalibratedBlock(
            prefix=prefix, inputs=_run_block(prefix, block, passed, contexts[place])
        )
        if replaced is not None:
            _replace_weights(block, prefix, replaced)
            _run_block(prefix, block, signals, contexts[place])
        block.to("meta")


def _embed_batches(
    matched: MatchedWeights,
    decoder: RotaryDecoder,
    batches: list[Tensor],
    replaced: dict[str, Single],
) -> list[Tensor]:
    """Return the inputs of the first block, (n, t, h) for each batch of token ids, (n, t)."""
    fill_module(matched, EMBEDDING)
    _replace_weights(decoder.model.embed_tokens, EMBEDDING, replaced)
    with deterministic(), torch.inference_mode():
        signals = [decoder.model.embed(one) for one in batches]
    decoder.model.embed_tokens.to("meta")
    return signals


def _run_block(
    prefix: str, block: nn.Module, signals: list[Tensor], context: tuple[object, ...]
) -> dict[str, Single]:
    """Replace the inputs of a block by its outputs; return the inputs of its linear layers."""
    seen: dict[str, list[Single]] = {}

    def watch(name: str, layer: nn.Module, signal: Tensor) -> Tensor:
        rows = calibration_rows(layer, signal, most=rows_of_batch(len(signals)))
        seen.setdefault(f"{prefix}{name}", []).append(rows)
        return signal

    with (
        ModuleLayers.of(block).hooked(watch),
        deterministic(),
        torch.inference_mode(),
        plain_attention(),
    ):
        for place, signal in enumerate(signals):
            signals[place] = block(signal, *context)
    found = {name: np.concatenate(rows) for name, rows in seen.items()}
    return {name: rows for name, rows in found.items() if len(rows)}


def _replace_weights(module: nn.Module, prefix: str, replaced: dict[str, Single]) -> None:
    """Give a module's parameters their compressed values, and remove these from the mapping."""
    own = dict(module.named_parameters())
    for name in [one for one in replaced if one.startswith(prefix)]:
        own[name.removeprefix(prefix)].data = torch.from_numpy(replaced.pop(name))


def _check_ids(tokens: Ints, size: int) -> None:
    """Raise SpecError unless tokens are ids of a vocabulary of this size, (n, t)."""
    if tokens.ndim != 2 or not tokens.size or tokens.dtype.kind not in "iu":
        raise SpecError(
            f"calibration tokens are {tokens.dtype} of shape {tokens.shape}",
            hint="whole numbers, (sequences, positions)",
        )
    if tokens.min() < 0 or tokens.max() >= size:
        raise SpecError(
            f"calibration tokens reach from {tokens.min()} to {tokens.max()}",
            hint=f"token ids of this model: 0 to {size - 1}",
        )
