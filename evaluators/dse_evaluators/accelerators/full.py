"""The accelerator with real words, partial-sum accumulators and a finite DRAM bandwidth.

Every buffer has two halves: one serves the array while DRAM fills or empties the other.

* Inputs: read from DRAM once if all fit in their half; else in every pass, and again for every
  window unless the dataflow walks the image in order (``os``, ``is``) and the half holds the rows
  of the image that a row of windows spans.
* Filters: once if what is passed over repeatedly fits in their half (``os``: the filters of one
  fold, ``is``: all), else in every pass. With ``resident`` they are never read where the whole
  network's weights fit in the filter buffer: it runs the same network again and again.
* Outputs: written once. Partial sums stay in the array (``os``) or in the output buffer's half if
  those of a column of folds fit; else they go to DRAM and come back, for every fold: a layer is
  not cut into blocks of rows that would fit.
* Zero weights (``sparsity``) cost no energy in the multipliers but the same cycles; weights travel
  and are kept as their nonzeros with one bit of map for each weight, or whole if that is smaller.
* A layer takes as long as its cycles or its DRAM traffic, whichever is longer, after the words
  that the array needs to begin: the stationary operand's first fold and the other's first edge.

The reuse regimes restate SCALE-Sim's in closed form (see :mod:`.scalesim`), except that buffers
hold words of the format's width and keep what fits; the accumulators follow N. Jouppi et al.,
In-Datacenter Performance Analysis of a Tensor Processing Unit, ISCA 2017, section 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from dse.core.values import Floats, Mask
from dse_evaluators.accelerators.codes import word_bits
from dse_evaluators.accelerators.knobs import Settings
from dse_evaluators.accelerators.products import Network, Products
from dse_evaluators.accelerators.schedule import Flow, Schedule, scheduled
from dse_evaluators.accelerators.technology import ACCUMULATOR_BITS
from dse_evaluators.accelerators.totals import Layers, Totals, Traffic

ACCUMULATOR_BYTES = ACCUMULATOR_BITS / 8.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Bytes of one word of each kind; (n,) or (1,)."""

    input: Floats
    weight: Floats
    """On average, as it travels: compressed where that is smaller."""


def words(knobs: Settings) -> Words:
    """How wide the words of these designs are."""
    bits = word_bits(knobs.weight_format)
    compressed = np.minimum(bits, (1.0 - knobs.sparsity) * bits + 1.0)
    return Words(input=word_bits(knobs.activation_format) / 8.0, weight=compressed / 8.0)


def totals(flow: Flow, network: Network, knobs: Settings) -> Totals:
    """The workload on designs that all have this dataflow."""
    layers, unhindered = work(flow, network, knobs)
    stall_cycles = stalls(network, layers, knobs)
    return replace(unhindered, cycles=unhindered.cycles + stall_cycles, stall_cycles=stall_cycles)


def work(flow: Flow, network: Network, knobs: Settings) -> tuple[Layers, Totals]:
    """What there is to do if DRAM never makes the array wait: neither clock nor rate matters."""
    product = network.products(knobs.filter_keep, knobs.batch)
    schedule = scheduled(flow, product, knobs.rows, knobs.cols)
    word = words(knobs)
    inputs = _input_bytes(flow, product, schedule, knobs=knobs, word=word)
    size = product.k * product.n * word.weight
    resident = _resident(network.total(size), knobs)
    weights = np.where(
        resident, 0.0, _weight_bytes(flow, product, schedule, knobs=knobs, word=word)
    )
    final = product.m * product.n * word.input
    partial = product.m * product.n * (schedule.partials - 1.0) * ACCUMULATOR_BYTES
    spilled = np.where(_partials_fit(schedule, knobs), 0.0, partial)
    dram = inputs + weights + final + 2.0 * spilled
    total = network.total
    buffered = total(final + partial + spilled)
    layers = Layers(
        cycles=schedule.cycles,
        dram_bytes=dram,
        first_bytes=_first_bytes(flow, schedule, knobs, _fetched(word, resident)),
    )
    return layers, Totals(
        cycles=total(schedule.cycles),
        stall_cycles=np.zeros(1),
        macs=total(product.macs),
        dram_bytes=total(dram),
        weight_bytes=total(size),
        ifmap=Traffic(
            read_bytes=total(product.m * product.k * schedule.input_passes * word.input),
            written_bytes=total(inputs),
        ),
        filter=Traffic(
            read_bytes=total(product.k * product.n * schedule.filter_passes * word.weight),
            written_bytes=total(weights),
        ),
        ofmap=Traffic(read_bytes=buffered, written_bytes=buffered),
    )


def stalls(network: Network, layers: Layers, knobs: Settings) -> Floats:
    """The cycles in which the array waits for DRAM, over all layers, (n,)."""
    cycles_per_byte = knobs.clock / knobs.dram_bandwidth
    late = np.maximum(0.0, layers.dram_bytes * cycles_per_byte - layers.cycles)
    return network.total(late + layers.first_bytes * cycles_per_byte)


def _input_bytes(
    flow: Flow, product: Products, schedule: Schedule, *, knobs: Settings, word: Words
) -> Floats:
    half = knobs.ifmap_sram / 2.0
    once = product.inputs * word.input
    per_pass = product.m * product.k * word.input
    if flow != "ws":
        per_pass = np.where(product.window_rows * word.input <= half, once, per_pass)
    return np.where(once <= half, once, per_pass * schedule.input_passes)


def _weight_bytes(
    flow: Flow, product: Products, schedule: Schedule, *, knobs: Settings, word: Words
) -> Floats:
    repeated = np.minimum(knobs.cols, product.n) if flow == "os" else product.n
    fits = product.k * repeated * word.weight <= knobs.filter_sram / 2.0
    return product.k * product.n * word.weight * np.where(fits, 1.0, schedule.filter_passes)


def _resident(size: Floats, knobs: Settings) -> Mask:
    """Where the weights stay on the chip: they fill both halves, since none replaces another."""
    return (knobs.resident > 0) & (size <= knobs.filter_sram)


def _fetched(word: Words, resident: Mask) -> Words:
    """The words as DRAM sends them: no weights where they are on the chip already."""
    return Words(input=word.input, weight=np.where(resident, 0.0, word.weight))


def _partials_fit(schedule: Schedule, knobs: Settings) -> Mask:
    strip = schedule.stream * np.minimum(knobs.cols, schedule.across)
    return strip * ACCUMULATOR_BYTES <= knobs.ofmap_sram / 2.0


def _first_bytes(flow: Flow, schedule: Schedule, knobs: Settings, word: Words) -> Floats:
    """What must be there before the array can begin: a stationary fold and an edge, or edges."""
    down = np.minimum(knobs.rows, schedule.down)
    across = np.minimum(knobs.cols, schedule.across)
    match flow:
        case "os":
            return down * word.input + across * word.weight
        case "ws":
            return down * across * word.weight + down * word.input
        case "is":
            return down * across * word.input + down * word.weight
        case _:
            assert_never(flow)
