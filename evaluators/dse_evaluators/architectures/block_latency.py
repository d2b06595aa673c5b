"""The evaluator ``architectures.block-latency``: a network's time as the sum of its blocks'."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from dse.core.batch import Batch
from dse.core.metric import Metric, Metrics
from dse.core.values import Value
from dse.errors import EvaluationError, InfeasibleError, PluginError, SpecError, nearest
from dse.resources.asset import cache_folder
from dse_evaluators.architectures.block_table import (
    MeasuredBlock,
    append_block,
    read_block_table,
    sum_times,
    this_machine,
)
from dse_evaluators.architectures.blocks import (
    KINDS,
    SKIP_BLOCK,
    NetworkBlock,
    find_misfit,
    parse_block,
)
from dse_evaluators.compression.template import Template
from dse_evaluators.declared_evaluator import DeclaredEvaluator
from dse_evaluators.generic.call_clock import CallTiming
from dse_evaluators.generic.options import texts_of
from dse_evaluators.one_by_one import Found, one_by_one

MEASURES = ("missing", "nothing", "network")
_METRICS = (
    Metric("latency", "s", goal="minimize"),
    Metric("macs", goal="minimize"),
    Metric("parameters", goal="minimize"),
)


class BlockLatency(DeclaredEvaluator, reads={}, provides=_METRICS, version="", kind="measured"):
    """Latency of a network as the sum of its blocks, each timed once on this machine and kept.

    A block is a text: ``conv`` and ``mbconv`` (``inputs``, ``outputs``, ``side``, ``kernel``,
    ``stride``; ``ratio`` of the expansion), ``patches`` (``inputs``, ``side``, ``patch``,
    ``width``), ``attention`` (``width``, ``tokens``, ``heads``), ``ffn`` (``ratio``), ``moe``
    (``experts``, ``active``), ``classifier`` (``inputs``, ``side``, ``outputs``), or ``skip``.
    A block of your own is any text that your table has.

    Args:
        blocks: the blocks in their order, with parameters in braces: ``mbconv inputs=16 outputs=16
            side=32 kernel={kernel}``. Of a list parameter, each block takes its own element.
        table: a CSV file with the columns ``block`` and ``latency`` (seconds), and optionally
            ``batch``, ``machine`` and ``stderr``; by default one in the cache folder.
        measure: ``missing`` times the blocks that the table lacks, and adds them to it;
            ``nothing`` refuses them; ``network`` times the network at once instead.
        batch: images or sequences in a call.
        clock: ``wall``, as ``dse.time_call``; or ``processor`` for a machine with other load:
            waiting for a processor does not count.
        precision: relative half-width of the 95 % interval of a time at which timing ends.
        limit: time limit of a timing: seconds, or a text such as ``2 s``.

    Limits:
        PyTorch without compilation, fp32, one thread. With blocks of your own, ``macs``
        and ``parameters`` are 0. The time of ``moe`` depends on the tokens, which are random.

    Error:
        8.6 % median, 21 % largest on 20 drawn networks that were then timed as a whole by
        processor time, on a processor with other load; 12 of them within 10 %. The sum is mostly
        too low: alone, a block finds its weights in the cache (``benchmarks/block_latency.py``).

    Source:
        Cai, Zhu, Han: ProxylessNAS, 2019, section 3.3 and appendix B: the table of blocks; Latifi
        et al.: PLANER, 2022.

    Example:
        options:
          blocks:
            - conv inputs=1 outputs={width} side=8
            - classifier inputs={width} side=8 outputs=10
          limit: 0.2 s
        parameters: {width: [8, 16]}

    Raises:
        PluginError: an option is invalid.
        SpecError: a block or the table is invalid.
    """

    blocks: Sequence[str]
    table: str = ""
    measure: str = "missing"
    batch: int = 1
    clock: str = "wall"
    precision: float = 0.02
    limit: float | str = "2 s"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._templates = [Template.of(one) for one in texts_of("blocks", self.blocks)]
        if self.measure not in MEASURES:
            raise PluginError(
                f"measure cannot be {self.measure!r}", hint=nearest(str(self.measure), MEASURES)
            )
        if self.batch < 1 or not self._templates:
            raise PluginError("a network has a block at least, and batch is a whole number above 0")
        self._timing = CallTiming.of(self.clock, self.precision, self.limit)
        self._path = Path(self.table) if self.table else cache_folder() / "block-latency.csv"
        if self.table and self.measure == "nothing" and not self._path.is_file():
            raise SpecError(f"there is no table {self.table!r}")
        self._times = self._read_table()
        self.reads = frozenset(name for one in self._templates for name in one.names)
        self.optional, self.units = frozenset(), {}
        content = f"{self._templates} {self.batch}"
        if self.measure == "nothing":
            self.kind, self.pure, content = "modelled", True, f"{content} {self._times}"
        self.version = f"1-{hashlib.sha256(content.encode()).hexdigest()[:16]}"

    def check_values(self, values: Mapping[str, Sequence[Value]]) -> None:
        for place, template in enumerate(self._templates):
            for text in template.fillings(values, place):
                if text != SKIP_BLOCK and " ".join(text.split()) not in self._times:
                    parse_block(text)

    def evaluate(self, batch: Batch) -> Metrics:
        """Return the metrics of n designs, (n,) by name; each block is timed once."""
        return one_by_one(batch, self.provides, self._measure_design, uncertain=("latency",))

    def _measure_design(self, design: Mapping[str, Value]) -> Found:
        texts = [one.fill(design, place) for place, one in enumerate(self._templates)]
        kept = [" ".join(one.split()) for one in texts if one != SKIP_BLOCK]
        blocks = [parse_block(one) for one in kept if one.partition(" ")[0] in KINDS]
        problem = find_misfit(blocks) if len(blocks) == len(kept) else ""
        if problem or not kept:
            raise InfeasibleError(problem or "all blocks are skipped")
        keys = [parse_block(one).text if one.partition(" ")[0] in KINDS else one for one in kept]
        time = self._time_network(blocks, keys)
        work = _work_of(blocks if len(blocks) == len(keys) else (), self.batch)
        values = {"latency": time.latency_s, **work}
        return Found(values=values, errors={"latency": time.stderr_s})

    def _time_network(self, blocks: Sequence[NetworkBlock], keys: Sequence[str]) -> MeasuredBlock:
        if self.measure == "network":
            if len(blocks) < len(keys):
                own = next(key for key in keys if key.partition(" ")[0] not in KINDS)
                raise EvaluationError(f"{own!r} is a block of a table, and cannot be run")
            return self._time(blocks)
        for key in dict.fromkeys(keys):
            if key not in self._times:
                self._add(key)
        return sum_times(self._times, tuple(keys))

    def _add(self, key: str) -> None:
        """Time a block that the table lacks, and add it.

        Raises:
            EvaluationError: nothing is to be measured.
            SpecError: the block is none that can be run.
        """
        if self.measure == "nothing":
            raise EvaluationError(f"the table has no block {key!r}", hint="measure: missing")
        self._times |= self._read_table()  # another process may have timed it
        if key not in self._times:
            found = self._time([parse_block(key)])
            append_block(self._path, key, self.batch, this_machine(), found)
            self._times[key] = found

    def _time(self, blocks: Sequence[NetworkBlock]) -> MeasuredBlock:
        # Imported here: it takes seconds, and checking a study does not need it.
        from dse_evaluators.architectures.block_modules import time_blocks

        return time_blocks(blocks, self.batch, self._timing)

    def _read_table(self) -> dict[str, MeasuredBlock]:
        if not self._path.is_file():
            return {}
        return read_block_table(self._path, self.batch, this_machine())


def _work_of(blocks: Sequence[NetworkBlock], batch: int) -> dict[str, float]:
    macs, weights = sum(one.work[0] for one in blocks), sum(one.work[1] for one in blocks)
    return {"macs": float(batch * macs), "parameters": float(weights)}
