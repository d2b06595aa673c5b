"""Graph convolutions: both orders, graphs of the user and drawn ones, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy import sparse

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.kernels.graphs.adjacency import (
    draw_graph,
    normalise,
    read_graph,
    sample_neighbours,
)
from dse_evaluators.kernels.graphs.graph_convolution import GraphConvolution, prepare_layer

QUICK = {"limit": 0.01, "precision": 0.9}
PATH = np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])  # a - b - c


@pytest.fixture
def edges(tmp_path):
    path = tmp_path / "edges.csv"
    path.write_text("source,target\na,b\nb,c\nb,c\n")
    return path


def test_normalised_path_is_that_of_kipf_and_welling():
    found = normalise(sparse.csr_array(PATH.astype(float)), np.float64).toarray()
    looped = PATH + np.eye(3)
    scale = np.diag(looped.sum(axis=1) ** -0.5)
    assert found == pytest.approx(scale @ looped @ scale)


@pytest.mark.parametrize("order", ["aggregate-first", "combine-first"])
def test_both_orders_compute_the_same_layer(order):
    adjacency = normalise(draw_graph(50, 4.0, 0.5), np.float64)
    sizes = {"features_in": 6, "features_out": 3, "format": "float64"}
    whole, *_ = prepare_layer(adjacency, {**sizes, "order": order})
    rng = np.random.default_rng(0)
    features = rng.standard_normal((50, 6), np.float32).astype("f8")
    weights = (rng.standard_normal((6, 3), np.float32) / np.sqrt(6)).astype("f8")
    assert whole() == pytest.approx(adjacency.toarray() @ features @ weights)


def test_edges_are_read_alike_from_all_files(tmp_path, edges):
    np.savez(tmp_path / "index.npz", edge_index=np.array([[0, 1, 1], [1, 2, 2]]))
    sparse.save_npz(tmp_path / "matrix.npz", sparse.csr_array(np.triu(PATH)))
    files = (edges, tmp_path / "index.npz", tmp_path / "matrix.npz")
    found = [read_graph(one, both_ways=True).toarray() for one in files]
    assert [one.tolist() for one in found] == [PATH.tolist()] * 3
    assert read_graph(edges, both_ways=False).toarray().tolist() == np.triu(PATH).tolist()


def test_drawn_graph_has_its_degree_and_popular_nodes():
    even, skewed = draw_graph(2000, 10.0, 0.0), draw_graph(2000, 10.0, 0.8)
    assert even.nnz / 2000 == pytest.approx(10, rel=0.02)
    assert np.diff(skewed.indptr).max() > 5 * np.diff(even.indptr).max()
    assert (even != even.T).nnz == 0


def test_sampling_keeps_at_most_fanout_neighbours_of_the_graph():
    whole = draw_graph(300, 12.0, 0.5)
    some = sample_neighbours(whole, 5)
    expected = np.minimum(np.diff(whole.indptr), 5)
    assert np.diff(some.indptr).tolist() == expected.tolist()
    assert (some.multiply(whole) != some).nnz == 0


def test_layer_of_own_graph_is_measured(edges):
    own = GraphConvolution(graph=str(edges), features_in=8, **QUICK)
    orders = ("aggregate-first", "combine-first")
    found = own.evaluate(Batch.of([{"features_out": 2, "order": one} for one in orders]))
    assert not found.failures
    assert found.columns["edges"].tolist() == [7, 7]  # four ends of edges and three loops
    assert found.columns["operations"].tolist() == [2 * (7 * 8 + 3 * 16), 2 * (7 * 2 + 3 * 16)]
    times = [found.columns[f"{one}_time"] for one in ("aggregation", "combination")]
    assert found.columns["aggregation_share"] == pytest.approx(times[0] / (times[0] + times[1]))
    assert pickle.loads(pickle.dumps(own)).version == own.version


def test_sizes_of_drawn_graphs_are_refused_for_own_graph(edges):
    found = GraphConvolution(graph=str(edges), **QUICK).evaluate(Batch.of([{"nodes": 10}]))
    assert found.failures[0].reason.startswith("nodes has no effect on the graph of a file")
    with pytest.raises(PluginError, match="both_ways has no effect on a drawn graph"):
        GraphConvolution(both_ways=True)


def test_layer_beyond_memory_is_infeasible():
    wide = {"features_in": 65536, "features_out": 65536, "format": "float64"}
    found = GraphConvolution(nodes=1_000_000, degree=0.01, **QUICK).evaluate(Batch.of([wide]))
    assert found.failures[0].kind == "infeasible"
    assert "are free" in found.failures[0].reason


def test_wrong_files_are_named(tmp_path, edges):
    with pytest.raises(SpecError, match="there is no file") as error:
        GraphConvolution(graph=str(tmp_path / "edge.csv"))
    assert "edges.csv" in error.value.hint
    (tmp_path / "from.csv").write_text("source,to\n1,2\n")
    with pytest.raises(SpecError, match="no column 'target'"):
        read_graph(tmp_path / "from.csv", both_ways=True)
    (tmp_path / "gap.csv").write_text("source,target\n1,2\n3,\n")
    with pytest.raises(SpecError, match="row 2: target is empty"):
        read_graph(tmp_path / "gap.csv", both_ways=True)
    np.savez(tmp_path / "three.npz", edge_index=np.zeros((3, 4), int))
    with pytest.raises(SpecError, match=r"of shape \(3, 4\)"):
        read_graph(tmp_path / "three.npz", both_ways=True)
    sparse.save_npz(tmp_path / "wide.npz", sparse.csr_array(np.ones((2, 3))))
    with pytest.raises(SpecError, match="a matrix of 2 x 3"):
        read_graph(tmp_path / "wide.npz", both_ways=True)
