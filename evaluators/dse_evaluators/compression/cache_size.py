"""Evaluator `compression.kv-cache`: size of the KV cache of a context in a number format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from dse.core.batch import Batch
from dse.core.metric import Kind, Metric, Metrics
from dse.core.values import Value
from dse_evaluators.compression.layer_recipes import KEEP
from dse_evaluators.compression.signal_formats import SignalFormats
from dse_evaluators.counts import check_count
from dse_evaluators.formats.names import format_of
from dse_evaluators.one_by_one import Found, one_by_one

METRICS: Mapping[str, Metric] = {
    "cache": Metric(name="cache", unit="B", goal="minimize"),
    "bits_per_number": Metric(name="bits_per_number", goal="minimize"),
}
_USUAL = "{kv_format}"


@dataclass(kw_only=True)
class CacheSize:
    """KV-cache size in a number format, with all scales; the format ``keep`` means fp32.

    Args:
        blocks: number of transformer blocks; each has one attention layer.
        heads: number of attention heads per block.
        width: number of elements of a head's key vector, and of its value vector.
        context: number of token positions in the cache.
        keys: format of the keys; a list parameter has an element for each block.
        values: format of the values; a list parameter has an element for each block.

    Error:
        None: the bytes are counted.

    Example:
        parameters: {kv_format: [keep, "int8:channel", "int4:group=32"]}

    Raises:
        PluginError: an option is not a positive integer.
        SpecError: a format is invalid, or a list has not one element for each block.
    """

    blocks: int = 3
    heads: int = 3
    width: int = 32
    context: int = 128
    keys: str = _USUAL
    values: str = _USUAL

    reads: frozenset[str] = field(init=False)
    optional: frozenset[str] = field(default=frozenset(), init=False)
    units: Mapping[str, str] = field(default_factory=dict, init=False)
    provides: Mapping[str, Metric] = field(default_factory=lambda: dict(METRICS), init=False)
    kind: Kind = field(default="modelled", init=False)
    pure: bool = field(default=True, init=False)
    version: str = field(default="1", init=False)

    def __post_init__(self) -> None:
        for name in ("blocks", "heads", "width", "context"):
            check_count(name, getattr(self, name), least=1)
        self._formats = SignalFormats.of(KEEP, KEEP, self.keys, self.values)
        self.reads = self._formats.names
        self._formats.check({}, self.blocks)

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        self._formats.check(values, self.blocks)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the KV-cache size of each design's number formats."""
        return one_by_one(batch, METRICS, self._count_bits)

    def _count_bits(self, design: Mapping[str, Value]) -> Found:
        shape = (self.heads, self.context, self.width)
        signals = self._formats.signals(design)
        forms = [
            form for part in ("keys", "values") for form in signals.cache_formats(part, self.blocks)
        ]
        kept = sum(_bits("fp32" if form is None else form.name, shape) for form in forms)
        numbers = len(forms) * self.heads * self.context * self.width
        return Found(values={"cache": kept / 8, "bits_per_number": kept / numbers})


@lru_cache(maxsize=256)
def _bits(text: str, shape: tuple[int, ...]) -> int:
    """Return the bits that the keys (or the values) of one block take; scales are per vector."""
    return format_of(text).bits(shape, -1).total
