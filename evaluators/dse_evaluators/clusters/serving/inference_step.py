"""Time of one inference iteration of a transformer with decode tokens and prefill chunks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.devices.roofline import KernelWork
from dse_evaluators.clusters.serving import experts
from dse_evaluators.clusters.serving.engine import Engine
from dse_evaluators.clusters.serving.fabric import ServingFabric
from dse_evaluators.clusters.serving.layer_kernels import count_kernels, query_norm_s
from dse_evaluators.clusters.serving.mixers import (
    StepTokens,
    decode_work,
    moved_width,
    projections,
    prompt_work,
)
from dse_evaluators.clusters.serving.share import WORD, ModelSharding

_SAMPLING = 18.0
"""Bytes moved per logit during sampling: bf16 to fp32 (6), softmax (8), selection (4)."""

__all__ = ["PARTS", "ModelSharding", "ServingStep", "StepTokens", "step"]

PARTS = ("products", "attention", "elementwise", "collectives", "head")
"""Parts of a step's time; ``products`` are the GEMMs with weights, ``head`` includes sampling."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingStep:
    """Seconds of an inference step, and one device's operations and moved bytes; each is (n,)."""

    products_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    collectives_s: Floats
    head_s: Floats
    flops: Floats
    routed_flops: Floats
    """Operations of routed experts, which are part of ``flops``."""
    moved_bytes: Floats

    @property
    def total_s(self) -> Floats:
        layers = self.products_s + self.attention_s + self.elementwise_s
        return layers + self.collectives_s + self.head_s


def step(
    share: ModelSharding, tokens: StepTokens, engine: Engine, fabric: ServingFabric
) -> ServingStep:
    """Compute time and work of an inference step of a model copy, through all pipeline stages.

    In a full pipeline every stage waits for the slowest one: the fullest, or the last, which also
    runs the LM head and sampling.

    Source:
        Shoeybi et al.: Megatron-LM, 2019, section 3 (column and row sharding, two all-reduces per
        layer); Agrawal et al.: Sarathi-Serve, 2024, section 4 (prefill and decode in one step).
    """
    head = _head(share, tokens)
    head_s = _head_s(share, tokens, head, engine, fabric)
    kinds = share.kinds
    layers = [_layers(kind, tokens, engine, fabric) for kind in kinds]
    counted, headed = _count_stages(share, tokens, [one.total_s for one in layers], head_s)
    size_bytes = WORD * tokens.all * share.model.hidden
    passed_s = fabric.pass_s(size_bytes, share.stages, share.devices * share.groups)

    def whole(name: str, weights: Sequence[Floats | float]) -> Floats:
        first, *others = [w * getattr(one, name) for w, one in zip(weights, layers, strict=True)]
        return sum(others, first)

    once = [1.0] * len(kinds)
    return ServingStep(
        products_s=whole("products_s", counted),
        attention_s=whole("attention_s", counted),
        elementwise_s=whole("elementwise_s", counted),
        collectives_s=whole("collectives_s", counted) + passed_s,
        head_s=headed * head_s,
        flops=whole("flops", once) + head.flops,
        routed_flops=whole("routed_flops", once),
        moved_bytes=whole("moved_bytes", once) + head.moved_bytes,
    )


