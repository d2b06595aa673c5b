"""The evaluator `compression.kv-cache`: what the keys and values of a window take in a format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.counts import check_count
from dse_evaluators.formats.names import format_of
from dse_evaluators.one_by_one import Found, one_by_one
from dse_evaluators.readings import check_readings, number_format

METRICS: Mapping[str, Metric] = {
    "cache": Metric(name="cache", unit="B", goal="minimize"),
    "bits_per_number": Metric(name="bits_per_number", goal="minimize"),
}
KEEP = "keep"


@dataclass(kw_only=True)
class CacheSize:
    """Counts the bits of keys and values with all scales; ``kv_format`` may be ``keep``, fp32.

    Args:
        blocks: that attend.
        heads: of each.
        width: numbers of a head's key, and of its value.
        context: places that are kept.

    Raises:
        PluginError: a count is not above zero.
    """

    blocks: int = 3
    heads: int = 3
    width: int = 32
    context: int = 128

    reads: frozenset[str] = field(default=frozenset({"kv_format"}), init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: METRICS, init=False)
    kind: Kind = field(default="modelled", init=False)
    pure = True
    version: str = field(default="1", init=False)

    def __post_init__(self) -> None:
        for name in ("blocks", "heads", "width", "context"):
            check_count(name, getattr(self, name), least=1)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        check_readings(values, {"kv_format": number_format(KEEP)})

    def evaluate(self, batch: Batch) -> Metrics:
        """Every row's format by itself."""
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
    """All bits of one block's keys, or of its values; scales run along each key."""
    return format_of(text).bits(shape, -1).total
