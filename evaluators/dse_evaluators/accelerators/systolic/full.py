"""Full systolic model: real word widths, partial-sum accumulators and finite DRAM bandwidth.

Scales and zero points of number formats are stored and moved with their numbers; the results of a
layer have as many for each number as its inputs.

Every buffer is double-buffered: one half serves the array while DRAM fills or empties the other.

* Inputs: read from DRAM once if all fit in their half. Otherwise they are read in every pass, and
  again for every window unless the dataflow visits the image in order (``os``, ``is``) and the
  half holds the image rows spanned by a row of windows.
* Filters: read once if the reused part fits in their half (``os``: the filters of one fold,
  ``is``: all), otherwise in every pass. With ``resident`` they are never read if the weights of
  the entire network fit in the filter buffer: the same network runs repeatedly. Right-hand
  operands that are activations follow the same rule, but are never resident.
* Outputs: written once. Partial sums stay in the array (``os``), in the accumulators, or in the
  output buffer's half, if those of a column of folds fit. Otherwise they are written to DRAM and
  read back for every fold; a layer is not tiled into blocks of rows that would fit.
* Zero weights (``sparsity``) take no multiplier energy but the same cycles; weights are moved and
  stored as nonzeros with one bitmap bit per weight, or dense if that is smaller. Weights pruned by
  an N:M pattern (``n_m``) take neither energy nor cycles.
* A layer takes as long as its cycles or its DRAM traffic, whichever is longer, plus the transfer of
  the words needed to begin: the stationary operand's first fold and the other's first edge.

The reuse regimes are SCALE-Sim's in closed form (see :mod:`.scalesim_counts`),
except that buffers hold
words of the format's width and keep everything that fits; the accumulators follow N. Jouppi et al.,
In-Datacenter Performance Analysis of a Tensor Processing Unit, ISCA 2017, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.systolic.compressed import kept_elements
from dse_evaluators.accelerators.systolic.cores import CoreShare, dealt
from dse_evaluators.accelerators.systolic.matrix_products import ONE, LayerProducts, UniqueLayers
from dse_evaluators.accelerators.systolic.partial_sums import (
    Words,
    first_bytes,
    input_bytes,
    partial_sums,
    right_bytes,
    words,
)
from dse_evaluators.accelerators.systolic.schedule import Flow, Schedule, schedule_product
from dse_evaluators.accelerators.systolic.systolic_parameters import Settings
from dse_evaluators.accelerators.systolic.totals import Buffers, BufferTraffic, Layers, Totals
from dse_evaluators.accelerators.systolic.vector import absent, busy_cycles, holds_up, vector_cycles
from dse_evaluators.accelerators.systolic.waiting import waits


@dataclass(frozen=True, slots=True, kw_only=True)
class _Done:
    """Cycles and traffic of those cores whose parts of every layer are of equal size."""

    layers: Layers
    vector_cycles: Floats  # (n,), cycles that the vector unit adds to those of the array
    buffers: Buffers


def totals(flow: Flow, network: UniqueLayers, knobs: Settings) -> Totals:
    """Compute the workload's cycles and traffic, with DRAM stalls, for designs of one dataflow."""
    layers, unhindered = work(flow, network, knobs)
    stall_cycles = waits(network, layers, knobs).stall_cycles
    return replace(unhindered, cycles=unhindered.cycles + stall_cycles, stall_cycles=stall_cycles)


def work(flow: Flow, network: UniqueLayers, knobs: Settings) -> tuple[Layers, Totals]:
    """Compute the workload's cycles and traffic without DRAM stalls.

    These depend on neither clock nor DRAM bandwidth.
    """
    product = _prune_weights(network, network.products(knobs.filter_keep, knobs.batch), knobs)
    shares = dealt(product, knobs.cores, knobs.split)
    word = words(knobs, network.scales)
    size = network.total(_count_weight_bytes(product, word), product.copies)
    held = size
    if len(shares) > 1:
        held = network.total(_count_weight_bytes(shares[0].product, word), shares[0].product.copies)
    resident = (knobs.resident > 0) & (
        held <= knobs.filter_sram
    )  # both halves hold weights, as none is replaced
    done = _together(
        [_of_share(flow, network, share, knobs, word=word, resident=resident) for share in shares]
    )
    weighted_macs, unweighted_macs = _macs(network, product)
    return done.layers, Totals(
        cycles=network.total(done.layers.cycles),
        stall_cycles=np.zeros(1),
        vector_cycles=done.vector_cycles,
        weighted_macs=weighted_macs,
        unweighted_macs=unweighted_macs,
        outputs=np.zeros(1)
        if absent(knobs)
        else network.total(product.m * product.n, product.copies),
        dram_bytes=network.total(done.layers.dram_bytes),
        weight_bytes=size,
        buffers=done.buffers,
    )


def _prune_weights(network: UniqueLayers, product: LayerProducts, knobs: Settings) -> LayerProducts:
    """Return the GEMM with the reduction dimension shortened by N:M pruning of its weights.

    Right-hand operands that are activations are not pruned.
    """
    if not knobs.n_m.any():
        return product
    kept = kept_elements(product.k, knobs.n_m)
    return replace(product, k=kept if network.weighted else _either(product, kept, product.k))


