"""The evaluator ``numerics.layercast``: sensitivity of greedy decoding to summation order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.numerics.decoding import Arithmetic, Codes, Decoded, Decoder
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput
from dse_evaluators.readings import number_format
from dse_evaluators.workloads.editions import edition_of

SAME = "same"
"""Value of ``compute_format`` that selects the format of ``storage_format``."""

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="diverging", goal="minimize"),
        Metric(name="agreed", goal="maximize"),
        Metric(name="deviation", goal="minimize"),
        Metric(name="memory", unit="B", goal="minimize"),
    )
}

_MOST_PARTS = 4096


class LayerCast(
    DeclaredEvaluator,
    reads={
        "storage_format": CheckedInput(number_format(), "bf16"),
        "compute_format": CheckedInput(number_format(SAME), SAME),
        "parts": NumberInput(1, _MOST_PARTS, default=2, whole=True),
    },
    provides=METRICS.values(),
    version="",
    kind="measured",
):
    """Divergence of greedy decoding if dot products are summed in partial sums.

    The model is the character language model ``shakespeare-lm``; a dot product is split into
    partial sums, each rounded before it is added to the others. ``diverging`` is the share of
    prompts whose continuations differ, ``agreed`` the mean share of a continuation before the first
    difference, ``deviation`` the largest difference of the logits after the prompt. ``memory``, in
    bytes, is counted: all weights in the storage format, the largest weight also in the compute
    format if that is wider, and the KV cache of all prompts.

    Args:
        prompts: number of prompts, each of 16 characters sampled from the model itself.
        steps: number of characters decoded after each prompt.
        seed: seed of the prompts.

    Limits:
        1 s a design.

    Error:
        32 continuations, so steps of 3 %. Outputs in fp32 are within 1e-4 of the torch network's.

    Example:
        parameters: {storage_format: [bf16, fp16], compute_format: [same, fp32], parts: [2, 4]}

    Source:
        Yuan et al., Give Me FP32 or Give Me Death?, 2025 (arXiv 2506.09501), section 4: LayerCast.

    Raises:
        PluginError: a count is invalid.
    """

    prompts: int = 32
    steps: int = 80
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("prompts", self.prompts, least=1)
        check_count("steps", self.steps, least=1)
        check_count("seed", self.seed, least=0)
        self.version = f"1-{edition_of('shakespeare-lm')}"
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Measure the divergence of n designs, one at a time; return metrics by name, (n,)."""
        return one_by_one(batch, METRICS, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        chosen = {**self._readings.defaults, **design}
        storage, written = str(chosen["storage_format"]), str(chosen["compute_format"])
        compute = storage if written == SAME else written
        parts = chosen["parts"]
        if isinstance(parts, str) or parts != int(parts) or parts < 1:
            raise EvaluationError(f"parts cannot be {parts!r}", hint="a whole number, at least 1")
        run = _Run(
            storage=storage,
            compute=compute,
            prompts=self.prompts,
            steps=self.steps,
            seed=self.seed,
        )
        whole, other = _decode_run(run, 1), _decode_run(run, int(parts))
        differs = whole.codes != other.codes
        first = np.where(differs.any(axis=1), differs.argmax(axis=1), self.steps)
        return {
            "diverging": float(differs.any(axis=1).mean()),
            "agreed": float(first.mean() / self.steps),
            "deviation": float(np.abs(whole.logits[:, 0] - other.logits[:, 0]).max()),
            "memory": _memory_bytes(run),
        }


_PROMPT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """Settings of a decoding except the number of partial sums of each dot product."""

    storage: str
    compute: str
    prompts: int
    steps: int
    seed: int


@lru_cache(maxsize=1)
def _weights() -> Mapping[str, Single]:
    # Deferred: the model's module imports Torch, which takes seconds and is not used here.
    from dse_evaluators.workloads.character_lm import CHECKPOINT, checkpoint

    return checkpoint(CHECKPOINT)


@lru_cache(maxsize=4)
def _prompts(count: int, seed: int) -> Codes:
    """Sample the prompts from the language model itself, run in single precision."""
    rng = np.random.default_rng(seed)
    weights = _weights()
    starts = rng.integers(0, len(weights["embed"]), (count, 1))

    def drawn(logits: Single) -> Codes:
        return (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)

    decoder = Decoder(weights, Arithmetic(rounding=format_of("fp32"), parts=1))
    return decoder.decode(starts, _PROMPT, drawn).codes


@lru_cache(maxsize=16)
def _decode_run(run: _Run, parts: int) -> Decoded:
    stored = format_of(run.storage)
    weights = {name: stored.quantize(array) for name, array in _weights().items()}
    decoder = Decoder(weights, Arithmetic(rounding=format_of(run.compute), parts=parts))
    return decoder.decode(_prompts(run.prompts, run.seed), run.steps)


def _memory_bytes(run: _Run) -> float:
    """Return the bytes of stored weights, KV cache, and the largest weight in compute format."""
    stored, compute = format_of(run.storage), format_of(run.compute)
    weights = _weights()
    bits = sum(stored.bits(array.shape).total for array in weights.values())
    if compute.grid.bits > stored.grid.bits:
        bits += max(compute.bits(array.shape).total for array in weights.values())
    mixed = [array for name, array in weights.items() if name.endswith(".qkv")]
    cached = sum(len(array) * 2 // 3 for array in mixed) * (_PROMPT + run.steps) * run.prompts
    return (bits + cached * compute.grid.bits) / 8
