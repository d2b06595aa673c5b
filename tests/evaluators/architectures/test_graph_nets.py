"""Cells that compute the same are one network, and each legal design is one of the table's."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from dse import Space
from dse.core.batch import Batch
from dse_evaluators.architectures import trained_graph_nets
from dse_evaluators.architectures.cell_graphs import hash_cells
from dse_evaluators.architectures.graph_nets import GraphNets
from dse_evaluators.architectures.trained_graph_nets import OPERATIONS, SKIP, read_trained_networks

ROOT = Path(__file__).parents[3]


def hashed(inputs, words):
    codes = [OPERATIONS.index(one) for one in words.split()]
    return hash_cells(np.array([inputs]), np.array([codes]), skip=SKIP)[0]


def cell(inputs, words):
    operations = {f"operation_{place}": one for place, one in enumerate(words.split(), 1)}
    return operations | {f"input_{place}": one for place, one in enumerate(inputs[1:], 2)}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([0, 0, 0, 0], "gat gcn gin fc"), ([0, 0, 0, 0], "fc gin gcn gat")),
        (([0, 1, 0, 3], "gat gcn gin fc"), ([0, 0, 1, 2], "gat gin gcn fc")),
        (([0, 1, 2, 3], "gat skip gcn gin"), ([0, 1, 2, 3], "skip gat gcn gin")),
        (([0, 0, 0, 0], "skip gat gcn gin"), ([0, 1, 1, 1], "skip gat gcn gin")),
        (([0, 1, 2, 2], "gat gcn skip skip"), ([0, 1, 2, 2], "gat gcn skip skip")),
    ],
)
def test_cells_that_compute_the_same_are_equal(one, other):
    assert hashed(*one) == hashed(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (([0, 0, 0, 0], "gat gcn gin fc"), ([0, 1, 1, 1], "gat gcn gin fc")),
        (([0, 1, 2, 3], "gat gcn gin fc"), ([0, 1, 2, 3], "gcn gat gin fc")),
        (([0, 1, 1, 1], "gat gcn gin skip"), ([0, 1, 1, 1], "skip gat gcn gin")),
    ],
)
def test_cells_that_compute_otherwise_differ(one, other):
    assert hashed(*one) != hashed(*other)


@pytest.mark.slow
def test_the_legal_designs_are_the_trained_networks_each_once(asset):
    asset("nas-bench-graph")
    space = Space.read(ROOT / "spaces/networks/graph_cells.yaml").engine_space
    designs = list(space.enumerate())
    found = [GraphNets(data="cora").evaluate(batch) for batch in designs]
    table = dict(read_trained_networks("cora")[1])
    table = {"accuracy": table["search"], **{k: table[k] for k in ("latency", "parameters")}}
    rows = np.stack([np.concatenate([one.columns[name] for one in found]) for name in table])
    assert not any(one.failures for one in found)
    assert sorted(rows.T.tolist()) == sorted(np.stack(list(table.values())).T.tolist())


def test_an_operation_without_neighbours_has_256_weights_for_each_of_256_inputs(asset):
    asset("nas-bench-graph")
    batch = Batch.of(
        [cell([0, 1, 2, 3], "skip skip skip fc"), cell([0, 1, 2, 3], "skip skip fc fc")]
    )
    one, two = GraphNets(data="cora").evaluate(batch).columns["parameters"]
    assert two - one == pytest.approx(256 * 256 + 256, abs=0.5)


def test_a_cell_that_was_not_trained_is_infeasible(asset):
    asset("nas-bench-graph")
    batch = Batch.of(
        [cell([0, 1, 2, 3], "skip skip skip skip"), cell([0, 1, 1, 1], "gat fc fc fc")]
    )
    failures = GraphNets(data="proteins").evaluate(batch).failures
    assert {row: one.kind for row, one in failures.items()} == {0: "infeasible", 1: "infeasible"}


def test_a_file_that_names_a_function_is_not_run(tmp_path):
    path = tmp_path / "evil.bench"
    path.write_bytes(pickle.dumps(print))
    with path.open("rb") as stream, pytest.raises(pickle.UnpicklingError, match=r"builtins\.print"):
        trained_graph_nets._NumbersOnly(stream).load()
