"""Collectives over nodes: against what was measured between them, by algorithm, and at limits."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse_evaluators.clusters.algorithms import ALGORITHMS, Group, hierarchical, ring, tree
from dse_evaluators.clusters.collectives import COLLECTIVES
from dse_evaluators.clusters.systems import FITS, SYSTEMS, fits, networks, system_of
from dse_evaluators.clusters.topology import group_of, neighbours_s, spread, spread_s
from tests import tables

SPREAD = [name for name in COLLECTIVES if name != "send_recv"]


def column(*values):
    return np.array(values, dtype=np.float64)


def group(inside, nodes, latency_s=1e-5, rate=1e10, **others):
    """Ranks joined by links of 100 GB/s within nodes."""
    return Group(
        inside=column(inside),
        nodes=column(nodes),
        near_latency_s=column(2e-5),
        near_bytes_per_s=column(1e11),
        far_latency_s=column(latency_s),
        far_bytes_per_s=column(rate),
        gap_s=column(1e-6),
        **others,
    )


MEASURED = {
    "infiniband-400": ("vidur", "h100_dgx", "h100-dgx"),
    "a100-cluster": ("vidur", "a100_dgx", "a100-cloud"),
    "v100-ethernet": ("apex", "V100-PCIE-16GB", "v100-pcie"),
}
WORDS = {"alltoall": "all_to_all", "sendrecv": "send_recv"}


def vidur(machine):
    """The name and the seconds of every point of one machine."""
    for row in table("vidur"):
        ranks, inside = int(row["num_workers"]), int(row["devices_per_node"])
        if row["system"] == machine:
            size = int(row["size_bytes_or_elems"])
            name = f"{row['collective']} {ranks // inside}x{inside} {size}"
            yield name, float(row["median_ms"]) * 1e-3


def apex(machine):
    for row in table("apex"):
        if row["gpu"] == machine and row["dtype"] == "half":
            word, size = WORDS.get(row["collective"], row["collective"]), int(row["size(kb)"])
            name = f"{word} {row['num_nodes']}x{row['num_gpus_per_node']} {size * 1024}"
            yield name, float(row["time(us)"]) * 1e-6


def table(name):
    with (tables.ELSEWHERE / f"collective_measured_{name}.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def modelled_s(system, name):
    """The time of a point such as ``all_reduce 2x8 2048``, with nothing else on the nodes."""
    collective, place, size = name.split()
    nodes, inside = map(int, place.split("x"))
    took = spread(
        system,
        collective,
        column(size),
        column(nodes * inside),
        apart=column(system.node_devices // inside),
        alone=True,
    )
    return took.total_s[0]


@tables.needs("collective_measured_vidur.csv", "collective_measured_apex.csv")
def test_what_was_judged_is_as_far_off_as_the_file_of_fits_says():
    for network, (source, machine, system) in MEASURED.items():
        times = defaultdict(list)
        for name, took_s in {"vidur": vidur, "apex": apex}[source](machine):
            times[name].append(took_s)
        fit, known = fits()[network], system_of(system)
        errors = [
            abs(modelled_s(known, name) / np.median(times[name]) - 1) for name in fit.judged_on
        ]
        assert np.mean(errors) == pytest.approx(fit.judged_mean, abs=2e-3), network
        assert np.max(errors) == pytest.approx(fit.judged_max, rel=0.01), network


def test_a_message_between_two_nodes_of_h100_is_met_within_a_tenth_on_average():
    assert fits()["infiniband-400"].judged_mean < 0.1


def bus_rate(system, size_bytes, ranks):
    """What nccl-tests would print for an all-reduce."""
    took = spread(system, "all_reduce", column(size_bytes), column(ranks), apart=column(1))
    return 2 * (ranks - 1) / ranks * size_bytes / took.total_s[0]


def test_1984_h200_over_infiniband_are_met_within_a_fifth():
    # NVIDIA/nccl-tests#283: 248 nodes, 512 MiB, around 350 GB/s and at times below 300
    assert bus_rate(system_of("h200-hgx"), 2**29, 1984) == pytest.approx(350e9, rel=0.2)


def test_24_a100_over_four_adapters_are_met_within_a_fifth():
    # NVIDIA/nccl-tests#119: three nodes with four adapters of 200 Gb/s, 96 GB/s at the peak
    system = system_of("a100-dgx")
    four = replace(system, network=replace(system.network, adapters=4))
    assert bus_rate(four, 2**27, 24) == pytest.approx(96e9, rel=0.2)


def test_every_network_says_whether_it_was_measured():
    fitted = {name for name, one in networks().items() if one.checked == "fitted"}
    assert fitted == {row["name"] for row in json.loads(FITS.read_text())}
    assert {one.checked for one in networks().values()} == {
        "fitted",
        "scaled",
        "assumed",
        "hand-set",
    }


def test_a_ring_over_one_adapter_carries_an_all_reduce_almost_twice():
    took = ring("all_reduce", column(1e9), group(1, 8, latency_s=0.0))
    assert took.total_s == pytest.approx(2 * 7 / 8 * 1e9 / 1e10)


def test_every_adapter_of_a_node_carries_its_own_ring():
    alone = ring("all_reduce", column(1e9), group(1, 8, latency_s=0.0)).far_s
    four = ring("all_reduce", column(1e9), group(4, 2, latency_s=0.0)).far_s
    assert four == pytest.approx(alone / 4)


def test_small_arrays_go_by_trees_and_large_ones_by_rings():
    many = group(8, 8)
    small, large = column(1e4), column(1e10)
    assert tree("all_reduce", small, many).total_s < ring("all_reduce", small, many).total_s
    assert tree("all_reduce", large, many).total_s > ring("all_reduce", large, many).total_s


def test_a_trees_steps_are_the_logarithm_of_its_nodes():
    few, many = (tree("all_reduce", column(0.0), group(1, nodes)).total_s for nodes in (4, 64))
    assert few == pytest.approx(2 * 2 * 1e-5)
    assert many == pytest.approx(2 * 6 * 1e-5)


def test_level_by_level_two_nodes_send_half_of_what_a_ring_does():
    pair = group(8, 2, latency_s=0.0)
    around, levels = (way("all_reduce", column(1e9), pair) for way in (ring, hierarchical))
    assert levels.far_s == pytest.approx(around.far_s * 8 / 15)
    assert levels.near_s == pytest.approx(2 * 7 / 8 * 1e9 / 1e11)


def test_an_all_to_all_waits_for_the_slower_of_what_stays_and_what_leaves():
    # 7 of 16 parts stay within the node at 100 GB/s, 8 leave it at 10 GB/s.
    took = ring("all_to_all", column(1.6e9), group(8, 2, latency_s=0.0))
    assert took.far_s == pytest.approx(8e8 / 1e10)
    assert took.near_s == 0
    fast = ring("all_to_all", column(1.6e9), group(8, 2, latency_s=0.0, rate=1e12))
    assert fast.near_s == pytest.approx(7e8 / 1e11)
    assert fast.far_s == 0


@pytest.mark.parametrize("system", SYSTEMS)
@pytest.mark.parametrize("collective", SPREAD)
def test_ranks_of_one_node_take_what_was_measured_there(system, collective):
    known = system_of(system)
    size, ranks = column(1e4, 1e8), column(2, 4)
    near_s = neighbours_s(known, collective, size, ranks)
    assert spread_s(known, collective, size, ranks, apart=column(1, 1)) == pytest.approx(near_s)
    parts = spread(known, collective, size, ranks, apart=column(1, 1))
    assert parts.total_s == pytest.approx(near_s)
    assert (parts.near_s >= 0).all()


@given(
    collective=st.sampled_from(SPREAD[:3]),
    algorithm=st.sampled_from(sorted(ALGORITHMS)),
    size=st.floats(1.0, 1e11),
    inside=st.sampled_from([1, 2, 4, 8]),
    nodes=st.integers(2, 4096),
    rate=st.floats(1e8, 1e12),
    pipelining=st.floats(0.0, 1.0),
)
def test_faster_adapters_are_never_slower(
    collective, algorithm, size, inside, nodes, rate, pipelining
):
    slow, fast = (
        ALGORITHMS[algorithm](
            collective,
            column(size),
            group(inside, nodes, rate=rate * more, far_pipelining=pipelining),
        ).total_s
        for more in (1.0, 2.0)
    )
    assert fast <= slow * (1 + 1e-12)


@given(size=st.floats(1.0, 1e11), inside=st.sampled_from([1, 2, 8]), nodes=st.integers(2, 4096))
def test_the_library_takes_the_faster_of_ring_and_tree(size, inside, nodes):
    among = group(inside, nodes)
    ways = [ALGORITHMS[name]("all_reduce", column(size), among).total_s for name in ALGORITHMS]
    by_name = dict(zip(ALGORITHMS, ways, strict=True))
    assert by_name["auto"] == min(by_name["ring"], by_name["tree"])


def test_a_collective_of_a_batch_is_that_of_its_row_alone():
    system, random = system_of("a100-dgx"), np.random.default_rng(1)
    size, ranks = random.uniform(1, 1e9, 40_000), random.choice([2.0, 6.0, 8.0, 48.0], 40_000)
    apart = random.choice([1.0, 2.0, 8.0], 40_000)
    every = spread_s(system, "all_reduce", size, ranks, apart=apart)
    rows = [0, 16_383, 16_384, 39_999]
    alone = [
        spread_s(system, "all_reduce", size[[at]], ranks[[at]], apart=apart[[at]])[0] for at in rows
    ]
    assert every[rows].tolist() == alone


def test_neighbours_that_talk_share_one_adapter():
    system = system_of("frontier")
    busy, quiet = (
        group_of(system, "all_reduce", column(1), column(16), alone=alone).far_bytes_per_s
        for alone in (False, True)
    )
    assert busy == pytest.approx(1e10)  # four adapters of 20 GB/s among eight
    assert quiet == pytest.approx(2e10)


@pytest.mark.parametrize(("ranks", "links"), [(16, 2), (256, 4), (4096, 6)])
def test_a_torus_sums_along_as_many_axes_as_its_ranks_fill(ranks, links):
    known = system_of("tpu-v4").within("all_reduce", ranks)
    assert known.bytes_per_s == pytest.approx(links * 4e10)


def test_a_torus_of_more_ranks_passes_an_all_to_all_over_more_links():
    system = system_of("tpu-v4")
    assert (
        system.within("all_to_all", 4096).bytes_per_s
        < system.within("all_reduce", 4096).bytes_per_s
    )
