"""Evaluator `compression.kv-cache`: size of the KV cache of a context in a number format."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse_evaluators.counts import check_count
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.formats.names import format_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.reading_table import CheckedInput, Reading
from dse_evaluators.readings import number_format

METRICS: Mapping[str, Metric] = {
    "cache": Metric(name="cache", unit="B", goal="minimize"),
    "bits_per_number": Metric(name="bits_per_number", goal="minimize"),
}
KEEP = "keep"
_INPUTS: Mapping[str, Reading] = {"kv_format": CheckedInput(number_format(KEEP))}


class CacheSize(DeclaredEvaluator, reads=_INPUTS, provides=METRICS.values(), version="1"):
    """KV-cache size in a number format, with all scales; the format ``keep`` means fp32.

    Args:
        blocks: number of transformer blocks; each has one attention layer.
        heads: number of attention heads per block.
        width: number of elements of a head's key vector, and of its value vector.
        context: number of token positions in the cache.

    Error:
        None: the bytes are counted.

    Example:
        parameters: {kv_format: [keep, "int8:channel", "int4:group=32"]}

    Raises:
        PluginError: an option is not a positive integer.
    """

    blocks: int = 3
    heads: int = 3
    width: int = 32
    context: int = 128

    def __post_init__(self) -> None:
        for name in ("blocks", "heads", "width", "context"):
            check_count(name, getattr(self, name), least=1)
        super().__post_init__()

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the cache size of each design's number format."""
        return one_by_one(batch, METRICS, self._count_bits)

    def _count_bits(self, design: Mapping[str, Value]) -> Found:
        text = str(design["kv_format"])
        shape = (self.heads, self.context, self.width)
        bits = _bits("fp32" if text == KEEP else text, shape)
        kept = 2 * self.blocks * bits
        numbers = self.heads * self.context * self.width
        return Found(values={"cache": kept / 8, "bits_per_number": bits / numbers})


@lru_cache(maxsize=256)
def _bits(text: str, shape: tuple[int, ...]) -> int:
    """Return the bits that the keys (or the values) of one block take; scales are per vector."""
    return format_of(text).bits(shape, -1).total
