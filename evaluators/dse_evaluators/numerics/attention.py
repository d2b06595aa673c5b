"""The evaluator ``numerics.attention``: error of FlashAttention in low-precision formats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Floats, Value
from dse.errors import EvaluationError
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.arrays import Single
from dse_evaluators.formats.names import format_of
from dse_evaluators.numerics.blockwise import Heads, at_once, blockwise, exact
from dse_evaluators.numerics.tiles import sram_bytes, traffic_bytes
from dse_evaluators.one_by_one import one_by_one
from dse_evaluators.reading_table import CheckedInput, NumberInput, Reading
from dse_evaluators.readings import number_format

SAME = "same"
"""Value of ``state_format`` that selects the format of ``attention_format``."""

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        Metric(name="max_deviation", goal="minimize"),
        Metric(name="mean_deviation", goal="minimize"),
        Metric(name="wasserstein", goal="minimize"),
        Metric(name="max_ratio", goal="minimize"),
        Metric(name="mean_ratio", goal="minimize"),
        Metric(name="sram", unit="B", goal="minimize"),
        Metric(name="traffic", unit="B", goal="minimize"),
    )
}

_COUNTS = ("keys", "block_keys", "block_queries")
_COUNT = NumberInput(1, 1 << 20, default=64, whole=True)
_LARGEST = 1e6

_INPUTS: Mapping[str, Reading] = {
    "attention_format": CheckedInput(number_format(), "bf16"),
    "state_format": CheckedInput(number_format(SAME), SAME),
    "keys": _COUNT._replace(default=2048),
    "block_keys": _COUNT,
    "block_queries": _COUNT,
    "value_mean": NumberInput(-_LARGEST, _LARGEST, default=0.0),
    "query_scale": NumberInput(-_LARGEST, _LARGEST, default=1.0),
}


class Attention(
    DeclaredEvaluator, reads=_INPUTS, provides=METRICS.values(), version="1", kind="measured"
):
    """Error of FlashAttention with every result rounded, relative to double precision.

    Inputs are normally distributed. Deviations are absolute differences of outputs from the exact
    ones; ``max_ratio`` and ``mean_ratio`` are their ratios to the deviations of plain attention in
    the same format. ``wasserstein`` is the Wasserstein distance between the distributions of the
    outputs and of the exact outputs. Deviations are measured; ``sram`` and ``traffic``, both in
    bytes for one head and all keys, are counted.

    Args:
        queries: number of query rows that are computed; others would have the same distribution.
        width: head dimension: the length of a query, key or value vector.
        seed: seed of the inputs.

    Limits:
        0.1 to 0.7 s a design.

    Error:
        GEMMs are summed in fp32 by the machine's own library, whose order of summation differs from
        a GPU's.

    Example:
        parameters: {attention_format: [bf16, fp16], state_format: [same, fp32], keys: [256, 1024]}

    Source:
        Golden et al., Is Flash Attention Stable?, 2024 (arXiv 2405.02803).

    Raises:
        PluginError: a count is invalid.
    """

    queries: int = 256
    width: int = 64
    seed: int = 0

    def __post_init__(self) -> None:
        check_count("queries", self.queries, least=1)
        check_count("width", self.width, least=1)
        check_count("seed", self.seed, least=0)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Measure the rounding errors of n designs, one at a time; return metrics by name, (n,)."""
        return one_by_one(batch, METRICS, self._measure_design)

    def _measure_design(self, design: Mapping[str, Value]) -> Mapping[str, float]:
        chosen = {**self._readings.defaults, **design}
        rounding = format_of(str(chosen["attention_format"]))
        written = str(chosen["state_format"])
        state = rounding if written == SAME else format_of(written)
        counts = {name: _whole(name, chosen[name]) for name in _COUNTS}
        case = _Case(
            format_text=rounding.name,
            shape=(self.queries, counts["keys"], self.width),
            value_mean=float(chosen["value_mean"]),
            query_scale=float(chosen["query_scale"]),
            seed=self.seed,
        )
        heads, truth, plain = _case(case)
        blocks = {name: counts[name] for name in ("block_queries", "block_keys")}
        outputs = blockwise(heads, rounding, state, **blocks)
        ours, theirs = np.abs(outputs - truth), np.abs(plain - truth)
        length = counts["keys"]
        return {
            "max_deviation": float(ours.max()),
            "mean_deviation": float(ours.mean()),
            "wasserstein": _wasserstein(outputs, truth),
            "max_ratio": _quotient(ours.max(), theirs.max()),
            "mean_ratio": _quotient(ours.mean(), theirs.mean()),
            "sram": sram_bytes(rounding, state, self.width, **blocks),
            "traffic": traffic_bytes(rounding, state, (length, self.width), counts["block_keys"]),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """Settings that determine the inputs and the outputs of plain attention; a cache key."""

    format_text: str
    shape: tuple[int, int, int]  # queries, keys, width
    value_mean: float
    query_scale: float
    seed: int


@lru_cache(maxsize=4)
def _case(case: _Case) -> tuple[Heads, Floats, Single]:
    """Return the inputs, the exact outputs, and the outputs of plain attention in the format."""
    rng = np.random.default_rng(case.seed)
    rounding = format_of(case.format_text)
    queries, keys, width = case.shape
    normal = [
        rng.standard_normal((rows, width)).astype(np.float32) for rows in (queries, keys, keys)
    ]
    heads = Heads(
        queries=rounding.quantize(normal[0] * np.float32(case.query_scale)),
        keys=rounding.quantize(normal[1]),
        values=rounding.quantize(normal[2] + np.float32(case.value_mean)),
    )
    return heads, exact(heads), at_once(heads, rounding)


def _whole(name: str, value: Value) -> int:
    """Return the value of an evaluator input as an integer of at least one.

    Raises:
        EvaluationError: the value is not an integer of at least one.
    """
    if isinstance(value, str) or value != int(value) or value < 1:
        raise EvaluationError(f"{name} cannot be {value!r}", hint="a whole number, at least 1")
    return int(value)


def _wasserstein(ours: Single, truth: Floats) -> float:
    """Return the 1-Wasserstein distance between two samples of the same size.

    Source:
        Ramdas, Trillos, Cuturi: On Wasserstein Two-Sample Testing, 2017, proposition 1 (p = 1).
    """
    return float(np.abs(np.sort(ours, axis=None) - np.sort(truth, axis=None)).mean())


def _quotient(ours: float, theirs: float) -> float:
    """Return the error of FlashAttention divided by that of plain attention, ``theirs``.

    Raises:
        EvaluationError: plain attention has no error.
    """
    if not theirs > 0:
        raise EvaluationError("plain attention is exact here, so the error ratio is undefined")
    return float(ours / theirs)