def _either(product: LayerProducts, weighted: Floats, unweighted: Floats) -> Floats:
    return np.where(product.weighted, weighted, unweighted)


def _count_weight_bytes(product: LayerProducts, word: Words) -> Floats:
    """Return the bytes of one GEMM's right-hand operand if that is a weight matrix, else 0."""
    size = product.k * product.n * word.weight
    return size if product.weighted.all() else _either(product, size, np.zeros(1))


def _macs(network: UniqueLayers, product: LayerProducts) -> tuple[Floats, Floats]:
    """Return the multiply-accumulates with a weight, and those of two activations."""
    if network.weighted:
        return network.total(product.macs), np.zeros(1)
    return (
        network.total(_either(product, product.macs, np.zeros(1))),
        network.total(_either(product, np.zeros(1), product.macs)),
    )


def _of_share(
    flow: Flow,
    network: UniqueLayers,
    share: CoreShare,
    knobs: Settings,
    *,
    word: Words,
    resident: Mask,
) -> _Done:
    product, total = share.product, partial(network.total, times=share.products)
    schedule = schedule_product(flow, product, knobs.rows, knobs.cols)
    if not network.weighted:
        word = replace(word, weight=_either(product, word.weight, word.input))
    inputs = input_bytes(flow, product, schedule, knobs=knobs, word=word)
    kept = resident if network.weighted else resident & product.weighted
    right = np.where(kept, 0.0, right_bytes(flow, product, schedule, knobs=knobs, word=word))
    sums = partial_sums(product, schedule, knobs, word)
    dram = inputs + right + sums.final + 2.0 * sums.spilled
    buffered, accumulated = total(sums.buffered), total(sums.accumulated)
    fetched = replace(word, weight=np.where(kept, 0.0, word.weight))
    layers, prolonged = _layers(flow, network, share, schedule, knobs=knobs, word=fetched)
    return _Done(
        layers=replace(layers, dram_bytes=dram * share.products),
        vector_cycles=prolonged,
        buffers=Buffers(
            ifmap=BufferTraffic(
                read_bytes=total(product.m * product.window * schedule.input_passes * word.input),
                written_bytes=total(inputs),
            ),
            filter=BufferTraffic(
                read_bytes=total(product.k * product.n * schedule.filter_passes * word.weight),
                written_bytes=total(right),
            ),
            ofmap=BufferTraffic(read_bytes=buffered, written_bytes=buffered),
            accumulator=BufferTraffic(read_bytes=accumulated, written_bytes=accumulated),
        ),
    )


def _layers(
    flow: Flow,
    network: UniqueLayers,
    share: CoreShare,
    schedule: Schedule,
    *,
    knobs: Settings,
    word: Words,
) -> tuple[Layers, Floats]:
    """Return each layer's cycles without DRAM stalls, and the cycles that the vector unit adds."""
    product = share.product
    together = at_once(schedule, product.copies, knobs) if network.repeated else ONE
    array = layer_cycles(schedule, product.copies, together, knobs)
    layers = Layers(
        cycles=array,
        vector_bound_cycles=np.zeros((1, 1)),
        dram_bytes=np.zeros((1, 1)),
        first_bytes=first_bytes(flow, schedule, knobs, word) * (together * share.cores),
    )
    if absent(knobs):
        return layers, np.zeros(1)
    vector = vector_cycles(product.m * product.n * product.copies, knobs)
    busy = busy_cycles(array, vector, knobs)
    bound = np.where(holds_up(array, vector), busy, 0.0)
    return replace(layers, cycles=busy, vector_bound_cycles=bound), network.total(busy - array)


def _together(parts: list[_Done]) -> _Done:
    """Combine the cores of both part sizes: cycles of the first, larger one; bytes are summed."""
    first, *others = parts
    layers, buffers = first.layers, first.buffers
    for part in others:
        layers = replace(
            layers,
            dram_bytes=layers.dram_bytes + part.layers.dram_bytes,
            first_bytes=layers.first_bytes + part.layers.first_bytes,
        )
        buffers = buffers.plus(part.buffers)
    return replace(first, layers=layers, buffers=buffers)


def at_once(schedule: Schedule, copies: Floats, knobs: Settings) -> Floats:
    """Return how many GEMMs of a layer share the array at a time, each on its own section."""
    room = np.minimum(np.floor(knobs.rows / schedule.down), np.floor(knobs.cols / schedule.across))
    return np.where(knobs.packed > 0, np.clip(room, 1.0, copies), 1.0)


def layer_cycles(schedule: Schedule, copies: Floats, together: Floats, knobs: Settings) -> Floats:
    """Compute the cycles of ``copies`` GEMMs, ``together`` at a time, without stalls.

    With ``overlap``, registers hold the next stationary operand. A fold then begins once the
    previous one has taken in its stream and the array has been loaded (or drained, if outputs are
    stationary), which takes one cycle per row.
    """
    folds = schedule.folds * np.ceil(copies / together)
    if not (knobs.overlap > 0).any():
        return folds * schedule.fold_cycles - 1.0
    step = np.where(
        knobs.overlap > 0, np.maximum(schedule.stream, knobs.rows), schedule.fold_cycles
    )
    return (folds - 1.0) * step + (schedule.fold_cycles - 1.0)
