"""The comparison of spaces with other tools: what it states twice is the same, and it runs."""

import csv
import importlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks/spaces"


@pytest.fixture
def module(monkeypatch):
    """A module of the benchmark by name; its folder is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


def names():
    sys.path.insert(0, str(FOLDER))
    try:
        return list(importlib.import_module("cases").CASES)
    finally:
        sys.path.remove(str(FOLDER))


@pytest.mark.parametrize("name", names())
def test_our_count_is_the_one_that_was_published_or_counted_by_other_means(name, module):
    statement = module("cases").CASES[name]
    assert module("ours").OURS.count(statement) == statement.designs()


@pytest.mark.parametrize("name", names())
def test_what_we_draw_keeps_the_rules_as_they_are_stated_for_the_peers(name, module):
    statement, ours = module("cases").CASES[name], module("ours").OURS
    rows = ours.rows(statement, ours.sampled(statement, 2000, 3))
    assert module("checks").verdict(statement, rows, 2000) == "ok"


def test_draws_that_favour_a_value_are_called_not_uniform(module):
    statement, ours = module("cases").CASES["sobel"], module("ours").OURS
    rows = np.array(ours.rows(statement, ours.sampled(statement, 4000, 3)))
    least = rows[rows[:, 0] < 32].tolist()
    skewed = [tuple(row) for row in (least * 2)[:4000]]
    assert module("checks").verdict(statement, skewed, 4000) == "not uniform"


def test_a_design_that_breaks_a_rule_of_the_peers_statement_is_called_illegal(module):
    statement = module("cases").CASES["dedispersion"]
    assert module("checks").verdict(statement, [(1, 32, 1, 1, 1, 0)], 1) == "1 illegal designs"


@pytest.mark.slow
def test_the_command_measures_its_cells_and_writes_them(tmp_path):
    chosen = ["--space", "dedispersion", "--tool", "dse", "-o", str(tmp_path / "cells.csv")]
    subprocess.run([sys.executable, str(FOLDER), *chosen], check=True, capture_output=True)
    with (tmp_path / "cells.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["question"], row["verdict"]) for row in rows] == [
        ("count", "ok"),
        ("list", "ok"),
        ("draw", "ok"),
    ]


@pytest.mark.parametrize(
    ("peer", "tool", "needs"),
    [
        ("backtracking", "BACKTRACKING", "constraint"),
        ("chain_of_trees", "CHAIN_OF_TREES", "pyatf"),
        ("forbidden_clauses", "FORBIDDEN_CLAUSES", "ConfigSpace"),
    ],
)
def test_a_peer_that_is_installed_counts_what_was_published(peer, tool, needs, module):
    pytest.importorskip(needs)
    statement = module("cases").CASES["dedispersion"]
    assert getattr(module(peer), tool).count(statement) == 11_130
