"""The closed forms of several cores, packed products and patterns, against what they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse_evaluators.accelerators.systolic import full
from dse_evaluators.accelerators.systolic.compressed import N_M_CODES, PATTERNS, kept_elements
from dse_evaluators.accelerators.systolic.matrix_products import ONE, UniqueLayers
from dse_evaluators.accelerators.systolic.schedule import FLOWS
from dse_evaluators.accelerators.systolic.systolic_parameters import settings
from dse_evaluators.workloads.catalogue import WORKLOADS
from dse_evaluators.workloads.layers import Layer, product

extents = st.integers(1, 200)
arrays = st.fixed_dictionaries(
    {
        "rows": st.integers(1, 40),
        "cols": st.integers(1, 40),
        "ifmap_sram": st.floats(1e3, 1e5),
        "filter_sram": st.floats(1e3, 1e5),
        "ofmap_sram": st.floats(1e3, 1e5),
        "overlap": st.booleans(),
        "n_m": st.sampled_from(sorted(PATTERNS)),
        "accumulator_sram": st.sampled_from([0.0, 2000.0]),
    }
)


def totals(layer: Layer, flow: str, design):
    """The layer on one design."""
    return full.totals(
        flow, UniqueLayers([layer]), settings(Batch.of([design]), {"dataflow": flow})
    )


def traffic(got) -> float:
    """Bytes through all buffers."""
    return sum((one.read_bytes + one.written_bytes).item() for one in got.buffers.each())


def dealt(extent: int, cores: int) -> list[int]:
    """Shares that differ by one at most, without empty ones."""
    return [len(share) for share in np.array_split(np.arange(extent), cores) if len(share)]


@pytest.mark.parametrize("split", ["m", "n"])
@given(st.sampled_from(FLOWS), st.tuples(extents, extents, extents), st.integers(1, 9), arrays)
def test_cores_do_together_what_each_does_with_its_share(split, flow, sides, cores, design):
    m, k, n = sides
    together = totals(product("", m, k, n), flow, design | {"cores": cores, "split": split})
    shares = (
        [product("", share, k, n) for share in dealt(m, cores)]
        if split == "m"
        else [product("", m, k, share) for share in dealt(n, cores)]
    )
    alone = [totals(layer, flow, design) for layer in shares]
    busy = [(one.cycles - one.stall_cycles).item() for one in alone]
    assert (together.cycles - together.stall_cycles).item() == pytest.approx(max(busy))
    assert together.macs.item() == sum(one.macs.item() for one in alone)
    assert together.dram_bytes.item() == pytest.approx(sum(one.dram_bytes.item() for one in alone))
    assert traffic(together) == pytest.approx(sum(traffic(one) for one in alone))


@given(st.integers(1, 9), st.integers(1, 30), st.integers(1, 30), st.integers(1, 20), arrays)
def test_heads_take_what_as_many_layers_take_but_for_the_last_cycle_of_each(m, k, n, heads, design):
    design = design | {"packed": False, "overlap": False}
    together = totals(product("", m, k, n, copies=heads), "ws", design)
    one = totals(product("", m, k, n), "ws", design)
    busy = (together.cycles - together.stall_cycles).item()
    assert busy + 1 == heads * ((one.cycles - one.stall_cycles).item() + 1)
    assert together.dram_bytes.item() == pytest.approx(heads * one.dram_bytes.item())
    assert traffic(together) == pytest.approx(heads * traffic(one))


@given(
    st.sampled_from(FLOWS),
    st.tuples(*[st.integers(1, 6)] * 3),
    st.integers(1, 6),
    st.integers(1, 5),
)
def test_packed_products_take_the_cycles_of_one_that_holds_them_on_its_diagonal(
    flow, sides, rounds, together
):
    m, k, n = sides
    down, across = {"os": (m, n), "ws": (k, n), "is": (k, m)}[flow]
    design = {"rows": together * down, "cols": together * across, "dram_bandwidth": 1e300}
    packed = totals(product("", m, k, n, copies=rounds * together), flow, design)
    # as many rows and columns, and the same stream
    diagonal = {
        "os": product("", together * m, k, together * n),
        "ws": product("", m, together * k, together * n),
        "is": product("", together * m, together * k, n),
    }[flow]
    assert packed.cycles.item() + 1 == pytest.approx(
        rounds * (totals(diagonal, flow, design).cycles.item() + 1)
    )


@given(st.integers(1, 100), st.sampled_from(sorted(PATTERNS)))
def test_a_pattern_keeps_its_first_places_of_each_block(elements, n_m):
    kept, block = PATTERNS[n_m]
    places = np.arange(elements) % block
    found = kept_elements(np.array([float(elements)]), np.array([N_M_CODES[n_m]]))
    assert found.item() == np.count_nonzero(places < kept)


@pytest.mark.parametrize("flow", FLOWS)
@pytest.mark.parametrize("workload", ["digits-cnn", "resnet18", "mobilenetv2", "bert-base"])
def test_unlimited_buffers_send_each_word_once(workload, flow):
    network = UniqueLayers(WORKLOADS[workload])
    each = network.products(ONE, ONE)
    large = dict.fromkeys(("ifmap_sram", "filter_sram", "ofmap_sram"), 1e15)
    got = full.totals(
        flow, network, settings(Batch.of([{"rows": 16, "cols": 24} | large]), {"dataflow": flow})
    )
    once = each.inputs + each.k * each.n + each.m * each.n
    assert got.dram_bytes.item() == network.total(once, each.copies).item()