def _count_stages(
    share: ModelSharding, tokens: StepTokens, layers_s: Sequence[Floats], head_s: Floats
) -> tuple[Sequence[Floats | float], Floats | float]:
    """Return how often the time of each kind of layers, and that of the head, is counted, (n,).

    One step alone passes every layer once. Where a step is in each of the p stages, a step takes p
    times as long as the slowest stage; between the two the time is interpolated.

    Args:
        share: the sharding of a model copy.
        tokens: work of the step.
        layers_s: seconds of all layers of each kind, (n,) each.
        head_s: seconds of the LM head, (n,).

    Source:
        Huang et al.: GPipe, 2019, section 2.3 (the slowest stage sets the pace of a pipeline). The
        stages that get one layer more are not the last: vLLM, ``get_pp_indices``.
    """
    if np.all(np.asarray(share.stages) == 1):
        return [1.0] * len(layers_s), 1.0
    models = [kind.model for kind in share.kinds]

    def parts(stage: Floats) -> list[Floats]:
        return [share.kind_layers(model, stage) / model.layers for model in models]

    def seconds(stage: Floats) -> Floats:
        return np.sum([a * b for a, b in zip(parts(stage), layers_s, strict=True)], axis=0)

    last = seconds(share.last_layers) + head_s >= seconds(share.stage_layers)
    slowest = parts(np.where(last, share.last_layers, share.stage_layers))
    stages = np.asarray(share.stages, dtype=np.float64)
    full = (np.asarray(tokens.waves) - 1.0) / np.maximum(stages - 1.0, 1.0)
    return [1.0 - full + full * stages * part for part in slowest], (
        1.0 - full + full * stages * last
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layers:
    """Seconds, operations and bytes of all layers of one kind; every field is (n,)."""

    products_s: Floats
    attention_s: Floats
    elementwise_s: Floats
    collectives_s: Floats
    flops: Floats
    routed_flops: Floats
    moved_bytes: Floats

    @property
    def total_s(self) -> Floats:
        return self.products_s + self.attention_s + self.elementwise_s + self.collectives_s


def _layers(
    share: ModelSharding, tokens: StepTokens, engine: Engine, fabric: ServingFabric
) -> _Layers:
    """Return the total cost of all layers of one type, which ``share.model`` describes."""
    fed = experts.engine_of(share.model, engine)
    feeding = experts.products(share, tokens.all, fed)
    others = (
        *projections(share, tokens.all, engine),
        *experts.shared_products(share, tokens.all, engine),
    )
    products = [*((engine, one) for one in others), *((fed, one) for one in feeding)]
    written, prompt = decode_work(share, tokens), prompt_work(share, tokens)
    moved = _elementwise_bytes(share, tokens.all, engine)
    routed_s, routed = experts.routing(share, tokens.all, engine)
    work = (*feeding, *others, written, prompt)
    routed_flops = sum((one.flops for one in feeding), np.zeros_like(tokens.all))
    layers = float(share.model.layers)
    return _Layers(
        products_s=layers * _total([own.product_s(one) for own, one in products]),
        attention_s=layers
        * (
            _attention_s(engine, written, tokens.sequences > 0)
            + _attention_s(engine, prompt, tokens.prompt > 0)
        ),
        elementwise_s=layers
        * (count_kernels(share.model) * engine.plain.launch_s + engine.passes_s(moved) + routed_s),
        collectives_s=_collectives_s(share, tokens, engine, fabric),
        flops=layers * _total([one.flops for one in work]),
        routed_flops=layers * routed_flops * (share.model.experts > 1),
        moved_bytes=layers * (_total([one.moved_bytes for one in work]) + moved + routed),
    )


def _total(columns: Sequence[Floats]) -> Floats:
    return sum(columns[1:], columns[0])


def _attention_s(engine: Engine, work: KernelWork, some: Mask) -> Floats:
    """Return the seconds of an attention kernel where there is ``some`` work, otherwise 0, (n,)."""
    shapes = {np.shape(getattr(work, each.name)) for each in fields(KernelWork)}
    if some.all() or shapes != {some.shape}:
        return np.where(some, engine.attention_s(work), 0.0)
    part = KernelWork(**{each.name: getattr(work, each.name)[some] for each in fields(KernelWork)})
    found = np.zeros(some.shape)
    found[some] = engine.attention_s(part)
    return found


def _collectives_s(
    share: ModelSharding, tokens: StepTokens, engine: Engine, fabric: ServingFabric
) -> Floats:
    """Return the seconds of the all-reduces and expert exchanges of all layers of a kind, (n,)."""
    summed_s = fabric.sum_s(WORD * tokens.all * share.model.hidden, share.devices)
    mixer_s = summed_s + query_norm_s(share, tokens, fabric)
    if not share.model.ffn:
        return share.model.layers * mixer_s
    wide_s = experts.exchange_s(share, tokens, engine, fabric, summed_s)
    return share.model.layers * (mixer_s + wide_s)


def _elementwise_bytes(share: ModelSharding, tokens: Floats, engine: Engine) -> Floats:
    """Return the bytes that the elementwise kernels of a layer move, (n,)."""
    model = share.model
    norms = 2.0 * (3.0 * WORD + engine.operand_bytes) * model.hidden
    activation = experts.activation_bytes(share, engine)
    return tokens * (norms + activation + 2.0 * WORD * moved_width(share))


def _count_samples(tokens: StepTokens) -> Floats:
    """Return the number of positions to sample: decode tokens, and each prompt's last token."""
    return tokens.written + np.where(tokens.prompt > 0, tokens.prompt / tokens.length, 0.0)


def _head(share: ModelSharding, tokens: StepTokens) -> KernelWork:
    rows, hidden = _count_samples(tokens), float(share.model.hidden)
    words = share.model.vocabulary / share.devices
    return KernelWork(
        flops=2.0 * rows * hidden * words,
        moved_bytes=WORD * (rows * hidden + hidden * words + rows * words),
        chain=np.full_like(rows, hidden),
        converted=np.zeros_like(rows),
    )


def _head_s(
    share: ModelSharding,
    tokens: StepTokens,
    head: KernelWork,
    engine: Engine,
    fabric: ServingFabric,
) -> Floats:
    """Return the seconds of the LM head GEMM, the all-gather of the logits and sampling, (n,).

    The all-gather takes half the time of an all-reduce.
    """
    scores = _count_samples(tokens) * share.model.vocabulary
    gathered_s = fabric.sum_s(WORD * scores, share.devices) / 2.0
    return engine.head_s(head) + gathered_s + engine.passes_s(_SAMPLING * scores)
