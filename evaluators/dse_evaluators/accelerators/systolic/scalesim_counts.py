"""Reproduction of SCALE-Sim 3.0.0's cycle and access counts for a layer, to check against it.

Memory never stalls the array, words are bytes, and partial sums that the array cannot hold go to
DRAM. All quantities but one are closed forms: where a convolution's inputs overflow their buffer,
DRAM reads are found by replaying one pass of the trace, which takes up to a second per layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dse.core.values import Floats
from dse_evaluators.accelerators.systolic.flushing import count_tiled_misses, cyclic, overlapping
from dse_evaluators.accelerators.systolic.matrix_products import LayerProducts, UniqueLayers
from dse_evaluators.accelerators.systolic.schedule import (
    Flow,
    Schedule,
    mapping_efficiency,
    schedule_product,
)
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings
from dse_evaluators.accelerators.systolic.totals import Buffers, BufferTraffic, Layers, Totals

SMALLEST_BUFFER_BYTES = 100.0
"""Smallest read buffer: SCALE-Sim divides one into 100 sets of at least one byte."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleSimArray:
    """Array and buffer sizes that SCALE-Sim models, for n designs; fields are (n,) or (1,)."""

    rows: Floats
    columns: Floats
    ifmap_sram_bytes: Floats
    filter_sram_bytes: Floats
    ofmap_sram_bytes: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Counts in SCALE-Sim's reports, for l layers and n designs; fields are (l, n) or (l, 1)."""

    cycles: Floats
    overall_utilization: Floats
    mapping_efficiency: Floats
    compute_utilization: Floats
    sram_ifmap_reads: Floats
    sram_filter_reads: Floats
    sram_ofmap_writes: Floats
    dram_ifmap_reads: Floats
    dram_filter_reads: Floats
    dram_ofmap_writes: Floats


def report_counts(
    flow: Flow, network: UniqueLayers, product: LayerProducts, array: ScaleSimArray
) -> Report:
    """Return SCALE-Sim's cycles, accesses in words and utilizations (0 to 1) by layer.

    The counts are for one GEMM of each layer. In SCALE-Sim each group of a convolution and each
    attention head is a separate layer.

    Source:
        The reports of SCALE-Sim 3.0.0 (MIT), whose behaviour these closed forms restate. Under
        ``os`` it counts ``rows + columns`` writes too many in each fold.
    """
    rows, columns = array.rows, array.columns
    schedule = schedule_product(flow, product, rows, columns)
    mapping = mapping_efficiency(schedule, rows, columns)
    outputs = product.m * product.n * schedule.partials
    unload = 0.0 if flow == "os" else columns - 1.0
    return Report(
        cycles=schedule.cycles,
        overall_utilization=product.m * product.k * product.n / (schedule.cycles * rows * columns),
        mapping_efficiency=mapping,
        compute_utilization=mapping * schedule.stream / (schedule.fold_cycles + unload),
        sram_ifmap_reads=product.m * product.k * schedule.input_passes,
        sram_filter_reads=product.k * product.n * schedule.filter_passes,
        sram_ofmap_writes=outputs + (schedule.folds * (rows + columns) if flow == "os" else 0.0),
        dram_ifmap_reads=_ifmap_reads(flow, network, product, array, schedule=schedule),
        dram_filter_reads=_filter_reads(flow, product, array, schedule),
        dram_ofmap_writes=_ofmap_writes(outputs, array),
    )


def work(flow: Flow, network: UniqueLayers, knobs: Settings) -> tuple[Layers, Totals]:
    """Compute SCALE-Sim's cycles and memory traffic of designs that share a dataflow.

    A word is one byte, and memory never stalls the array.
    """
    product = network.products(knobs.filter_keep, np.ones(1))
    array = ScaleSimArray(
        rows=knobs.rows,
        columns=knobs.cols,
        ifmap_sram_bytes=knobs.ifmap_sram,
        filter_sram_bytes=knobs.filter_sram,
        ofmap_sram_bytes=knobs.ofmap_sram,
    )
    report = report_counts(flow, network, product, array)
    total = partial(network.total, times=product.copies)
    inputs, weights = total(report.dram_ifmap_reads), total(report.dram_filter_reads)
    outputs = total(report.dram_ofmap_writes)
    never = np.zeros((len(network.layers), 1))
    layers = Layers(
        cycles=never, vector_bound_cycles=np.zeros((1, 1)), dram_bytes=never, first_bytes=never
    )
    return layers, Totals(
        cycles=total(report.cycles),
        stall_cycles=np.zeros(1),
        vector_cycles=np.zeros(1),
        weighted_macs=total(product.m * product.k * product.n),
        unweighted_macs=np.zeros(1),
        outputs=np.zeros(1),
        dram_bytes=inputs + weights + outputs,
        weight_bytes=total(np.where(product.weighted, product.k * product.n, 0.0)),
        buffers=Buffers(
            ifmap=BufferTraffic(read_bytes=total(report.sram_ifmap_reads), written_bytes=inputs),
            filter=BufferTraffic(read_bytes=total(report.sram_filter_reads), written_bytes=weights),
            ofmap=BufferTraffic(read_bytes=outputs, written_bytes=total(report.sram_ofmap_writes)),
        ),
    )


def served_words(sram_bytes: Floats) -> Floats:
    """Return the capacity in words of the half of a read buffer that serves the array.

    The other half is filled from DRAM meanwhile. SCALE-Sim divides a buffer into 100 sets of
    equally many words; a half is 50 of them.
    """
    return 50.0 * np.floor(sram_bytes / 100.0)


def _ifmap_reads(
    flow: Flow,
    network: UniqueLayers,
    product: LayerProducts,
    array: ScaleSimArray,
    *,
    schedule: Schedule,
) -> Floats:
    capacity = served_words(array.ifmap_sram_bytes)
    reads = cyclic(product.inputs, schedule.input_passes, capacity)
    replayed = product.overlapping & (product.inputs >= capacity)
    if not replayed.any():
        return reads
    rows, columns, passes, channels, capacity, reads, replayed = np.broadcast_arrays(
        array.rows,
        array.columns,
        schedule.input_passes,
        product.channels,
        capacity,
        reads,
        replayed,
    )
    reads = reads.copy()
    for place in zip(*np.nonzero(replayed), strict=True):
        reads[place] = overlapping(
            flow,
            replace(network.layers[place[0]], channels=int(channels[place])),
            (int(rows[place]), int(columns[place])),
            passes=int(passes[place]),
            capacity=int(capacity[place]),
        )
    return reads


def _filter_reads(
    flow: Flow, product: LayerProducts, array: ScaleSimArray, schedule: Schedule
) -> Floats:
    capacity = served_words(array.filter_sram_bytes)
    if flow != "os":
        return cyclic(product.k * product.n, schedule.filter_passes, capacity)
    tiles = product.n // array.columns
    return count_tiled_misses(
        product.k * array.columns,
        product.k * (product.n - tiles * array.columns),
        tiles,
        passes=schedule.filter_passes,
        capacity=capacity,
    )


def _ofmap_writes(outputs: Floats, array: ScaleSimArray) -> Floats:
    """Return the number of output words written to DRAM, in lines as wide as the array.

    The output buffer is written out half a buffer at a time. Where lines fill a half exactly, the
    first transfer starts one word into a line; that line is padded, and the padding is written too.
    """
    half = np.floor(array.ofmap_sram_bytes / 2.0)
    lines = half / array.columns
    padded = (lines >= 2.0) & (lines % 1.0 == 0.0) & (outputs > half + 1.0)
    return outputs + np.where(padded, array.columns - 1.0, 0.0)
