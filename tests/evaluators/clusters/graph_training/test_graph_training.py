"""Graph networks on many devices: partitions counted by hand, volumes, pipelines, user's graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dse.core.batch import Batch
from dse.errors import SpecError
from dse_evaluators.clusters.graph_training.graph_training import GraphTraining
from dse_evaluators.clusters.graph_training.graphs import (
    PARTITIONS,
    TrainingGraph,
    assign,
    graph_of,
    partition_cost,
)

SIZES = {"vertices": 1000, "messages": 20_000, "features": 16}


def evaluate(designs, **options):
    """Return the metrics of designs; all have 32 layers of 64 numbers."""
    made = GraphTraining(**{"graph": SIZES, "layers": 32, "hidden": 64, **options})
    return made.evaluate(Batch.of(designs))


def edges_file(tmp_path, text):
    file = tmp_path / "edges.csv"
    file.write_text(text)
    return str(file)


@given(
    pairs=st.sets(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda p: p[0] < p[1]), min_size=1
    ),
    parts=st.integers(2, 5),
    kind=st.sampled_from(PARTITIONS),
)
def test_copies_are_the_other_parts_that_have_a_neighbour(pairs, parts, kind):
    graph = TrainingGraph(
        name="g", vertices=10, messages=2 * len(pairs), features=1, pairs=np.array(sorted(pairs))
    )
    owner = assign(graph, parts, kind)
    near = {v: {a if b == v else b for a, b in pairs if v in (a, b)} for v in range(10)}
    copies = sum(len({owner[u] for u in near[v]} - {owner[v]}) for v in range(10))
    load = [sum(len(near[v]) for v in range(10) if owner[v] == part) for part in range(parts)]
    found = partition_cost(graph, parts, kind)
    assert found.copies == pytest.approx(copies / 10)
    assert found.imbalance == pytest.approx(max(load) / np.mean(load))
    assert np.bincount(owner, minlength=parts).max() <= -(-10 // parts)


def test_two_cliques_are_parted_without_a_copy_by_neighbours_and_not_by_chance(tmp_path):
    clique = [(a, b) for a in range(8) for b in range(a)]
    rows = [f"{side}{a},{side}{b}" for side in "xy" for a, b in clique]
    graph = graph_of(edges_file(tmp_path, "source,target\n" + "\n".join(rows) + "\n"))
    assert (graph.vertices, graph.messages) == (16, 112)
    assert partition_cost(graph, 2, "consecutive").copies == 0
    assert partition_cost(graph, 2, "random").copies > 0.5


def test_copies_of_stated_sizes_are_those_of_a_random_graph():
    """A ring of 3,000 vertices with 10 neighbours each, cut at random, against the expectation."""
    near = np.arange(3000)[:, None] + np.arange(1, 6)
    pairs = np.stack([np.repeat(np.arange(3000), 5), near.ravel() % 3000], axis=1)
    ring = TrainingGraph(name="ring", vertices=3000, messages=30_000, features=1, pairs=pairs)
    sizes = graph_of({"vertices": 3000, "messages": 30_000, "features": 1})
    counted, expected = (partition_cost(one, 4, "random").copies for one in (ring, sizes))
    assert counted == pytest.approx(expected, rel=0.02)


def test_greedy_placement_has_fewer_copies_than_chance_on_real_neighbours():
    graph = graph_of("digits")
    costs = {kind: partition_cost(graph, 8, kind) for kind in PARTITIONS}
    assert costs["greedy"].copies < costs["consecutive"].copies < costs["random"].copies
    assert costs["greedy"].imbalance < 1.1


def test_the_volume_of_a_pipeline_does_not_depend_on_its_layers():
    """Seven boundaries of 1,000 embeddings of 64 numbers, forwards and backwards."""
    short = evaluate([{"stages": 8, "chunks": 4}], layers=8).columns["volume"]
    long = evaluate([{"stages": 8, "chunks": 4}, {"parts": 8}]).columns
    assert short[0] == long["volume"][0] == 2 * 7 * 1000 * 64 * 4
    assert long["volume"][1] == pytest.approx(2 * 32 * long["copies"][1] * 1000 * 64 * 4)
    assert long["volume_saving"].tolist() == pytest.approx([32 * long["copies"][1] / 7, 1])


def test_the_bubble_is_that_of_chunks_and_stages_and_one_device_has_neither():
    columns = evaluate([{"stages": 4, "chunks": 6}, {}], chunk_overhead=0).columns
    rest = columns["compute_time"] + columns["exchange_time"] + columns["transfer_time"]
    assert columns["bubble_time"] == pytest.approx([rest[0] * 3 / 6, 0])
    assert columns["stale_share"].tolist() == [5 / 12, 0]
    assert (columns["volume"][1], columns["volume_saving"][1], columns["speedup"][1]) == (0, 1, 1)
    assert columns["compute_time"][1] == pytest.approx(4 * columns["compute_time"][0])


def test_more_stages_than_layers_and_too_little_memory_are_infeasible():
    found = evaluate([{"stages": 33}, {"stages": 32}])
    assert {row: one.reason for row, one in found.failures.items()} == {
        0: "more stages than layers"
    }
    held = {"like": "a100-dgx", "device": {"like": "a100-sxm-80gb", "memory": "1 MB"}}
    assert "a device, which has 1e+06" in evaluate([{}], system=held).failures[0].reason


def test_a_file_of_edges_is_read_with_repeated_pairs_once(tmp_path):
    graph = graph_of(edges_file(tmp_path, "weight,target,source\n1,a,b\n2,b,a\n\n3,c,b\n"), 7)
    assert (graph.vertices, graph.messages, graph.features) == (3, 4, 7)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("source,to\n1,2\n", "no column 'target'"),
        ("source,target\n", "has no rows"),
        ("source,target\n1\n", "has no two vertices"),
        ("source,target\n1,2\n3,3\n", "joins a vertex to itself"),
    ],
)
def test_files_with_mistakes_are_refused(tmp_path, text, message):
    with pytest.raises(SpecError, match=message):
        graph_of(edges_file(tmp_path, text))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"graph": "redit"}, "no graph 'redit'"),
        ({"graph": {"vertices": 3, "edges": 4}}, "no key 'edges'"),
        ({"graph": {"vertices": 3}}, "the graph has no messages"),
        ({"graph": {**SIZES, "features": 0}}, "features of the graph is 0"),
        ({"graph": "none.csv"}, "cannot be read"),
        ({"features": 3}, "features has no effect"),
        ({"system": "a100-dxg"}, "a100-dxg"),
        ({"partition": "greedy"}, "partition 'greedy' of own needs its edges"),
    ],
)
def test_wrong_options_are_refused(options, message):
    with pytest.raises(SpecError, match=message):
        evaluate([{"parts": 2}], **options)
