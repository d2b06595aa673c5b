"""Embedding tables in DRAM, on an SSD and gathered in it, against sums by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dse.core.batch import Batch
from dse_evaluators.recommenders.embedding_storage import EmbeddingStorage, sum_popularity

MODEL = {"batch": 2, "tables": 3, "lookups": 10, "rows": 1000}


def find(*designs, **knobs):
    return EmbeddingStorage(knobs={**MODEL, **knobs}).evaluate(Batch.of(designs)).columns


def test_each_page_is_read_commanded_and_sent_one_after_the_other():
    found = find({"placement": "ssd", "dense_time": 1e-3})
    page_s = 16384 / (200e6 * 8) + 8e-6 + 16384 / 2e9
    assert found["latency"][0] == pytest.approx(60 * page_s + 1e-3, rel=1e-12)
    assert found["throughput"][0] == pytest.approx(2 / found["latency"][0])
    assert found["dram"][0] == 0
    assert found["speedup"][0] == 1


def test_a_gather_in_the_ssd_takes_its_slowest_stage_and_two_commands_a_table():
    pages, adds = find({"placement": "near-data"}), find({"placement": "near-data"}, row_time=1e-3)
    assert pages["latency"][0] == pytest.approx(60 * 16384 / 1.6e9 + 6 * 8e-6, rel=1e-12)
    assert adds["latency"][0] == pytest.approx(60 * 1e-3 + 6 * 8e-6, rel=1e-12)


def test_rows_in_dram_take_its_bandwidth_and_all_of_its_bytes():
    found = find({"placement": "dram"}, row_size=64)
    assert found["latency"][0] == pytest.approx(60 * 64 / 20e9, rel=1e-12)
    assert (found["dram"][0], found["hit_rate"][0]) == (3 * 1000 * 64, 1)


def test_the_gain_of_gathering_vanishes_with_the_misses():
    shares = [{"placement": "near-data", "cached_rows": rows} for rows in (0, 500, 1000, 5000)]
    found = find(*shares, dense_time=1e-3)
    assert found["hit_rate"].tolist() == [0, 0.5, 1, 1]
    assert found["speedup"][0] > found["speedup"][1] > 1
    assert found["speedup"][2:].tolist() == [1, 1]


def test_a_cache_beside_tables_in_dram_is_a_fault():
    made = EmbeddingStorage(knobs=MODEL)
    found = made.evaluate(Batch.of([{"placement": "dram", "cached_rows": 5}]))
    assert "no effect" in found.failures[0].reason


@pytest.mark.parametrize("skew", [0.0, 0.5, 1.0, 1.2, 3.0])
@pytest.mark.parametrize("rows", [0, 1, 7, 16, 17, 100, 20_000])
def test_popularity_is_the_sum_of_zipfs_law(skew, rows):
    exact = (np.arange(1, rows + 1.0) ** -skew).sum()
    found = sum_popularity(np.array([float(rows)]), np.array([skew]))[0]
    assert found == pytest.approx(exact, rel=1e-4)
