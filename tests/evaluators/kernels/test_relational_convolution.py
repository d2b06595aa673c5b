"""Layers over typed edges: all variants against plain loops, files of the user, and refusals."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.kernels.graphs.relational_convolution import RelationalConvolution
from dse_evaluators.kernels.graphs.relational_layer import (
    LayerInputs,
    LayerPlan,
    count_operations,
    count_rows,
    prepare_call,
)
from dse_evaluators.kernels.graphs.typed_edges import draw_triples, read_triples

QUICK = {"limit": 0.01, "precision": 0.9}
TRIPLES = "source,target,type\na,b,likes\na,c,likes\nb,c,knows\nb,c,knows\nc,a,likes\n"


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "triples.csv"
    path.write_text(TRIPLES)
    return path


def plan_of(layer="rgat", materialization="edge", order="message-first"):
    return LayerPlan(
        layer=layer, materialization=materialization, order=order, features_in=5, features_out=3
    )


def loop_attention(edges, inputs):
    """An rgat by its definition, one node and one edge at a time."""
    found = np.zeros((edges.nodes, inputs.weights.shape[2]))
    for node in range(edges.nodes):
        scores, messages = [], []
        for one in np.flatnonzero(edges.target == node):
            kind = edges.kind[one]
            message = inputs.features[edges.source[one]] @ inputs.weights[kind]
            own = inputs.features[node] @ inputs.weights[kind]
            score = message @ inputs.source_vectors[kind] + own @ inputs.target_vectors[kind]
            scores.append(score if score > 0 else 0.2 * score)
            messages.append(message)
        if scores:
            weights = np.exp(scores) / np.exp(scores).sum()
            found[node] = weights @ np.array(messages)
    return found


def loop_mean(edges, inputs):
    """An rgcn by its definition: the mean of each type's messages, added over the types."""
    found = np.zeros((edges.nodes, inputs.weights.shape[2]))
    for node, kind in itertools.product(range(edges.nodes), range(edges.kinds)):
        among = edges.source[(edges.target == node) & (edges.kind == kind)]
        if len(among):
            found[node] += (inputs.features[among] @ inputs.weights[kind]).mean(axis=0)
    return found


@pytest.mark.parametrize("materialization", ["edge", "compact"])
@pytest.mark.parametrize("order", ["message-first", "weights-first"])
def test_every_variant_of_attention_is_the_definition(materialization, order):
    edges = draw_triples(12, 4.0, 3, 0.5, 1.0)
    plan = plan_of("rgat", materialization, order)
    inputs = LayerInputs.draw(edges, plan, np.float64)
    assert prepare_call(edges, plan, inputs)() == pytest.approx(loop_attention(edges, inputs))


@pytest.mark.parametrize("materialization", ["edge", "compact"])
def test_every_variant_of_means_is_the_definition(materialization):
    edges = draw_triples(12, 4.0, 3, 0.5, 1.0)
    plan = plan_of("rgcn", materialization)
    inputs = LayerInputs.draw(edges, plan, np.float64)
    assert prepare_call(edges, plan, inputs)() == pytest.approx(loop_mean(edges, inputs))


def test_own_triples_are_read_once_each(own):
    edges = read_triples(own)
    assert (edges.nodes, edges.kinds, edges.count) == (3, 2, 4)
    assert edges.kind.tolist() == [0, 1, 1, 1]  # knows, likes
    assert edges.in_degree.tolist() == [1, 1, 1, 1]


def test_rows_and_operations_are_counted_by_hand(own):
    edges = read_triples(own)
    compact = plan_of(materialization="compact")
    assert count_rows(edges, compact) == (3, 4)  # a likes, b knows, c likes; each target alone
    assert count_rows(edges, plan_of()) == (4, 4)
    assert count_operations(edges, plan_of("rgcn")) == 2 * (4 * 15 + 4 * 3)
    assert count_operations(edges, compact) == 2 * (3 * 15 + 4 * 3 + 4 * 15 + 7 * 3)
    folded = plan_of("rgat", "compact", "weights-first")
    assert count_operations(edges, folded) == 2 * (3 * 15 + 4 * 3 + 2 * 2 * 15 + 7 * 5)


def test_own_graph_is_measured(own):
    evaluator = RelationalConvolution(graph=str(own), features_in=4, features_out=2, **QUICK)
    found = evaluator.evaluate(
        Batch.of([{"materialization": "edge"}, {"materialization": "compact"}])
    )
    assert not found.failures
    assert found.columns["rows"].tolist() == [4, 3]
    assert found.columns["rows_per_edge"].tolist() == [1, 0.75]
    assert found.columns["stored"].tolist() == [4 * (8 * 2 + 12), 4 * (7 * 2 + 11)]
    assert (found.columns["latency"] > 0).all()
    assert (found.columns["error"] < 1e-5).all()
    assert pickle.loads(pickle.dumps(evaluator)).version == evaluator.version


def test_inputs_without_effect_are_refused(own):
    found = RelationalConvolution(graph=str(own), **QUICK).evaluate(
        Batch.of([{"layer": "rgcn", "order": "weights-first"}])
    )
    assert found.failures[0].reason.startswith("order has no effect in this design")
    drawn = RelationalConvolution(graph=str(own), **QUICK).evaluate(Batch.of([{"nodes": 4}]))
    assert drawn.failures[0].reason.startswith("nodes has no effect on the graph of a file")


def test_layer_beyond_memory_is_infeasible():
    wide = RelationalConvolution(nodes=1000, features_out=65536, types=60000, **QUICK)
    found = wide.evaluate(Batch.of([{"features_in": 65536}]))
    assert found.failures[0].kind == "infeasible"


def test_wrong_files_are_named(tmp_path, own):
    with pytest.raises(SpecError, match="there is no file") as error:
        RelationalConvolution(graph=str(tmp_path / "triple.csv"))
    assert "triples.csv" in error.value.hint
    with pytest.raises(SpecError, match="has no types of edges"):
        RelationalConvolution(graph="edges.npz")
    with pytest.raises(PluginError, match="graph is 3"):
        RelationalConvolution(graph=3)
    (tmp_path / "pairs.csv").write_text("source,target\n1,2\n")
    with pytest.raises(SpecError, match="no column 'type'"):
        read_triples(tmp_path / "pairs.csv")
    (tmp_path / "gap.csv").write_text("source,target,type\n1,2,r\n3,,r\n")
    with pytest.raises(SpecError, match="row 2: target is empty"):
        read_triples(tmp_path / "gap.csv")
